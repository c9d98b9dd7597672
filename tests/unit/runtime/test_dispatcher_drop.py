"""Partitions that went to another writer: what was not begun is not begun here any more."""

from __future__ import annotations

import threading

import pytest

from detent.handlers import handler
from detent.model.inputs import EffectDoubted
from tests.unit.runtime.dispatcher_rig import Rig


@pytest.fixture
def called():
    return []


@pytest.fixture
def rigs(called):
    made = []

    def make(**options):
        @handler(on_doubt="once")
        def pay(n: int):
            called.append(n)
            return n

        made.append(Rig(pay, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.mark.req("CORE-EFF-4", "CORE-SCH-5")
def test_a_marked_call_that_was_not_made_before_its_lease_was_lost_is_doubted(rigs, called):
    valid = threading.Event()
    valid.set()
    rig = rigs(lease_valid=valid.is_set)
    rig.give(rig.order("pay", "k1", {"n": 1}))
    assert rig.marks() == ["k1"]
    valid.clear()  # it was paused right after the mark
    rig.give(marked=[("k1", 7)])
    assert rig.silent()
    rig.give(dropped=[0], lease_until_ms=99)
    rig.until(lambda: rig.dispatcher.lease_until_ms == 99)
    valid.set()
    outcome = rig.outcome()
    assert isinstance(outcome, EffectDoubted)
    assert (outcome.key, outcome.dispatch) == ("k1", 7)
    assert rig.silent()
    assert called == []
    assert rig.dispatcher.lease_until_ms == 99


@pytest.mark.req("CORE-SCH-4")
def test_a_call_with_a_mark_under_a_valid_lease_is_made_though_its_partition_was_given_up(
    rigs, called
):
    rig = rigs()
    rig.give(rig.order("pay", "k1", {"n": 1}))
    assert rig.marks() == ["k1"]
    rig.give(marked=[("k1", 7)])
    rig.give(dropped=[0])
    assert rig.outcome().result == 1
    assert called == [1]


@pytest.mark.req("CORE-SCH-4")
def test_orders_that_wait_and_orders_that_are_parked_are_forgotten(rigs, called):
    rig = rigs(lease_valid=lambda: False)
    rig.give(rig.order("pay", "k1", {"n": 1}), rig.order("unknown", "k2"))
    assert rig.silent()
    assert rig.dispatcher.counts()["waiting"] == 1
    rig.give(dropped=[0])
    rig.until(lambda: not rig.dispatcher.parked())
    rig.give(rig.order("pay", "k3", {"n": 3}))
    assert rig.silent()
    assert called == []


@pytest.mark.req("CORE-EFF-4", "CORE-SCH-5")
def test_a_call_about_to_begin_that_finds_its_lease_over_is_left_to_the_new_owner(rigs, called):
    looked, go = threading.Event(), threading.Event()
    first = threading.get_ident()

    def lease_valid():
        if threading.current_thread().name == "detent-dispatch":
            return True
        assert threading.get_ident() != first
        looked.set()  # on the thread of the call, right before it
        assert go.wait(10)
        return False

    rig = rigs(lease_valid=lease_valid)
    rig.give(rig.order("pay", "k1", {"n": 1}))
    assert rig.marks() == ["k1"]
    rig.give(marked=[("k1", 7)])
    assert looked.wait(10)
    rig.give(dropped=[0])
    rig.dispatcher.perform([])  # it has been through the loop
    go.set()
    assert isinstance(rig.outcome(), EffectDoubted)
    assert rig.silent()
    assert called == []
