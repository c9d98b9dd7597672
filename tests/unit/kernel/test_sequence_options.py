"""What a sequence or a start says about the whole run: service levels, interceptors, budgets."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import call, fails, human, loop, noop, parallel, sleep, sub, wait
from tests.unit.kernel.driver import World, run

BREACH = "sla.breached"


# service levels ----------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_told_once_and_fails_nothing():
    world = run(wait("w", signal="x"), noop(), sla={"max_runtime": 5_000})
    assert world.decision.due == 51
    world.due()
    assert world.entries(BREACH) == [
        (BREACH, "", {"kind": "max_runtime", "limit_ms": 5_000, "elapsed_ms": 5_000})
    ]
    assert (world.state, world.decision.due) == ("waiting", None)
    world.signal("custom:x")
    assert (world.state, len(world.entries(BREACH))) == ("completed", 1)


def test_a_run_in_time_is_not_told():
    world = run(wait("w", duration=4_900), sla={"max_runtime": 5_000, "max_step_runtime": 100})
    world.finish()
    assert (world.state, world.entries(BREACH)) == ("completed", [])


def test_a_step_that_takes_too_long_is_told_with_its_node_and_no_second_one_is():
    world = run(
        parallel([call("a")], [call("b")]),
        call("c"),
        sla={"max_step_runtime": 2_000},
    )
    world.due()
    assert [(entry[1], entry[2]["kind"]) for entry in world.entries(BREACH)] == [
        ("p/a", "max_step_runtime")
    ]
    world.apply("a")
    world.apply("b")
    world.after(10_000)
    world.apply("c")
    assert (world.state, len(world.entries(BREACH))) == ("completed", 1)


@pytest.mark.parametrize("hold", ["pause", "put off"])
def test_a_breach_is_told_while_the_instance_is_held(hold):
    world = run(sleep("s", 60_000), sla={"max_runtime": 3_000})
    if hold == "pause":
        world.command("pause")
    else:
        world.command("set_state", {"state": "scheduled", "next_fire_at": 900})
    state = world.state
    world.at(31)
    assert (world.state, len(world.entries(BREACH))) == (state, 1)


def test_an_ended_instance_breaches_nothing_and_a_retry_goes_on_counting():
    world = run(call("a"), sla={"max_runtime": 3_000, "max_step_runtime": 3_000})
    world.fail("a", retryable=False)
    assert (world.state, world.decision.due) == ("failed", None)
    world.tick = 100
    world.command("retry")
    assert [entry[2]["kind"] for entry in world.entries(BREACH)] == ["max_runtime"]
    world.due()
    assert [entry[2]["kind"] for entry in world.entries(BREACH)] == [
        "max_runtime",
        "max_step_runtime",
    ]


# interceptors ------------------------------------------------------------------------------------

ALL = {
    moment: {"handler": "log", "params": {"at": moment}}
    for moment in ("before_step", "after_step", "on_signal", "on_complete", "on_failure")
}


def rows(world):
    return [(entry[1], entry[2]["output"]) for entry in world.entries("interceptor.recorded")]


def test_interceptors_leave_rows_at_their_moments_and_call_nothing():
    world = run(call("a"), noop("b"), interceptors=ALL)
    world.signal("custom:hi", {"v": 1})
    world.apply("a")
    assert rows(world) == [
        ("_interceptor:before:a", {"at": "before_step"}),
        ("_interceptor:on_signal", {"at": "on_signal", "_signal": "custom:hi"}),
        ("_interceptor:after:a", {"at": "after_step"}),
        ("_interceptor:before:b", {"at": "before_step"}),
        ("_interceptor:after:b", {"at": "after_step"}),
        ("_interceptor:on_complete", {"at": "on_complete"}),
    ]
    assert [order.handler for order in world.history] == ["a"]
    assert list(world.outputs) == ["a", "b"]
    actions = [entry[0] for entry in world.entries()]
    assert actions.index("run.completed") == len(actions) - 1


def test_a_failure_is_intercepted_before_the_instance_has_failed():
    retried = fails(
        "a", retryable=True, retry={"max_attempts": 2, "initial_backoff": 0, "max_backoff": 0}
    )
    world = run(retried, interceptors=ALL)
    assert [name for name, _ in rows(world)] == ["_interceptor:before:a", "_interceptor:on_failure"]


def test_only_the_moments_that_are_named_leave_rows():
    world = run(noop("a"), interceptors={"after_step": {"handler": "log"}})
    assert rows(world) == [("_interceptor:after:a", None)]


# budgets -----------------------------------------------------------------------------------------


def budgeted(*blocks, **budget):
    return World(*blocks).start(budget=budget)


@pytest.mark.req("SEQ-OPS-1")
def test_a_step_too_many_pauses_before_it_and_shows_why():
    world = budgeted(noop("a"), noop("b"), noop("c"), noop("d"), max_steps=2)
    snapshot = world.snap()
    assert (snapshot.state, snapshot.paused_reason) == ("paused", "budget_exceeded")
    assert snapshot.budget_breach == {"limit": "max_steps", "max": 2, "used": 2}
    assert world.executed == ["a", "b"]


@pytest.mark.parametrize("most", [2, 3])
def test_a_budget_that_is_just_enough_is_no_hindrance(most):
    assert budgeted(noop("a"), noop("b"), max_steps=most).state == "completed"


def test_a_budget_of_no_steps_lets_nothing_act():
    world = budgeted(call("a"), max_steps=0)
    assert (world.state, world.history) == ("paused", [])


@pytest.mark.parametrize(
    ("budget", "usage"),
    [
        ({"max_total_tokens": 100}, {"total_tokens": 51}),
        ({"max_total_tokens": 100}, {"input_tokens": 50, "output_tokens": 1}),
        ({"max_input_tokens": 100}, {"prompt_tokens": 51, "completion_tokens": 5}),
        ({"max_output_tokens": 100}, {"completion_tokens": 51}),
    ],
)
def test_tokens_are_summed_over_calls_and_the_step_after_too_many_is_held(budget, usage):
    world = budgeted(call("a"), call("b"), call("c"), **budget)
    world.apply("a", {"usage": usage})
    assert world.state == "running"
    world.apply("b", {"usage": usage})
    assert (world.state, world.has("c")) == ("paused", False)
    assert world.snap().budget_breach["used"] == 102


@pytest.mark.parametrize("usage", [None, 5, {}, {"total_tokens": -5}, {"total_tokens": "9"}])
def test_what_is_no_usage_costs_nothing(usage):
    world = budgeted(call("a"), noop("b"), max_total_tokens=0)
    world.apply("a", {"usage": usage})
    assert world.state == "completed"


def test_the_tokens_of_a_call_that_is_no_longer_wanted_count_too():
    world = budgeted(call("a", deadline=1000), noop("b"), max_total_tokens=10)
    world.due()
    assert world.state == "failed"
    world.apply("a", {"usage": {"total_tokens": 11}})
    assert world.snap().spent == {"total": 11}


def test_a_resume_lifts_the_number_that_was_exceeded_and_no_other():
    world = budgeted(noop("a"), call("b"), noop("c"), noop("d"), max_steps=1, max_total_tokens=5)
    world.command("resume")
    assert (world.state, world.snap().budget) == ("running", {"max_total_tokens": 5})
    assert world.snap().budget_breach is None
    world.apply("b", {"usage": {"total_tokens": 6}})
    assert world.snap().budget_breach["limit"] == "max_total_tokens"
    world.command("set_state", {"state": "scheduled"})
    assert (world.state, world.snap().budget) == ("completed", None)


def test_every_branch_is_held_when_one_goes_over():
    world = budgeted(
        parallel([noop("a"), noop("b")], [wait("w", duration=100), noop("c")]), max_steps=1
    )
    assert world.state == "paused"
    assert world.executed == ["p/a"]


def test_a_loop_is_stopped_by_its_budget():
    world = budgeted(loop(noop("x"), max_iterations=1000), max_steps=10)
    assert (world.state, len(world.executed)) == ("paused", 10)


def test_a_child_has_the_session_and_the_budget_of_its_parent():
    world = World(sub("kid"))
    world.define("kid", [noop("x"), noop("y")])
    world.start(session="s1", budget={"max_steps": 1})
    (kid,) = world.children
    assert (world.snap(kid).session, world.snap(kid).budget) == ("s1", {"max_steps": 1})
    assert world.snap(kid).state == "paused"


def test_a_person_who_answers_does_not_spend_a_step():
    world = budgeted(human("h"), max_steps=1)
    world.signal("custom:human_input:h", {"value": "yes"})
    assert world.state == "completed"
