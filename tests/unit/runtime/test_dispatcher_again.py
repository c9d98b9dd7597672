"""Orders sent again by a new writer: what the dispatcher has, it neither drops nor calls twice."""

from __future__ import annotations

import threading

import pytest
from msgspec import structs

from detent.handlers import handler
from tests.unit.runtime.dispatcher_rig import PATIENCE_S, Rig


@pytest.fixture
def rigs():
    made = []

    def make(*handlers, **options):
        made.append(Rig(*handlers, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.close(0)


def again(order):
    return structs.replace(order, again=True)


def gated(name, called, **options):
    gate = threading.Event()

    def act():
        called.append(name)
        gate.wait(PATIENCE_S)
        return name

    return handler(name, **options)(act), gate


@pytest.mark.req("CORE-EFF-5")
def test_an_order_that_is_here_is_not_taken_twice_wherever_it_stands(rigs):
    called = []
    slow, gate = gated("slow", called)
    once = handler("once", on_doubt="once")(lambda: called.append("once"))
    rig = rigs(slow, once, threads=1)
    orders = [rig.order("slow", "running"), rig.order("once", "waiting")]
    parked = rig.order("nobody", "parked")
    rig.give(*orders, parked)
    rig.until(lambda: called == ["slow"])
    rig.give(*map(again, [*orders, parked]))
    gate.set()
    assert rig.outcome().key == "running"
    assert rig.marks() == ["waiting"]
    rig.give(*map(again, orders), marked=[("waiting", 5)])  # the one outcome is not taken in yet
    assert rig.outcome().key == "waiting"
    assert rig.silent()
    assert called == ["slow", "once"]
    assert rig.dispatcher.parked() == {"nobody": 1}


def test_an_order_that_never_arrived_is_performed(rigs):
    called = []
    rig = rigs(handler("act")(lambda: called.append(1)))
    rig.give(again(rig.order("act", "k1")))
    assert rig.outcome().key == "k1"
    assert called == [1]


def test_what_was_performed_is_known_until_its_receipt_is_back(rigs):
    called = []
    rig = rigs(handler("act")(lambda: called.append(1)))
    order = rig.order("act", "k1")
    rig.give(order)
    receipt = rig.told.get(timeout=PATIENCE_S).ack
    assert receipt < 0
    rig.give(again(order))
    assert rig.silent()
    rig.give(taken=[receipt])
    rig.give(again(order))  # cannot be: a writer that took the outcome in orders nothing again
    assert rig.outcome().key == "k1"
    assert called == [1, 1]


def test_another_try_of_the_same_effect_is_another_order(rigs):
    called = []
    rig = rigs(handler("act", on_doubt="keyed", withdrawable=False)(lambda: called.append(1)))
    order = rig.order("act", "k1")
    rig.give(order)
    rig.outcome()
    rig.give(again(structs.replace(order, dispatch=1)))
    assert rig.outcome().dispatch == 1
    assert called == [1, 1]


def test_while_there_is_no_writer_nothing_starts_and_outcomes_are_kept(rigs):
    called = []
    slow, gate = gated("slow", called)
    rig = rigs(slow, handler("next")(lambda: called.append("next")))
    rig.give(rig.order("slow", "k1"))
    rig.until(lambda: called == ["slow"])
    rig.give(rig.order("next", "k2"), held="store.unavailable")
    gate.set()
    rig.until(lambda: not rig.dispatcher.counts()["under_way"])
    assert rig.silent()
    rig.give(again(rig.order("slow", "k1")))  # the new writer's first word
    assert set(rig.outcomes(2)) == {"k1", "k2"}
    assert called == ["slow", "next"]
