"""Effects: planned with the decision, settled once, and in doubt only what their class allows."""

from __future__ import annotations

import pytest

from detent.kernel.lifecycle import EFFECT
from detent.model import limits
from detent.model.inputs import (
    EffectApplied,
    EffectDoubted,
)
from tests.unit.kernel.blocks import call, noop
from tests.unit.kernel.driver import run, ticks

CLASSES = ["repeatable", "keyed", "queryable", "once"]
RETRY = {"max_attempts": 3, "initial_backoff": 1000, "max_backoff": 60_000}


def one(doubt, **more):
    """An instance with one call of a class under way, then a step that must not come too early."""
    handlers = {"a": {"doubt": doubt, **more}}
    world = run(call("a", retry=RETRY), noop("after"), handlers=handlers)
    if world.order("a").marked:
        world.mark("a")
    return world


@pytest.mark.req("CORE-EFF-3")
def test_the_ledger_has_exactly_the_moves_of_the_requirement():
    assert {
        "planned": {"in_flight", "withdrawn", "applied", "failed", "needs_reconcile"},
        "in_flight": {"applied", "failed", "needs_reconcile", "indeterminate"},
        "needs_reconcile": {"applied", "failed", "needs_reconcile", "indeterminate"},
        "indeterminate": {"needs_reconcile", "failed", "applied", "skipped"},
        "applied": set(),
        "failed": set(),
        "skipped": set(),
        "withdrawn": set(),
    } == EFFECT


@pytest.mark.req("CORE-EFF-1")
def test_an_acting_step_is_committed_planned_and_ordered():
    world = run(call("a", params={"x": 1}))
    (effect,) = world.snap().effects
    order = world.order("a")
    assert (effect.state, effect.node, effect.handler, effect.attempt) == ("planned", "a", "a", 1)
    assert (order.key, order.mode, order.instance) == (effect.key, "call", "i1")
    assert world.request() == {"x": 1}
    assert world.entries("effect.planned")[0][2]["key"] == effect.key


@pytest.mark.req("CORE-EFF-1", "CORE-SCH-1")
def test_each_branch_performs_at_most_one_acting_step_per_turn():
    world = run(noop("n1"), call("a"), call("b"))
    assert [order.block for order in world.decision.orders] == ["a"]
    world.apply("a")
    assert [order.block for order in world.decision.orders] == ["b"]


@pytest.mark.req("CORE-EFF-1")
@pytest.mark.parametrize(
    ("spec", "marked"),
    [
        ({}, False),
        ({"doubt": "keyed"}, True),
        ({"doubt": "keyed", "withdrawable": False}, False),
        ({"doubt": "queryable"}, True),
        ({"doubt": "once"}, True),
        ({"doubt": "once", "withdrawable": False}, True),
    ],
)
def test_only_repeatable_and_keyed_not_withdrawable_skip_the_start_mark(spec, marked):
    assert run(call("a"), handlers={"a": spec}).order("a").marked is marked


@pytest.mark.req("CORE-EFF-3", "CORE-EFF-5")
@pytest.mark.parametrize("doubt", CLASSES)
def test_applied_settles_and_is_never_called_again(doubt):
    world = one(doubt)
    key = world.order("a").key
    decision = world.apply("a", {"ok": 1})
    assert (world.state, world.data) == ("completed", {"ok": 1})
    assert not world.snap().effects
    assert list(decision.settled) == ([] if doubt == "repeatable" else [key])
    world.tell(EffectApplied(key=key, result={"ok": 2}))
    world.tell(EffectDoubted(key=key, reason="late", crashed=True))
    assert world.data == {"ok": 1}
    assert len(world.history) == 1
    assert [entry[2]["why"] for entry in world.entries("event.ignored")] == [
        "the effect is settled"
    ] * 2


@pytest.mark.req("CORE-EFF-4", "CORE-EFF-7")
@pytest.mark.parametrize("doubt", CLASSES)
def test_a_definite_retryable_failure_waits_and_tries_again_under_a_new_key(doubt):
    world = one(doubt)
    key = world.order("a").key
    world.fail("a", "busy", retryable=True)
    assert (world.state, world.decision.due) == ("scheduled", world.tick + 10)
    world.due()
    order = world.order("a")
    assert (order.attempt, order.mode) == (2, "call")
    assert order.key != key


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("doubt", CLASSES)
def test_a_definite_permanent_failure_is_final(doubt):
    world = one(doubt)
    world.fail("a", "bad request", retryable=False)
    assert (world.state, world.error["message"]) == ("failed", "bad request")
    assert world.nodes("effect.failed") == ["a"]


@pytest.mark.req("CORE-EFF-4")
def test_doubt_of_a_repeatable_effect_is_a_retryable_failure_that_counts_as_an_attempt():
    world = one("repeatable")
    world.doubt("a", "timed out")
    assert world.state == "scheduled"
    for attempt in (2, 3):
        world.due()
        assert world.order("a").attempt == attempt
        world.doubt("a", "timed out")
    assert (world.state, world.error["kind"]) == ("failed", "timeout")


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-4")
def test_doubt_of_a_keyed_effect_repeats_the_call_under_the_same_key():
    world = one("keyed")
    key = world.order("a").key
    world.doubt("a")
    order = world.order("a")
    assert (order.key, order.mode, order.attempt) == (key, "call", 1)
    assert world.snap().effects[0].state == "needs_reconcile"
    world.apply("a", {"ok": 1})
    assert world.state == "completed"


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-4", "CORE-EFF-6")
def test_doubt_of_a_queryable_effect_asks_and_never_calls():
    world = one("queryable")
    key = world.order("a").key
    world.doubt("a")
    order = world.order("a")
    assert (order.key, order.mode, order.marked) == (key, "reconcile", False)
    world.reconciled("a", "applied", result={"ok": 1})
    assert (world.state, world.data) == ("completed", {"ok": 1})
    assert [order.mode for order in world.history] == ["call", "reconcile"]


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-4")
def test_a_queryable_effect_found_not_done_is_a_definite_failure():
    world = one("queryable")
    key = world.order("a").key
    world.doubt("a")
    world.reconciled("a", "failed")
    assert world.state == "scheduled"
    world.due()
    assert world.order("a").key != key


@pytest.mark.req("CORE-EFF-4", "CORE-STM-8")
def test_doubt_of_a_once_effect_waits_for_a_person():
    world = one("once")
    world.doubt("a")
    assert world.state == "waiting"
    assert world.snap().effects[0].state == "indeterminate"
    assert world.snap().root.lanes[0].open.wait.kind == "decision"
    assert world.orders == []
    assert world.decision.due is None
    assert [doubt.state for doubt in world.decision.doubts] == ["indeterminate"]


@pytest.mark.req("CORE-EFF-6")
def test_reconciliation_is_tried_at_once_then_with_backoff_then_by_a_person():
    world = one("queryable")
    world.doubt("a")
    pauses = []
    while world.state != "waiting":
        world.reconciled("a", "retry")
        if world.state == "waiting":
            break
        pauses.append(world.decision.due - world.tick)
        assert not world.orders
        world.due()
    assert pauses == [ticks(seconds * 1000) for seconds in (10, 20, 40, 80)]
    assert limits.RECONCILE_ATTEMPTS == 5
    assert world.nodes("effect.escalated") == ["a"]
    assert [order.mode for order in world.history] == ["call"] + ["reconcile"] * 5


@pytest.mark.req("CORE-EFF-6")
def test_a_keyed_effect_is_repeated_on_the_same_schedule():
    world = one("keyed")
    keys = []
    for pause in (None, 10, 20, 40, 80):
        keys.append(world.order("a").key)
        world.doubt("a")
        if pause:
            assert world.decision.due - world.tick == ticks(pause * 1000)
            world.due()
    assert len(set(keys)) == 1
    world.doubt("a")
    assert world.state == "waiting"


@pytest.mark.req("CORE-EFF-6")
def test_the_doubt_table_is_told_of_every_step_and_cleared_at_the_end():
    world = one("queryable")
    rows = [world.doubt("a").doubts, world.reconciled("a", "retry").doubts]
    assert [[row.state for row in each] for each in rows] == [["needs_reconcile"]] * 2
    assert rows[1][0].next_try == world.decision.due
    world.due()
    world.reconciled("a", "applied")
    assert [row.state for row in world.decision.doubts] == [""]


@pytest.mark.req("CORE-EFF-4")
def test_a_late_outcome_settles_whatever_the_effect_waits_for():
    for doubt in ("keyed", "queryable", "once"):
        world = one(doubt)
        key = world.order("a").key
        world.doubt("a")
        world.tell(EffectApplied(key=key, result={"late": 1}))
        assert (world.state, world.data) == ("completed", {"late": 1})
        assert [row.state for row in world.decision.doubts] == [""]


@pytest.mark.req("CORE-EFF-4", "CORE-REC-3")
def test_a_repeatable_effect_is_ordered_again_after_a_crash_and_fails_after_the_sixth():
    world = one("repeatable")
    keys = set()
    for _ in range(limits.CRASHES_PER_EFFECT):
        keys.add(world.order("a").key)
        world.doubt("a", "the process died", crashed=True)
        assert world.state == "running"
        assert world.order("a").attempt == 1
    world.doubt("a", "the process died", crashed=True)
    assert (world.state, world.error["code"]) == ("failed", "effect.crash_loop")
    assert len(keys) == 1


@pytest.mark.req("CORE-EFF-4", "CORE-REC-3")
@pytest.mark.parametrize("doubt", ["keyed", "queryable"])
def test_doubt_after_the_sixth_crash_is_handed_to_a_person(doubt):
    world = one(doubt)
    key = world.order("a").key
    for _ in range(limits.CRASHES_PER_EFFECT):
        world.tell(EffectDoubted(key=key, reason="died", crashed=True))
    assert world.snap().effects[0].state == "needs_reconcile"
    world.tell(EffectDoubted(key=key, reason="died", crashed=True))
    assert world.snap().effects[0].state == "indeterminate"


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize(
    ("spec", "step", "ms"),
    [
        ({}, {}, 3_600_000),
        ({"timeout_ms": 5000}, {}, 5000 + limits.DEADLINE_GRACE_MS),
        ({"timeout_ms": 5000}, {"timeout": 700}, 700 + limits.DEADLINE_GRACE_MS),
    ],
)
def test_every_effect_has_a_deadline_that_fires_without_the_dispatcher(spec, step, ms):
    world = run(call("a", **step), handlers={"a": spec})
    assert world.decision.due == world.tick + ticks(ms)
    world.due()
    assert (world.state, world.error["kind"]) == ("failed", "timeout")
    assert world.recalled == [world.history[0].key]


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize(
    ("doubt", "state"),
    [("keyed", "needs_reconcile"), ("queryable", "needs_reconcile"), ("once", "indeterminate")],
)
def test_a_call_in_flight_at_its_deadline_is_in_doubt(doubt, state):
    world = one(doubt)
    world.due()
    assert world.snap().effects[0].state == state


@pytest.mark.req("CORE-EFF-1", "CORE-EFF-4")
@pytest.mark.parametrize("doubt", ["keyed", "queryable", "once"])
def test_a_call_that_never_started_by_its_deadline_is_withdrawn_and_failed_not_doubted(doubt):
    world = run(call("a", retry=RETRY), handlers={"a": {"doubt": doubt}})
    key = world.order("a").key
    decision = world.due()
    assert decision.withdrawn == [key]
    assert (world.state, world.snap().effects) == ("scheduled", [])
    world.due()
    assert world.order("a").attempt == 2


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("doubt", ["keyed", "queryable"])
def test_a_repeated_call_or_question_that_is_lost_has_a_deadline_of_its_own(doubt):
    world = one(doubt)
    world.doubt("a")
    assert world.decision.due == world.tick + ticks(limits.EFFECT_DEADLINE_MS)
    world.due()
    assert world.snap().effects[0].next_try == world.tick + ticks(10_000)
