"""Performing the orders of a turn together, for virtual time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from detent.handlers import handler
from detent.model.inputs import decode_input
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


def performed(rig, *orders):
    return [decode_input(each.body) for each in rig.dispatcher.perform(orders)]


@pytest.mark.req("CORE-CLK-5")
def test_outcomes_come_in_the_order_of_their_keys_whatever_ended_first(rigs):
    @handler
    async def slow(turns: int):
        for _ in range(turns):
            await asyncio.sleep(0)
        return turns

    rig = rigs(slow, handler("plain")(lambda: "plain"))
    orders = [rig.order("slow", f"k{9 - n}", {"turns": n}) for n in range(5)]
    found = performed(rig, rig.order("plain", "k0"), *orders)
    assert [each.key for each in found] == ["k0", "k5", "k6", "k7", "k8", "k9"]


@pytest.mark.req("CORE-CLK-5")
def test_the_calls_of_a_turn_run_together(rigs):
    met = threading.Barrier(2, timeout=PATIENCE_S)
    rig = rigs(handler("meet")(lambda: met.wait() >= 0))
    found = performed(rig, rig.order("meet", "k1"), rig.order("meet", "k2"))
    assert [each.result for each in found] == [True, True]


def test_a_marked_order_is_called_with_the_number_its_caller_has_won(rigs):
    rig = rigs(handler("act", on_doubt="once")(lambda: 1))
    (body,) = rig.dispatcher.perform([rig.order("act", "k1", dispatch=1)], {"k1": 12})
    told = decode_input(body.body)
    assert (told.dispatch, told.result) == (12, 1)
    assert rig.asked.empty()


def test_an_order_of_an_unknown_handler_is_performed_by_a_later_call(rigs):
    rig = rigs(handler("known")(lambda: 1))
    assert [
        each.key for each in performed(rig, rig.order("later", "k1"), rig.order("known", "k2"))
    ] == ["k2"]
    rig.registry.collect([handler("later")(lambda: 2)])
    rig.dispatcher.handlers_changed()
    assert [each.key for each in performed(rig)] == ["k1"]
    assert rig.silent()


def test_a_late_result_is_not_told_since_it_would_depend_on_the_machine(rigs):
    release = threading.Event()
    rig = rigs(handler("slow")(lambda: release.wait(PATIENCE_S)), threads=1)
    (told,) = performed(rig, rig.order("slow", "k1", timeout_ms=20))
    assert told.kind == "timeout"
    release.set()
    rig.until(lambda: not rig.dispatcher.counts()["stuck"])
    assert rig.silent()


def test_closing_releases_a_caller_who_waits_for_calls_that_do_not_end():
    entered = threading.Event()

    @handler
    async def endless():
        entered.set()
        await asyncio.Event().wait()

    rig, found = Rig(endless), []
    caller = threading.Thread(
        target=lambda: found.append(performed(rig, rig.order("endless", "k1")))
    )
    caller.start()
    assert entered.wait(PATIENCE_S)
    rig.close(0)
    caller.join(PATIENCE_S)
    assert found == [[]]
