"""The effects that the engine performs on itself."""

from __future__ import annotations

import pytest

from detent.handlers import Registry, register_inside
from detent.model.decision import Verdict
from detent.model.ids import derived_id
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed
from tests.unit.handlers.calling import INSTANCE, order_for, perform

TARGET = "0190a6d2-0000-7000-8000-000000000002"


class Instances:
    """An engine of a few instances, with the door that handlers see."""

    def __init__(self, refusal=None):
        self.refusal = refusal
        self.signals = []
        self.events = []

    def emit(self, event):
        if self.refusal is not None:
            return Verdict(id=event.id, ok=False, code=self.refusal, message="no")
        self.events.append(event)
        return Verdict(id=event.id, result={"instance_id": event.key})

    def signal(self, target, name, payload, *, id, tenant, sender):
        if self.refusal is not None:
            return Verdict(id=id, ok=False, code=self.refusal, message=f"no: {target}")
        self.signals.append((target, name, payload, id, tenant, sender))
        return Verdict(id=id)

    def query(self, target, tenant):
        found = (target, tenant) == (TARGET, "acme")
        return {"found": True, "state": "running"} if found else {"found": False}


def performed(handler, request, instances=None, **fields):
    registry = Registry()
    register_inside(registry, instances or Instances())
    return perform(registry, order_for(handler, request, doubt="keyed", **fields))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("pause", "pause"),
        ("update_context", "update_context"),
        ({"custom": "paid"}, "custom:paid"),
        ("custom:paid", "custom:paid"),
    ],
)
@pytest.mark.req("SEQ-HND-1")
def test_a_signal_is_sent_under_an_id_derived_from_the_effect(given, name):
    instances = Instances()
    request = {"instance_id": TARGET, "signal_type": given, "payload": {"n": 1}}
    expected = derived_id("acme", "signal", "k1")
    for _ in range(2):  # repeated after doubt: the same id, so one signal
        assert performed("send_signal", request, instances).result == {"signal_id": expected}
    told = (TARGET, name, {"n": 1}, expected, "acme", INSTANCE)
    assert instances.signals == [told, told]


@pytest.mark.parametrize("code", ["instance.not_found", "instance.terminal"])
def test_an_unknown_foreign_or_ended_target_is_a_permanent_failure(code):
    request = {"instance_id": TARGET, "signal_type": "pause"}
    outcome = performed("send_signal", request, Instances(code))
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (False, {"code": code})


def test_a_signal_whose_arrival_is_not_known_is_doubt_and_sent_again_under_its_id():
    request = {"instance_id": TARGET, "signal_type": "pause"}
    outcome = performed("send_signal", request, Instances("store.unavailable"))
    assert isinstance(outcome, EffectDoubted)


@pytest.mark.parametrize("given", ["", "stop", "custom:", {"custom": ""}, {"other": "x"}, {}])
def test_an_unknown_type_of_signal_is_a_permanent_failure(given):
    instances = Instances()
    outcome = performed("send_signal", {"instance_id": TARGET, "signal_type": given}, instances)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, instances.signals) == (False, [])


def test_a_query_tells_the_state_and_does_not_find_what_is_unknown_or_foreign():
    assert performed("query_instance", {"instance_id": TARGET}).result["found"] is True
    assert performed("query_instance", {"instance_id": INSTANCE}).result == {"found": False}


@pytest.mark.parametrize("handler", ["send_signal", "query_instance"])
def test_an_instance_id_that_is_no_uuid_is_a_permanent_failure(handler):
    request = {"instance_id": "nope", "signal_type": "pause"}
    if handler == "query_instance":
        del request["signal_type"]
    outcome = performed(handler, request)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (False, {"code": "request.invalid"})


def emitted(instances=None, **params):
    instances = instances or Instances()
    fields = {"key": params.pop("effect")} if "effect" in params else {}
    return performed("emit_event", {"trigger_slug": "hello", **params}, instances, **fields)


@pytest.mark.req("SEQ-HND-1")
def test_an_event_is_told_with_its_data_and_the_instance_it_comes_from():
    instances = Instances()
    emitted(instances, data=[1], meta={"m": 1})
    emitted(instances)
    full, bare = instances.events
    assert (full.trigger, full.data, full.meta) == ("hello", [1], {"m": 1})
    assert (full.tenant, full.sender) == ("acme", INSTANCE)
    assert (bare.data, bare.meta) == ({}, {})


def test_an_event_repeated_after_doubt_is_told_under_the_same_key_and_id():
    instances = Instances()
    for effect in ("k1", "k1", "k2"):
        emitted(instances, effect=effect)
    first, again, other = instances.events
    assert (first.key, first.id) == (again.key, again.id)
    assert first.key != other.key
    assert first.id != other.id


@pytest.mark.parametrize("scope", ["parent", "tenant"])
def test_a_key_of_the_author_makes_events_of_a_trigger_one_in_its_scope(scope):
    instances = Instances()
    for effect, own, slug in (("k1", "a", "hello"), ("k2", "a", "hello"), ("k3", "b", "hello")):
        emitted(instances, effect=effect, dedupe_key=own, dedupe_scope=scope, trigger_slug=slug)
    emitted(instances, dedupe_key="a", dedupe_scope=scope, trigger_slug="other")
    keys = [event.key for event in instances.events]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_the_scopes_of_a_key_do_not_meet():
    instances = Instances()
    emitted(instances, dedupe_key="a")
    emitted(instances, dedupe_key="a", dedupe_scope="tenant")
    assert instances.events[0].key != instances.events[1].key


@pytest.mark.parametrize("code", ["trigger.not_found", "trigger.disabled", "definition.unknown"])
def test_an_event_nobody_takes_is_a_permanent_failure(code):
    outcome = emitted(Instances(code))
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.details) == (False, {"code": code})


@pytest.mark.parametrize(
    "wrong", [{"dedupe_key": ""}, {"dedupe_scope": "world"}, {"trigger_slug": 7}]
)
def test_an_event_of_another_form_is_a_permanent_failure(wrong):
    instances = Instances()
    outcome = emitted(instances, **wrong)
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, instances.events) == (False, [])


def test_an_event_carries_references_to_secrets_and_never_the_secrets():
    instances = Instances()
    emitted(instances, data={"key": "credentials://key"})
    assert instances.events[0].data == {"key": "credentials://key"}


def test_all_are_keyed_without_a_start_mark_and_their_output_is_not_merged():
    registry = Registry()
    register_inside(registry, Instances())
    for spec in registry.specs().values():
        assert (spec.doubt, spec.marked, spec.merge) == ("keyed", False, False)


def test_a_dry_run_sends_nothing():
    instances = Instances()
    request = {"instance_id": TARGET, "signal_type": "pause"}
    outcome = performed("send_signal", request, instances, dry_run=True)
    assert isinstance(outcome, EffectApplied)
    assert (outcome.result["would"], instances.signals) == (request, [])
