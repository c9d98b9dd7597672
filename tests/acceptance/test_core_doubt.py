"""Doubt: reconciliation, and what a person decides (CORE-EFF-3, CORE-EFF-6)."""

from __future__ import annotations

import pytest

import detent
from detent import race, sequence, step, wait
from detent.model import limits
from detent.testing import Calls
from tests.acceptance.stage import (
    actions,
    finished,
    refused,
    state,
    virtual,
)

DOUBTS = ("repeatable", "keyed", "queryable", "once")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


def run(engine, handler, **options):
    engine.register(handler)
    name = handler.detent_name
    return finished(engine, sequence(f"one-{name}", step("a", handler, **options)))


def reconciles(*answers):
    """A reconcile function that gives its answers one after another, and how often it was asked."""
    asked = []

    def reconcile(ctx: detent.HandlerContext):
        asked.append(ctx.key)
        return answers[min(len(asked), len(answers)) - 1]

    return reconcile, asked


@pytest.mark.req("CORE-EFF-6", "CORE-EFF-4")
def test_reconciliation_that_finds_the_call_applied_goes_on_with_what_it_found(engine, calls):
    reconcile, asked = reconciles(detent.Applied({"found": 1}))
    lost = ConnectionError("lost")
    shown = run(engine, calls.handler("act", lost, on_doubt="queryable", reconcile=reconcile))
    assert shown.summary.state == "completed"
    assert shown.outputs["a"] == {"found": 1}
    assert len(calls.made) == len(asked) == 1
    assert asked == [calls.made[0].key]


@pytest.mark.req("CORE-EFF-6", "CORE-EFF-4")
def test_reconciliation_that_finds_nothing_is_a_failure_and_a_retry_may_call_again(engine, calls):
    reconcile, asked = reconciles(detent.NotApplied("unknown there"))
    act = calls.handler(
        "act", ConnectionError("lost"), {"n": 2}, on_doubt="queryable", reconcile=reconcile
    )
    shown = run(engine, act, retry=detent.retry(2, initial_backoff="1s"))
    assert shown.summary.state == "completed"
    assert len(asked) == 1
    assert [call.attempt for call in calls.made] == [1, 2]
    assert len({call.key for call in calls.made}) == 2


@pytest.mark.req("CORE-EFF-6", "CORE-EFF-3")
def test_reconciliation_is_tried_at_once_then_with_growing_pauses_then_a_person_is_asked(path):
    calls = Calls()
    reconcile, asked = reconciles(detent.Retry("busy"))
    act = calls.handler("act", ConnectionError("lost"), on_doubt="queryable", reconcile=reconcile)
    with virtual(path, [act]) as engine:
        instance = engine.start(sequence("s", step("a", act)))
        engine.advance(0)
        assert len(asked) == 1
        assert engine.inspect.doubts()[0].state == "needs_reconcile"
    pauses = []
    while True:
        with virtual(path, [act]) as engine:  # each attempt after a restart of its own
            earliest = engine.explain(instance).earliest
            if earliest is None:
                break
            before = engine.now()
            engine.advance(to=earliest)
            pauses.append((engine.now() - before).total_seconds())
    assert pauses == [10, 20, 40, 80]
    assert len(asked) == limits.RECONCILE_ATTEMPTS
    assert calls.count("act") == 1
    with virtual(path, [act]) as engine:
        (doubt,) = engine.inspect.doubts()
        assert (doubt.state, state(engine, instance)) == ("indeterminate", "waiting")
        assert actions(engine, instance).count("effect.escalated") == 1


RESOLUTIONS = {
    "happened": ("completed", {"by": "hand"}, "applied"),
    "failed": ("failed", None, "failed"),
    "skip": ("completed", None, "skipped"),
}


@pytest.mark.req("CORE-EFF-3", "CORE-STM-8")
@pytest.mark.parametrize("action", RESOLUTIONS)
def test_a_person_decides_an_indeterminate_effect(engine, calls, action):
    shown = run(engine, calls.handler("act", ConnectionError("lost"), on_doubt="once"))
    instance, (doubt,) = shown.summary.id, engine.inspect.doubts()
    engine.resolve(instance, doubt.effect, action, {"by": "hand"} if action == "happened" else None)
    end, output, ledger = RESOLUTIONS[action]
    assert engine.wait_for(instance) == end
    assert engine.inspect.show(instance).outputs.get("a") == output
    (effect,) = engine.inspect.effects(instance)
    assert effect.state == ledger
    assert len(calls.made) == 1
    assert engine.inspect.doubts() == []
    assert "effect.resolved" in actions(engine, instance)


@pytest.mark.req("CORE-EFF-3")
def test_a_person_may_have_it_tried_again_under_the_same_key(engine, calls):
    lost = ConnectionError("lost")
    shown = run(engine, calls.handler("act", lost, lost, {"n": 1}, on_doubt="once"))
    instance = shown.summary.id
    for _ in range(2):
        (doubt,) = engine.inspect.doubts()
        engine.resolve(instance, doubt.effect, "again")
        engine.run_until_idle()
    assert state(engine, instance) == "completed"
    assert len({call.key for call in calls.made}) == 1
    assert len(calls.made) == 3


@pytest.mark.req("CORE-EFF-3")
def test_a_decision_on_what_is_not_in_doubt_is_refused_and_changes_nothing(engine, calls):
    shown = run(engine, calls.handler("act", ConnectionError("lost"), on_doubt="once"))
    instance, (doubt,) = shown.summary.id, engine.inspect.doubts()
    with refused("effect.not_found"):
        engine.resolve(instance, "0" * 64, "happened")
    with refused("request.invalid"):
        engine.resolve(instance, doubt.effect, "perhaps")
    assert [each.effect for each in engine.inspect.doubts()] == [doubt.effect]
    engine.resolve(instance, doubt.effect, "happened", 1)
    with refused("effect.not_found"):
        engine.resolve(instance, doubt.effect, "failed")
    assert engine.wait_for(instance) == "completed"


@pytest.mark.req("CORE-EFF-3")
def test_a_cancelled_instance_ends_when_its_effect_is_settled_or_handed_to_a_person(engine, calls):
    act = calls.handler("act", ConnectionError("lost"), on_doubt="keyed")
    engine.register(act)
    quick = [wait("w", "1s")]
    instance = engine.start(sequence("s", race("r", [step("a", act)], quick), wait("x", "1h")))
    engine.advance(5_000)
    (effect,) = engine.inspect.effects(instance)
    assert effect.state == "needs_reconcile"
    engine.cancel(instance)
    assert state(engine, instance) != "cancelled"
    assert "not settled" in engine.explain(instance).summary or engine.explain(instance).effects
    engine.run_until_idle()
    assert state(engine, instance) == "cancelled"
    assert engine.inspect.doubts()[0].unwanted
