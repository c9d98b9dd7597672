"""Pause, resume and retry in every state; a pause is held while an instance waits."""

from __future__ import annotations

import pytest

from detent.model.inputs import SignalReceived
from tests.unit.kernel.blocks import (
    call,
    fails,
    human,
    noop,
    parallel,
    put,
    sleep,
    wait,
)
from tests.unit.kernel.driver import World, run
from tests.unit.kernel.invariants import MOVES

STATES = list(MOVES)
RETRY = {"max_attempts": 3, "initial_backoff": 1000, "max_backoff": 1000}


def in_state(state):
    """An instance that shows a state."""
    match state:
        case "scheduled":
            return World(noop()).start(at=100)
        case "running":
            return run(call("a"))
        case "waiting":
            return run(wait(signal="x"))
        case "paused":
            world = run(call("a"))
            world.signal("pause")
            return world
        case "completed":
            return run(noop())
        case "failed":
            return run(fails())
        case "cancelled":
            world = run(wait(signal="x"))
            world.signal("cancel")
            return world
    raise AssertionError(state)


@pytest.mark.req("CORE-STM-1", "CORE-STM-7")
@pytest.mark.parametrize(
    ("state", "after", "ok"),
    [
        ("scheduled", "paused", True),
        ("running", "paused", True),
        ("waiting", "waiting", True),
        ("paused", "paused", False),
        ("completed", "completed", False),
        ("failed", "failed", False),
        ("cancelled", "cancelled", False),
    ],
)
def test_pause_in_every_state(state, after, ok):
    world = in_state(state)
    before = world.snap()
    verdict = world.command("pause")
    assert (world.state, verdict.ok) == (after, ok)
    if not ok:
        assert verdict.code == "instance.transition"
        assert before.root == world.snap().root
        assert world.entries("command.refused")
    assert world.snap().pause_requested is (state == "waiting")


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("state", STATES)
def test_resume_in_every_state(state):
    world = in_state(state)
    before = world.snap()
    verdict = world.command("resume")
    if state == "paused":
        assert verdict.ok
        assert world.states()[-3:] == ["paused", "scheduled", "running"]
    else:
        assert verdict.code == "instance.transition"
        assert (world.state, world.snap().root) == (state, before.root)


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("state", STATES)
def test_retry_in_every_state(state):
    world = in_state(state)
    verdict = world.command("retry")
    if state == "failed":
        assert verdict.ok
        assert world.states()[-4:] == ["failed", "scheduled", "running", "failed"]
    else:
        assert verdict.code == "instance.transition"
        assert (world.state, world.snap().generation) == (state, 0)


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry"])
def test_a_refusal_names_the_state_and_what_it_would_take(verb):
    message = in_state("completed").command(verb).message
    assert "this one is completed" in message
    assert message.startswith("only a")


@pytest.mark.req("SEQ-SIG-1")
def test_a_pause_interrupts_a_sleep_which_keeps_its_due_tick():
    world = run(sleep("s", 10_000), noop("after"))
    due = world.decision.due
    world.after(1000)
    world.signal("pause")
    assert (world.state, world.decision.due) == ("paused", None)
    world.after(2000)
    world.signal("resume")
    assert (world.state, world.decision.due) == ("running", due)
    world.at(due)
    assert world.state == "completed"
    assert world.outputs["s"] == {"slept_ms": 10_000}


@pytest.mark.req("SEQ-SIG-1")
def test_a_sleep_that_was_due_while_paused_ends_with_the_resume():
    world = run(sleep("s", 1000), noop("after"))
    world.signal("pause")
    world.after(5000)
    assert (world.state, world.executed) == ("paused", [])
    world.signal("resume")
    assert world.state == "completed"


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-5")
def test_an_outcome_during_a_pause_is_kept_and_the_next_step_waits_for_the_resume():
    world = run(call("a"), call("b"))
    world.signal("pause")
    world.apply("a", {"n": 1})
    assert (world.state, world.data, world.executed) == ("paused", {"n": 1}, ["a"])
    assert not world.orders
    world.signal("resume")
    assert world.has("b")


@pytest.mark.req("SEQ-SIG-1")
@pytest.mark.parametrize("end", ["completed", "failed"])
def test_an_instance_whose_last_call_ends_while_paused_ends_with_the_resume(end):
    world = run(call("a"))
    world.signal("pause")
    world.apply("a") if end == "completed" else world.fail("a", retryable=False)
    assert world.state == "paused"
    world.signal("resume")
    assert world.state == end


@pytest.mark.req("SEQ-SIG-1")
def test_a_failure_during_a_pause_waits_for_its_retry_as_usual():
    world = run(call("a", retry=RETRY))
    world.signal("pause")
    world.fail("a")
    assert (world.state, world.decision.due) == ("paused", None)
    world.after(5000)
    assert not world.orders
    world.signal("resume")
    assert world.order("a").attempt == 2


@pytest.mark.req("SEQ-SIG-1")
def test_an_instance_paused_before_its_start_starts_neither_early_nor_by_itself():
    world = World(noop("a")).start(at=100)
    world.signal("pause")
    world.signal("resume")
    assert (world.state, world.decision.due) == ("scheduled", 100)
    assert world.snap().started is None
    world.signal("pause")
    world.at(200)
    assert world.state == "paused"
    world.signal("resume")
    assert world.state == "completed"


@pytest.mark.req("SEQ-SIG-1")
def test_data_may_be_updated_while_paused():
    world = run(sleep("s", 100), put("p", "{{data.n}}"), data={"n": 1})
    world.signal("pause")
    world.signal("update_context", {"n": 2})
    world.after(100)
    world.signal("resume")
    assert world.outputs["p"] == 2


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-8")
def test_the_reason_of_a_pause_is_kept_until_the_resume():
    world = run(call("a"))
    world.command("pause")
    assert world.snap().paused_reason == "operator"
    world.command("resume")
    assert world.snap().paused_reason == ""


@pytest.mark.req("CORE-STM-7")
@pytest.mark.parametrize("how", ["time", "signal"])
def test_a_pause_in_a_wait_is_held_and_takes_effect_before_the_next_step(how):
    world = run(wait(signal="x", duration=5000), noop("after"))
    due = world.decision.due
    world.signal("pause")
    assert (world.state, world.snap().pause_requested) == ("waiting", True)
    assert world.decision.due == due, "the wait keeps its target"
    if how == "time":
        world.at(due)
    else:
        world.signal("custom:x", 1)
    assert (world.state, world.snap().pause_requested) == ("paused", False)
    assert world.executed == []
    assert "w" in world.outputs
    world.signal("resume")
    assert world.state == "completed"


@pytest.mark.req("CORE-STM-7")
def test_a_resume_before_the_wait_ends_withdraws_the_pause():
    world = run(wait(signal="x"), noop("after"))
    world.command("pause")
    assert world.command("resume").ok
    assert not world.snap().pause_requested
    assert [e[0] for e in world.entries() if "pause" in e[0]] == [
        "run.pause_requested",
        "run.pause_withdrawn",
    ]
    world.signal("custom:x")
    assert world.state == "completed"


@pytest.mark.req("CORE-STM-7")
def test_a_second_pause_in_a_wait_is_not_refused_and_changes_nothing():
    world = run(wait(signal="x"))
    assert world.command("pause").ok
    assert world.command("pause").ok
    assert len(world.entries("run.pause_requested")) == 1


@pytest.mark.req("CORE-STM-7")
def test_a_cancel_ends_a_wait_with_a_held_pause_at_once():
    world = run(wait(signal="x"))
    world.signal("pause")
    world.signal("cancel")
    assert world.state == "cancelled"


@pytest.mark.req("CORE-STM-7")
def test_a_pause_held_in_a_persons_gate_holds_the_handler_too():
    world = run(human("h", handler="act"), noop("after"))
    world.signal("pause")
    world.signal("custom:human_input:h", {"value": "yes"})
    assert world.state == "paused"
    assert world.data == {"h": "yes"}, "the answer is taken"
    assert not world.orders
    world.signal("resume")
    assert world.has("act")


@pytest.mark.req("CORE-STM-7")
def test_a_pause_held_in_a_persons_gate_holds_the_escalation_too():
    world = run(human("h", handler="act", timeout=1000, escalation_handler="boss"))
    world.signal("pause")
    world.after(1000)
    assert world.state == "paused"
    assert not world.orders
    world.signal("resume")
    assert world.has("boss")


@pytest.mark.req("CORE-STM-7")
def test_a_pause_that_took_effect_another_way_does_not_pause_twice():
    world = run(
        parallel([wait("w", duration=1000)], [call("a", retry=RETRY)]),
        noop("after"),
        handlers={"a": {"doubt": "once"}},
    )
    world.mark("a")
    world.doubt("a")
    assert world.state == "waiting"
    world.signal("pause")
    world.resolve(world.snap().effects[0].key, "again")
    assert world.state == "running"
    world.signal("pause")
    assert world.state == "paused"
    world.signal("resume")
    world.apply("a")
    world.finish()
    assert world.state == "completed"
    assert world.states().count("paused") == 1


@pytest.mark.req("CORE-STM-7")
@pytest.mark.parametrize("together", [True, False])
def test_a_pause_after_another_input_means_the_same_in_one_turn_or_in_two(together):
    world = run(wait("a", signal="x"), wait("b", signal="y"))
    told = [SignalReceived(name="custom:x"), SignalReceived(name="pause")]
    if together:
        world.tell(*told)
    else:
        for each in told:
            world.tell(each)
    assert world.state == "waiting"
    assert world.snap().pause_requested
    assert len(world.entries("run.pause_requested")) == 1
