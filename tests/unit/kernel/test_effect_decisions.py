"""Effects that a person decides, that outlive their instance, and the keys they have."""

from __future__ import annotations

import pytest

from detent.model.inputs import (
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
)
from tests.unit.kernel.blocks import call, loop, noop, parallel, retry, wait
from tests.unit.kernel.driver import World, run

RETRY = {"max_attempts": 3, "initial_backoff": 1000, "max_backoff": 60_000}


def one(doubt, **more):
    """An instance with one call of a class under way, then a step that must not come too early."""
    handlers = {"a": {"doubt": doubt, **more}}
    world = run(call("a", retry=RETRY), noop("after"), handlers=handlers)
    if world.order("a").marked:
        world.mark("a")
    return world


def undecided():
    world = one("once")
    world.doubt("a")
    return world, world.snap().effects[0].key


@pytest.mark.req("CORE-EFF-3")
def test_resolve_happened_goes_on_with_the_given_result():
    world, key = undecided()
    assert world.resolve(key, "happened", result={"id": 7}).ok
    assert (world.state, world.data) == ("completed", {"id": 7})
    assert world.entries("effect.resolved")[0][2] == {"key": key, "action": "happened"}


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-3")
def test_resolve_failed_is_a_definite_failure_that_the_step_may_retry():
    world, key = undecided()
    assert world.resolve(key, "failed").ok
    assert world.state == "scheduled"
    world.due()
    assert world.order("a").key != key


@pytest.mark.req("CORE-EFF-3", "CORE-STM-2")
def test_resolve_skip_passes_the_step_over_with_an_entry_and_no_output():
    world, key = undecided()
    assert world.resolve(key, "skip").ok
    assert world.state == "completed"
    assert world.nodes("step.skipped") == ["a"]
    assert "a" not in world.outputs
    assert world.nodes("effect.skipped") == ["a"]


@pytest.mark.req("CORE-EFF-2", "CORE-EFF-3")
def test_resolve_again_calls_once_more_under_the_same_key():
    world, key = undecided()
    assert world.resolve(key, "again").ok
    assert world.state == "running"
    assert world.order("a").key == key
    world.doubt("a")
    assert world.state == "waiting"


@pytest.mark.req("CORE-EFF-3")
def test_resolve_again_asks_a_queryable_handler_with_its_counter_reset():
    world = one("queryable")
    world.doubt("a")
    for _ in range(4):
        world.reconciled("a", "retry")
        world.due()
    world.reconciled("a", "retry")
    (effect,) = world.snap().effects
    assert effect.state == "indeterminate"
    world.resolve(effect.key, "again")
    assert world.order("a").mode == "reconcile"
    assert world.snap().effects[0].tries == 1


@pytest.mark.req("CORE-EFF-3")
@pytest.mark.parametrize("action", ["happened", "failed", "skip", "again"])
@pytest.mark.parametrize("state", ["planned", "needs_reconcile", "settled"])
def test_only_an_indeterminate_effect_can_be_resolved(action, state):
    world = one("queryable")
    key = world.order("a").key
    if state == "needs_reconcile":
        world.doubt("a")
    elif state == "settled":
        world.apply("a")
    before = world.snap()
    verdict = world.resolve(key, action)
    assert (verdict.ok, verdict.code) == (
        False,
        "effect.not_found" if state == "settled" else "effect.state",
    )
    assert world.snap().effects == before.effects
    assert world.snap().state == before.state


@pytest.mark.req("CORE-EFF-3")
def test_further_doubt_about_an_effect_that_is_with_a_person_changes_nothing():
    for doubt, told in (
        ("once", {"reason": "died", "crashed": True}),
        ("queryable", {"reason": "late"}),
    ):
        world = one(doubt)
        key = world.order("a").key
        for _ in range(7):
            world.tell(EffectDoubted(key=key, reason="died", crashed=True))
        before = world.snap().effects
        assert before[0].state == "indeterminate"
        world.tell(EffectDoubted(key=key, **told))
        world.tell(EffectReconciled(key=key, verdict="retry"))
        assert world.snap().effects == before
        assert len(world.entries("effect.escalated")) == 1


@pytest.mark.req("CORE-EFF-3")
def test_an_unknown_action_or_key_is_refused_and_changes_nothing():
    world, key = undecided()
    for args, code in (
        ({"key": key, "action": "guess"}, "request.invalid"),
        ({"key": key}, "request.invalid"),
        ({"key": "nobody", "action": "skip"}, "effect.not_found"),
        ({}, "effect.not_found"),
    ):
        assert world.command("resolve", args).code == code
    assert world.snap().effects[0].state == "indeterminate"
    assert world.state == "waiting"
    assert world.resolve(key, "skip").ok
    assert world.resolve(key, "skip").code == "effect.not_found", "a second click is refused"


@pytest.mark.req("CORE-STM-5")
@pytest.mark.parametrize(
    ("told", "action"),
    [
        (EffectApplied(key="", result={"x": 1}), "effect.applied"),
        (EffectFailed(key="", message="no"), "effect.failed"),
    ],
)
def test_an_outcome_settles_the_ledger_of_an_instance_that_has_ended(told, action):
    world = run(call("a", deadline=100))
    world.after(100)
    assert world.state == "failed"
    key = world.snap().effects[0].key
    world.tell(type(told)(**{**_fields(told), "key": key}))
    assert world.snap().effects == []
    assert world.entries(action)
    assert (world.state, world.data) == ("failed", None)


@pytest.mark.req("CORE-STM-5", "CORE-EFF-6")
def test_an_effect_of_an_ended_instance_is_still_reconciled_and_resolved():
    world = run(call("a", deadline=100), handlers={"a": {"doubt": "queryable"}})
    world.mark("a")
    world.after(100)
    world.doubt("a")
    for _ in range(4):
        world.reconciled("a", "retry")
        world.due()
    world.reconciled("a", "retry")
    (effect,) = world.snap().effects
    assert world.state == "failed"
    assert world.resolve(effect.key, "happened").ok
    assert world.snap().effects == []


def _fields(told):
    return {name: getattr(told, name) for name in told.__struct_fields__}


@pytest.mark.req("CORE-EFF-2")
def test_the_key_depends_on_instance_generation_place_and_logical_attempt_alone():
    assert keys_of("i1") == keys_of("i1")
    assert len(set(keys_of("i1"))) == 3
    assert not set(keys_of("i1")) & set(keys_of("i2"))


def keys_of(id):
    """The keys of a call that failed, was tried again, failed for good and was retried."""
    world = World(call("a", retry=retry(3)))
    world.start(id=id)
    world.fail("a")
    world.due(to=id)
    world.fail("a", retryable=False)
    world.command("retry", to=id)
    return [order.key for order in world.history]


@pytest.mark.req("CORE-EFF-2")
def test_the_generation_rises_on_retry_and_all_keys_differ():
    world = run(loop(call("a", retry=retry(2)), max_iterations=2))
    world.apply("a")
    world.fail("a")
    world.due()
    world.fail("a")
    assert world.snap().generation == 0
    world.command("retry")
    assert world.snap().generation == 1
    world.apply("a")
    keys = [order.key for order in world.history]
    assert len(keys) == len(set(keys)) == 4


@pytest.mark.req("CORE-EFF-3")
def test_outcomes_of_one_turn_are_taken_in_their_order():
    world = run(parallel([call("a"), noop("a2")], [call("b"), noop("b2")]))
    a, b = (order.key for order in world.orders)
    world.tell(EffectApplied(key=b), EffectApplied(key=a), EffectApplied(key=b))
    assert world.executed == ["p/b", "p/b2", "p/a", "p/a2"]
    assert world.state == "completed"


@pytest.mark.req("CORE-EFF-3")
def test_an_answer_to_a_question_nobody_asked_settles_all_the_same():
    world = one("queryable")
    world.tell(EffectReconciled(key=world.order("a").key, verdict="applied", result={"ok": 1}))
    assert world.data == {"ok": 1}


@pytest.mark.req("CORE-EFF-5")
def test_a_settled_effect_is_not_called_again_by_time_signals_or_another_turn():
    world = run(call("a"), wait(signal="x"))
    world.apply("a")
    for _ in range(3):
        world.after(3_600_000)
        world.signal("custom:y")
    assert len(world.history) == 1
