"""How calls end before their function does: timeouts, recalls, closing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from detent.handlers import handler
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed
from tests.unit.runtime.dispatcher_rig import PATIENCE_S, Rig

SOON_MS = 20


@pytest.fixture
def rigs():
    made = []

    def make(*handlers, **options):
        made.append(Rig(*handlers, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.close(0)


def waiting(doubt, entered, *, is_async=True, release=None):
    """A handler that stands until it is cancelled or released."""
    release = release or threading.Event()

    async def awaited():
        entered.set()
        await asyncio.Event().wait()

    def plain():
        entered.set()
        release.wait(PATIENCE_S)
        return "late"

    return handler("act", on_doubt=doubt)(awaited if is_async else plain)


def started(rig, entered, **fields):
    """Give the order and see its call begin."""
    order = rig.order("act", "k1", **fields)
    rig.give(order)
    if order.marked:
        assert rig.marks() == ["k1"]
        rig.give(marked=[("k1", 5)])
    assert entered.wait(PATIENCE_S)


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("is_async", [True, False])
def test_a_timeout_fails_a_repeatable_call_and_leaves_another_in_doubt(rigs, is_async):
    release = threading.Event()
    try:
        for doubt in ("repeatable", "keyed"):
            entered = threading.Event()
            rig = rigs(waiting(doubt, entered, is_async=is_async, release=release))
            started(rig, entered, timeout_ms=SOON_MS)
            told = rig.outcome()
            if doubt == "repeatable":
                assert told == EffectFailed(
                    key="k1", message=f"timeout after {SOON_MS} ms", retryable=True, kind="timeout"
                )
            else:
                reason = f"timeout after {SOON_MS} ms"
                assert told == EffectDoubted(key="k1", dispatch=5, reason=reason)
            assert rig.dispatcher.counts()["under_way"] == 0
    finally:
        release.set()


@pytest.mark.req("CORE-EFF-4")
def test_the_late_result_of_a_plain_call_is_told_too_and_its_thread_was_replaced(rigs):
    entered, release = threading.Event(), threading.Event()
    quick = handler("quick")(lambda: "quick")
    rig = rigs(waiting("keyed", entered, is_async=False, release=release), quick, threads=1)
    started(rig, entered, timeout_ms=SOON_MS)
    assert isinstance(rig.outcome(), EffectDoubted)
    assert rig.dispatcher.counts()["stuck"] == 1
    rig.give(rig.order("quick", "k2"))
    assert rig.outcome().result == "quick"
    release.set()
    assert rig.outcome() == EffectApplied(key="k1", dispatch=5, result="late")
    rig.until(lambda: not rig.dispatcher.counts()["stuck"])
    rig.give(rig.order("quick", "k3"))
    assert rig.outcome().key == "k3"


def test_a_call_that_ends_in_time_does_not_time_out_later(rigs):
    quick = handler("quick")(lambda: 1)
    slow = handler("slow")(waiting_ms(4 * SOON_MS))
    rig = rigs(quick, slow)
    rig.give(rig.order("quick", "k1", timeout_ms=SOON_MS), rig.order("slow", "k2"))
    assert set(rig.outcomes(2)) == {"k1", "k2"}
    assert rig.silent()


def waiting_ms(ms):
    async def slow():
        await asyncio.sleep(ms / 1000)

    return slow


def test_the_time_of_a_plain_call_runs_from_when_its_thread_began(rigs):
    release = threading.Event()
    entered = threading.Event()
    rig = rigs(
        waiting("repeatable", entered, is_async=False, release=release),
        handler("quick")(lambda: "in time"),
        handler("later")(waiting_ms(3 * SOON_MS)),
        threads=1,
    )
    started(rig, entered)
    rig.give(rig.order("quick", "k2", timeout_ms=SOON_MS), rig.order("later", "k3"))
    assert rig.outcome().key == "k3"  # k2 has waited for a thread longer than its timeout
    release.set()
    assert rig.outcomes(2)["k2"] == EffectApplied(key="k2", result="in time")


def test_a_handler_that_swallows_its_cancellation_is_timed_out_at_once_and_heard_later(rigs):
    @handler
    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "anyway"

    rig = rigs(stubborn)
    rig.give(rig.order("stubborn", "k1", timeout_ms=SOON_MS))
    assert rig.outcome().kind == "timeout"
    assert rig.outcome() == EffectApplied(key="k1", result="anyway")


@pytest.mark.req("CORE-EFF-3")
def test_recalling_a_running_async_call_cancels_it(rigs):
    for doubt in ("repeatable", "once"):
        entered = threading.Event()
        rig = rigs(waiting(doubt, entered))
        started(rig, entered)
        rig.give(recalled=["k1"])
        reason = "cancelled while in flight"
        assert rig.outcome() == (
            EffectFailed(key="k1", message=reason, retryable=False, kind="cancelled")
            if doubt == "repeatable"
            else EffectDoubted(key="k1", dispatch=5, reason=reason)
        )
        assert rig.silent()


@pytest.mark.req("CORE-EFF-3")
def test_recalling_a_running_plain_call_waits_for_its_real_outcome(rigs):
    entered, release = threading.Event(), threading.Event()
    rig = rigs(waiting("once", entered, is_async=False, release=release))
    started(rig, entered)
    rig.give(recalled=["k1"])
    assert rig.silent()
    release.set()
    assert rig.outcome() == EffectApplied(key="k1", dispatch=5, result="late")


def test_recalling_an_unmarked_order_that_waits_drops_it_with_an_outcome(rigs):
    entered, called = threading.Event(), []
    other = handler("other")(record(called))
    keyed = handler("keyed", on_doubt="keyed", withdrawable=False)(record(called))
    rig = rigs(waiting("repeatable", entered), other, keyed, max_in_flight=1)
    started(rig, entered)
    rig.give(rig.order("other", "k2"), rig.order("keyed", "k3"), recalled=["k2", "k3"])
    found = rig.outcomes(2)
    assert (found["k2"].kind, found["k2"].retryable) == ("cancelled", False)
    assert isinstance(found["k3"], EffectDoubted)
    rig.give(recalled=["k1"])
    assert rig.outcome().key == "k1"
    assert rig.silent()
    assert called == []


def record(called):
    async def acting():
        called.append(1)

    return acting


@pytest.mark.req("CORE-EFF-1")
def test_an_order_recalled_before_its_mark_is_never_called(rigs):
    called = []
    rig = rigs(handler("act", on_doubt="once")(record(called)))
    rig.give(rig.order("act", "k1"), rig.order("act", "k2"))
    assert rig.marks() == ["k1", "k2"]
    rig.give(recalled=["k1", "k2"], marked=[("k1", 5)], lost=["k2"])
    told = rig.outcome()  # the mark of k1 is there, so its end must be told
    assert told == EffectFailed(
        key="k1",
        dispatch=5,
        message="cancelled before it was called",
        retryable=False,
        kind="cancelled",
    )
    assert rig.silent()
    assert called == []


def test_an_order_recalled_before_it_could_ask_for_its_mark_vanishes(rigs):
    entered = threading.Event()
    rig = rigs(waiting("once", entered), max_in_flight=1)
    started(rig, entered)
    rig.give(rig.order("act", "k2"), recalled=["k2"])
    assert rig.silent()


def test_an_order_tried_before_is_in_doubt_when_it_is_recalled_before_the_call(rigs):
    rig = rigs(handler("act", on_doubt="once")(record([])))
    rig.give(rig.order("act", "k1", dispatch=3))
    assert rig.marks() == ["k1"]
    rig.give(recalled=["k1"], marked=[("k1", 5)])
    assert isinstance(rig.outcome(), EffectDoubted)


@pytest.mark.req("CORE-EFF-4")
def test_parameters_that_do_not_fit_fail_a_first_try_and_leave_a_later_one_in_doubt(rigs):
    rig = rigs(handler("act", on_doubt="once")(lambda amount: amount))
    for tries, outcome in ((0, EffectFailed), (2, EffectDoubted)):
        rig.give(rig.order("act", f"k{tries}", {"sum": 1}, dispatch=tries))
        (key,) = rig.marks()
        rig.give(marked=[(key, 5)])
        told = rig.outcome()
        assert (type(told), told.key, told.dispatch) == (outcome, key, 5)


def test_a_parked_order_can_be_recalled(rigs):
    rig = rigs()
    rig.give(rig.order("nobody", "k1"), rig.order("nobody", "k2", marked=True, doubt="once"))
    rig.give(recalled=["k1", "k2", "unknown"])
    assert rig.outcome().kind == "cancelled"
    assert rig.silent()
    assert rig.dispatcher.parked() == {}


def test_closing_waits_for_running_calls_and_tells_their_outcomes():
    entered, release = threading.Event(), threading.Event()
    rig = Rig(waiting("repeatable", entered, is_async=False, release=release))
    started(rig, entered)
    closing = threading.Thread(target=rig.close, args=(10_000,))
    closing.start()
    release.set()
    closing.join(PATIENCE_S)
    assert rig.outcome().result == "late"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_call_that_does_not_end_within_the_grace_time_has_no_outcome(is_async):
    entered, release = threading.Event(), threading.Event()
    rig = Rig(
        waiting("once", entered, is_async=is_async, release=release), max_in_flight=1, threads=1
    )
    started(rig, entered)
    rig.give(rig.order("act", "k2"))
    rig.close(SOON_MS)
    release.set()
    assert rig.told.empty()
    rig.give(rig.order("act", "k3"))  # nobody is there any more: nothing happens, nothing raises
    rig.dispatcher.handlers_changed()
    rig.close()


def test_a_dispatcher_that_never_started_can_be_closed():
    from detent.handlers import Registry
    from detent.runtime.dispatcher import Dispatcher

    Dispatcher(Registry(), lambda _items: None).close()
