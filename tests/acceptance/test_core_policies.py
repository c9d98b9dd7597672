"""Policies: asked before every step and every retry, recorded, failing closed (CORE-POL)."""

from __future__ import annotations

from typing import Any

import pytest

import detent
from detent import loop, sequence, step, wait
from detent.testing import Calls
from tests.acceptance.stage import HOUR_MS, actions, finished, moves, state, virtual


@pytest.fixture
def calls():
    return Calls()


def policy_of(*answers, name="guard"):
    """A policy that gives its answers in turn, the last for ever, and what it was told."""
    asked = []

    @detent.policy(name)
    def guard(step: str, handler: str, params: Any, data: Any, attempt: int):
        asked.append((step, handler, params, data, attempt))
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return guard, asked


def guarded(calls, guard, *answers, retry=None):
    """An engine, and a definition of one guarded call between two computing steps."""
    act = calls.handler("act", *answers)
    definition = sequence(
        "s",
        step("before", "noop"),
        step("a", act, params={"n": 1}, retry=retry),
        step("after", "noop"),
        policies=[{"handler": guard}],
    )
    return virtual(handlers=[act, guard]), definition


@pytest.mark.req("CORE-POL-1")
def test_an_allowed_step_acts_and_the_verdict_is_recorded(calls):
    guard, asked = policy_of(detent.allow())
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        shown = finished(engine, definition, {"x": 1})
        assert shown.summary.state == "completed"
        assert asked == [("a", "act", {"n": 1}, {"x": 1}, 1)]
        (entry,) = engine.inspect.audit(shown.summary.id, action="policy.evaluated")
        assert entry.node == "a"
        assert entry.detail == {"policy": "guard", "allowed": True}
        assert engine.replay(shown.summary.id).identical


REFUSALS = {
    "fail": (detent.fail("no"), "failed"),
    "skip": (detent.skip("no"), "completed"),
    "pause": (detent.pause("no"), "paused"),
}


@pytest.mark.req("CORE-POL-1", "CORE-STM-2")
@pytest.mark.parametrize("action", REFUSALS)
def test_a_refused_step_is_not_called_and_what_follows_is_the_policy_s_choice(calls, action):
    answer, end = REFUSALS[action]
    guard, _ = policy_of(answer)
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        shown = finished(engine, definition)
        assert shown.summary.state == end
        assert calls.made == ()
        (entry,) = engine.inspect.audit(shown.summary.id, action="policy.evaluated")
        assert entry.detail["allowed"] is False
        assert entry.detail["reason"] == "no"
        assert ("after" in shown.outputs) == (end == "completed")
        if end == "completed":
            (skipped,) = engine.inspect.audit(shown.summary.id, action="step.skipped")
            assert skipped.node == "a"


@pytest.mark.req("CORE-STM-2", "CORE-POL-1")
def test_a_pause_by_policy_is_released_by_a_person_and_by_nothing_else(calls):
    guard, _ = policy_of(detent.pause("budget"))
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        instance = finished(engine, definition).summary.id
        assert "budget" in engine.inspect.show(instance).paused_reason
        engine.advance(30 * 24 * HOUR_MS)
        assert state(engine, instance) == "paused"
        assert calls.made == ()
        engine.resume(instance)
        assert engine.wait_for(instance) == "completed"
        assert calls.count("act") == 1
        assert "policy.released" in actions(engine, instance)


@pytest.mark.req("CORE-POL-1")
def test_a_deferred_step_is_asked_again_at_its_time_and_goes_on_by_itself(calls):
    guard, asked = policy_of(detent.defer("later", for_ms=HOUR_MS), detent.allow())
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        instance = engine.start(definition)
        engine.advance(0)
        assert state(engine, instance) == "scheduled"
        engine.advance(HOUR_MS - 100)
        assert calls.made == ()
        engine.advance(100)
        assert state(engine, instance) == "completed"
        assert len(asked) == 2


@pytest.mark.req("CORE-POL-1")
def test_a_retry_cannot_pass_round_the_policy(calls):
    guard, asked = policy_of(detent.allow(), detent.allow(), detent.fail("enough"))
    retry = detent.retry(5, initial_backoff="1s")
    engine, definition = guarded(calls, guard, detent.Failed("no"), retry=retry)
    with engine:
        shown = finished(engine, definition)
        assert shown.summary.state == "failed"
        assert shown.error["message"] == "enough"
        assert [attempt for *_, attempt in asked] == [1, 2, 3]
        assert calls.count("act") == 2


@pytest.mark.req("CORE-POL-1")
def test_an_operator_s_retry_cannot_pass_round_the_policy(calls):
    guard, asked = policy_of(detent.fail("no"))
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        instance = finished(engine, definition).summary.id
        engine.retry(instance)
        assert engine.wait_for(instance) == "failed"
        assert len(asked) == 2
        assert calls.made == ()


UNCLEAR = {
    "an exception": RuntimeError("broken"),
    "nothing": None,
    "true": True,
    "a dict": {"allowed": True},
    "text": "yes",
}


@pytest.mark.req("CORE-POL-2")
@pytest.mark.parametrize("answer", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_a_policy_that_gives_no_clear_answer_fails_closed(calls, answer):
    guard, _ = policy_of(answer)
    engine, definition = guarded(calls, guard, {"ok": 1})
    with engine:
        shown = finished(engine, definition)
        assert shown.summary.state == "failed"
        assert shown.error["kind"] == "authorization"
        assert calls.made == ()


@pytest.mark.req("CORE-POL-2")
def test_a_policy_that_nobody_can_answer_any_more_fails_closed(calls, tmp_path):
    guard, _ = policy_of(detent.allow())
    act = calls.handler("act", {})
    path = tmp_path / "store.db"
    definition = sequence(
        "s", wait("w", signal="go"), step("a", act), policies=[{"handler": guard}]
    )
    with virtual(path, [act, guard]) as engine:
        instance = engine.start(definition)
    with virtual(path, [act]) as engine:
        engine.signal(instance, "go")
        assert engine.wait_for(instance) == "failed"
    assert calls.made == ()


@pytest.mark.req("CORE-POL-2")
def test_a_data_policy_is_evaluated_purely_and_holds_for_every_step(calls):
    act = calls.handler("act", {})
    budget = {"kind": "effect_budget", "params": {"max_effects": 3, "action": "fail"}}
    body = loop("l", "true", step("a", act), max_iterations=10)
    with virtual(handlers=[act]) as engine:
        shown = finished(engine, sequence("s", step("n", "noop"), body, policies=[budget]))
        assert shown.summary.state == "failed"
        assert calls.count("act") == 3
        judged = engine.inspect.audit(shown.summary.id, action="policy.evaluated")
        assert [entry.detail["allowed"] for entry in judged] == [True] * 4 + [False]
        assert engine.replay(shown.summary.id).identical


@pytest.mark.req("CORE-POL-1")
def test_policies_of_the_engine_hold_for_everything_started_there(calls):
    guard, asked = policy_of(detent.allow())
    act = calls.handler("act", {})
    with virtual(handlers=[act, guard], policies=[guard]) as engine:
        shown = finished(engine, sequence("s", step("a", act), step("b", act)))
        assert shown.summary.state == "completed"
        assert [told[0] for told in asked] == ["a", "b"]


@pytest.mark.req("CORE-POL-1")
def test_all_policies_must_allow_and_the_first_refusal_decides(calls):
    first, asked_first = policy_of(detent.allow(), name="first")
    second, asked_second = policy_of(detent.fail("second says no"), name="second")
    third, asked_third = policy_of(detent.allow(), name="third")
    act = calls.handler("act", {})
    guards = [{"handler": each} for each in (first, second, third)]
    with virtual(handlers=[act, first, second, third]) as engine:
        shown = finished(engine, sequence("s", step("a", act), policies=guards))
        assert shown.error["message"] == "second says no"
        assert (len(asked_first), len(asked_second), len(asked_third)) == (1, 1, 0)
        assert moves(engine, shown.summary.id)[-1] == ("running", "failed")
