"""The dispatcher: orders become calls, calls become outcomes, each at the right moment."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from detent.handlers import Retry, handler
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied
from detent.runtime.dispatch_guard import guard_reentrant
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


@handler
async def add(a: int, b: int):
    await asyncio.sleep(0)
    return a + b


@handler
def double(a: int):
    return 2 * a


@handler(on_doubt="keyed")
async def send(to: str):
    return to


@handler("send_plain", on_doubt="once")
def send_plain(to: str):
    return to


def test_async_and_plain_handlers_bring_their_results_back(rigs):
    rig = rigs(add, double)
    rig.give(rig.order("add", "k1", {"a": 1, "b": 2}), rig.order("double", "k2", {"a": 4}))
    found = rig.outcomes(2)
    assert found["k1"] == EffectApplied(key="k1", result=3)
    assert found["k2"] == EffectApplied(key="k2", result=8)


def test_every_one_of_many_orders_has_exactly_one_outcome(rigs):
    rig = rigs(add, double, max_in_flight=50, threads=3)
    orders = [
        rig.order("add", f"a{n}", {"a": n, "b": 1})
        if n % 2
        else rig.order("double", f"d{n}", {"a": n})
        for n in range(2_000)
    ]
    for first in range(0, 2_000, 250):
        rig.give(*orders[first : first + 250])
    found = rig.outcomes(2_000)
    assert len(found) == 2_000
    assert found["a7"].result == 8
    assert found["d8"].result == 16
    assert rig.silent()


@pytest.mark.req("CORE-EFF-1")
@pytest.mark.parametrize("name", ["send", "send_plain"])
def test_a_marked_order_is_called_only_after_its_mark_is_won_and_carries_its_number(rigs, name):
    rig = rigs(send, send_plain)
    rig.give(rig.order(name, "k1", {"to": "x"}))
    assert rig.marks() == ["k1"]
    assert rig.told.empty()
    rig.give(marked=[("k1", 41)])
    assert rig.outcome() == EffectApplied(key="k1", dispatch=41, result="x")


@pytest.mark.req("CORE-EFF-1")
def test_an_order_whose_mark_is_lost_is_never_called(rigs):
    rig = rigs(send)
    rig.give(rig.order("send", "k1", {"to": "x"}))
    assert rig.marks() == ["k1"]
    rig.give(lost=["k1"])
    rig.give(marked=[("k1", 41)])  # too late: it was told that somebody else has it
    assert rig.silent()
    assert rig.dispatcher.counts()["under_way"] == 0


def test_marks_of_one_batch_are_asked_for_together(rigs):
    rig = rigs(send)
    rig.give(*(rig.order("send", f"k{n}", {"to": "x"}) for n in range(5)))
    assert rig.marks() == ["k0", "k1", "k2", "k3", "k4"]


def test_marks_of_plain_calls_are_asked_for_only_while_a_thread_is_free(rigs):
    release = threading.Event()

    @handler(on_doubt="once")
    def slow():
        release.wait(PATIENCE_S)

    rig = rigs(slow, threads=2)
    rig.give(*(rig.order("slow", f"k{n}") for n in range(3)))
    assert rig.marks() == ["k0", "k1"]
    rig.give(marked=[("k0", 1), ("k1", 2)])
    assert rig.silent()
    release.set()
    rig.outcome()
    assert rig.marks() == ["k2"]


def test_no_more_calls_than_the_limit_run_at_once_and_the_rest_start_in_order(rigs):
    running, most, started = [0], [0], []
    gate = threading.Event()

    @handler
    async def busy(n: int):
        started.append(n)
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.to_thread(gate.wait, PATIENCE_S)
        running[0] -= 1

    rig = rigs(busy, max_in_flight=3)
    rig.give(*(rig.order("busy", f"k{n}", {"n": n}) for n in range(9)))
    rig.until(lambda: len(started) == 3)
    assert rig.dispatcher.counts() == {"under_way": 3, "waiting": 6, "stuck": 0}
    gate.set()
    assert len(rig.outcomes(9)) == 9
    assert (most[0], started) == (3, list(range(9)))


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("name", ["add", "double"])
def test_nothing_is_called_while_the_lease_is_not_valid(rigs, name):
    asked, valid = threading.Semaphore(0), threading.Event()

    def lease_valid():
        asked.release()
        return valid.is_set()

    rig = rigs(add, double, lease_valid=lease_valid)
    request = {"a": 1, "b": 2} if name == "add" else {"a": 1}
    rig.give(rig.order(name, "k1", request))
    for _ in range(3):  # it looks again and again
        assert asked.acquire(timeout=PATIENCE_S)
    assert rig.told.empty()
    valid.set()
    assert rig.outcome().key == "k1"


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("name", ["add", "double"])
def test_a_lease_that_runs_out_right_before_the_call_keeps_it_back(rigs, name):
    answers = [True, False, False]  # when it starts, right before the call, when it looks again

    rig = rigs(add, double, lease_valid=lambda: not answers or answers.pop(0))
    request = {"a": 1, "b": 2} if name == "add" else {"a": 1}
    rig.give(rig.order(name, "k1", request, timeout_ms=60_000))
    assert rig.outcome().key == "k1"
    assert answers == []
    assert rig.silent()


def test_orders_of_an_unknown_handler_wait_until_it_is_registered(rigs):
    rig = rigs(add)
    rig.give(rig.order("later", "k1"), rig.order("later", "k2"), rig.order("never", "k3"))
    rig.give(rig.order("add", "k4", {"a": 1, "b": 1}))
    assert rig.outcome().key == "k4"
    assert rig.dispatcher.parked() == {"later": 2, "never": 1}
    rig.registry.collect([handler("later")(lambda: "now")])
    rig.dispatcher.handlers_changed()
    assert set(rig.outcomes(2)) == {"k1", "k2"}
    assert rig.dispatcher.parked() == {"never": 1}


def test_a_reconcile_order_asks_the_reconcile_function(rigs):
    rig = rigs(handler("pay", on_doubt="queryable", reconcile=lambda: Retry("wait"))(lambda: 1))
    rig.give(rig.order("pay", "k1", mode="reconcile", marked=False))
    told = rig.outcome()
    assert (told.verdict, told.message) == ("retry", "wait")


@pytest.mark.req("CORE-REC-3")
def test_while_the_writer_holds_nothing_starts_and_outcomes_are_kept(rigs):
    entered, release = threading.Event(), threading.Event()

    @handler
    def slow():
        entered.set()
        release.wait(PATIENCE_S)
        return "kept"

    rig = rigs(slow, add)
    rig.give(rig.order("slow", "k1"))
    assert entered.wait(PATIENCE_S)
    rig.give(rig.order("add", "k2", {"a": 1, "b": 1}), held="store.full")
    release.set()
    rig.idle()
    assert rig.silent()
    rig.give(held="")
    assert set(rig.outcomes(2)) == {"k1", "k2"}


def test_outcomes_are_kept_while_the_writer_is_gone(rigs):
    rig = rigs(add, send)
    rig.gone = True
    rig.give(rig.order("add", "k1", {"a": 1, "b": 1}), rig.order("send", "k2", {"to": "x"}))
    rig.idle()
    rig.gone = False
    rig.give(rig.order("add", "k3", {"a": 1, "b": 1}))
    assert set(rig.outcomes(2)) == {"k1", "k3"}
    assert rig.silent()  # the mark of k2 counts as lost: the next writer orders it again


def test_an_engine_call_inside_a_handler_is_refused_wherever_the_handler_runs(rigs):
    @handler
    async def inside_async():
        guard_reentrant()

    @handler
    def inside_plain():
        guard_reentrant()

    @handler
    async def inside_thread():
        await asyncio.to_thread(guard_reentrant)

    rig = rigs(inside_async, inside_plain, inside_thread)
    names = ("inside_async", "inside_plain", "inside_thread")
    rig.give(*(rig.order(name, name) for name in names))
    found = rig.outcomes(3)
    assert [found[name].details for name in names] == [{"code": "engine.reentrant"}] * 3
    guard_reentrant()  # here, outside, it is fine


def test_what_a_handler_leaves_in_a_context_variable_does_not_reach_another_call(rigs):
    user: ContextVar[str] = ContextVar("user", default="nobody")

    @handler
    async def login(name: str):
        before = user.get()
        user.set(name)
        await asyncio.sleep(0)
        return before

    rig = rigs(login, max_in_flight=1)
    rig.give(*(rig.order("login", f"k{n}", {"name": f"u{n}"}) for n in range(3)))
    assert {each.result for each in rig.outcomes(3).values()} == {"nobody"}


def test_whatever_a_handler_raises_the_dispatcher_goes_on(rigs):
    @handler
    async def quits():
        raise SystemExit(1)

    @handler
    def quits_plain():
        raise KeyboardInterrupt

    @handler
    async def cancels_itself():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    rig = rigs(quits, quits_plain, cancels_itself, add)
    rig.give(*(rig.order(name, name) for name in ("quits", "quits_plain", "cancels_itself")))
    found = rig.outcomes(3)
    assert found["quits"].message == "SystemExit: 1"
    assert found["quits_plain"].message == "KeyboardInterrupt"
    assert found["cancels_itself"].kind == "cancelled"
    rig.give(rig.order("add", "k1", {"a": 1, "b": 1}))
    assert rig.outcome().result == 2


def test_an_order_given_again_replaces_the_call_that_is_still_running(rigs):
    calls, stopped = [], threading.Event()

    @handler
    async def stuck():
        calls.append(1)
        if len(calls) > 1:
            return "second"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    rig = rigs(stuck)
    rig.give(rig.order("stuck", "k1"))
    rig.until(lambda: calls)
    rig.give(rig.order("stuck", "k1"))
    assert rig.outcome().result == "second"
    assert stopped.wait(PATIENCE_S)
    assert rig.silent()


def test_perform_refuses_to_be_called_from_a_handler(rigs):
    rig = rigs()

    @handler
    def nested():
        rig.dispatcher.perform([])

    rig.registry.add(nested)
    rig.give(rig.order("nested", "k1"))
    assert rig.outcome().details == {"code": "engine.reentrant"}
    rig.close()
    with pytest.raises(RequestError, match=r"engine\.closed"):
        rig.dispatcher.perform([])
