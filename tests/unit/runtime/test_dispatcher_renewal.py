"""Calls whose secret must be renewed first: nothing is called meanwhile, then they begin anew."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from detent.handlers import handler
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.runtime.dispatcher_rig import PATIENCE_S, Rig

REQUEST = {"token": "Bearer credentials://mail"}


class Late:
    """Secrets whose value is too old until it was renewed; the renewal is in the test's hand."""

    def __init__(self):
        self.fresh = False
        self.renewal = Future()
        self.renewed = threading.Semaphore(0)

    def value(self, id, _tenant):
        if not self.fresh:
            raise RequestError("credential.unusable", "too old", again=True, credential=id)
        return "n3w-token"

    def renew(self, _id):
        self.renewed.release()
        return self.renewal

    def asked(self, count=1):
        return all(self.renewed.acquire(timeout=PATIENCE_S) for _ in range(count))

    def succeed(self):
        self.fresh = True
        self.renewal.set_result(None)


@handler("far")
async def far(token: str):
    return len(token)


@handler("near")
def near(token: str):
    return len(token)


@handler("never", on_doubt="once")
async def never(token: str):
    raise AssertionError(token)


@pytest.fixture
def late():
    return Late()


@pytest.fixture
def rigs(late):
    made = []

    def make(**options):
        rig = Rig(far, near, never, **options)
        rig.registry.secrets = late
        made.append(rig)
        return rig

    yield make
    if not late.renewal.done():
        late.renewal.set_result(None)
    for rig in made:
        rig.close(0)


@pytest.mark.parametrize("name", ["far", "near"])
def test_a_call_waits_for_the_renewal_and_is_made_with_the_new_value(rigs, late, name):
    rig = rigs()
    rig.give(rig.order(name, "k1", REQUEST), rig.order(name, "k2", REQUEST))
    assert late.asked(2)
    assert rig.silent()
    late.succeed()
    found = rig.outcomes(2)
    assert found["k1"] == EffectApplied(key="k1", result=len("Bearer n3w-token"))
    rig.idle()
    assert rig.dispatcher.counts() == {"under_way": 0, "waiting": 0, "stuck": 0}


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("name", ["far", "near"])
def test_the_lease_is_looked_at_again_after_the_renewal(rigs, late, name):
    valid, looked = threading.Event(), threading.Semaphore(0)
    valid.set()

    def lease_valid():
        looked.release()
        return valid.is_set()

    rig = rigs(lease_valid=lease_valid)
    rig.give(rig.order(name, "k1", REQUEST))
    assert late.asked()
    valid.clear()  # it runs out while the provider is asked
    late.succeed()
    while looked.acquire(blocking=False):
        pass
    for _ in range(3):
        assert looked.acquire(timeout=PATIENCE_S)
    assert rig.told.empty()
    valid.set()
    assert rig.outcome() == EffectApplied(key="k1", result=len("Bearer n3w-token"))


@pytest.mark.parametrize("name", ["far", "near", "never"])
@pytest.mark.parametrize("again", [True, False])
def test_a_renewal_that_fails_is_the_end_of_the_call_and_nothing_is_called(rigs, late, name, again):
    rig = rigs()
    rig.give(rig.order(name, "k1", REQUEST, marked=False))
    assert late.asked()
    details = {"again": True} if again else {}
    late.renewal.set_exception(RequestError("credential.refresh", "status 4xx", **details))
    outcome = rig.outcome()
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details["code"]) == (again, "credential.refresh")


@pytest.mark.parametrize("name", ["far", "near"])
def test_a_call_that_is_out_of_time_before_the_renewal_ends_has_its_room_back(rigs, late, name):
    rig = rigs()
    rig.give(rig.order(name, "k1", REQUEST, timeout_ms=200))
    assert "timeout" in rig.outcome().message
    late.succeed()
    rig.until(lambda: not any(rig.dispatcher.counts().values()))
    assert rig.silent()
    rig.give(rig.order(name, "k2", REQUEST))
    assert rig.outcome().key == "k2"


def test_whoever_is_recalled_takes_the_renewal_from_nobody(rigs, late):
    rig = rigs()
    rig.give(rig.order("far", "k1", REQUEST), rig.order("far", "k2", REQUEST))
    assert late.asked(2)
    rig.give(recalled=["k1"])
    assert rig.outcome().key == "k1"
    assert not late.renewal.cancelled()
    late.succeed()
    assert rig.outcome() == EffectApplied(key="k2", result=len("Bearer n3w-token"))
