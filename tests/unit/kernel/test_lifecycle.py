"""The state machine: the literal table, pause and resume in every state, and one entry per move."""

from __future__ import annotations

import pytest

from detent.kernel.lifecycle import INSTANCE, check_move
from detent.kernel.step import step
from detent.model.errors import InvariantViolation
from detent.model.inputs import SignalReceived, Started, encode_input
from tests.unit.kernel.blocks import (
    call,
    fails,
    human,
    loop,
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


@pytest.mark.req("CORE-STM-1")
def test_the_engine_has_exactly_the_table_of_the_requirement():
    assert {state: set(targets) for state, targets in INSTANCE.items()} == {
        state: set(targets) for state, targets in MOVES.items()
    }


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize(
    ("blocks", "state"),
    [
        ([call("a", delay={"duration": 500})], "scheduled"),
        ([loop(noop(), poll_interval=1)], "scheduled"),
        ([call("a")], "running"),
        ([sleep("s", 500)], "running"),
        ([wait(duration=500)], "waiting"),
        ([wait(signal="x")], "waiting"),
        ([human("h")], "waiting"),
        ([parallel([sleep("s", 500)], [wait(signal="x")])], "running"),
        ([parallel([call("a", delay={"duration": 500})], [wait(signal="x")])], "scheduled"),
        ([parallel([call("a")], [call("b", delay={"duration": 500})])], "running"),
        ([noop()], "completed"),
        ([fails()], "failed"),
    ],
)
def test_what_an_instance_stands_at_decides_the_state_it_shows(blocks, state):
    assert run(*blocks).state == state


@pytest.mark.req("CORE-STM-1")
def test_the_shown_state_follows_the_branches_that_are_left():
    world = run(
        parallel([sleep("s", 500)], [call("a", delay={"duration": 900})], [wait(signal="x")])
    )
    assert world.state == "running"
    world.after(500)
    assert world.state == "scheduled"
    world.after(400)
    world.apply("a")
    assert world.state == "waiting"
    assert world.states() == ["scheduled", "running", "scheduled", "running", "waiting"]


@pytest.mark.req("CORE-STM-1")
def test_an_instance_due_later_is_scheduled_until_its_tick():
    world = World(noop("a")).start(at=100)
    assert (world.state, world.decision.due) == ("scheduled", 100)
    world.at(99)
    assert world.state == "scheduled"
    world.at(100)
    assert world.state == "completed"
    assert [entry[0] for entry in world.entries() if entry[0].startswith("run.")] == [
        "run.created",
        "run.started",
        "run.completed",
    ]


@pytest.mark.req("CORE-STM-1")
def test_a_start_tick_that_has_passed_starts_at_once():
    world = World(noop())
    world.tick = 50
    assert world.start(at=50).state == "completed"


@pytest.mark.req("CORE-STM-2", "CORE-STM-6")
def test_the_rows_of_the_seeds_table_each_leave_one_entry():
    world = run(call("a"), wait(duration=1000), noop("n"))
    world.apply("a")
    world.after(1000)
    moves = [entry for entry in world.entries() if isinstance(entry[2], dict) and "to" in entry[2]]
    assert [(e[0], e[2]["from"], e[2]["to"]) for e in moves] == [
        ("run.started", "scheduled", "running"),
        ("run.waiting", "running", "waiting"),
        ("run.running", "waiting", "running"),
        ("run.completed", "running", "completed"),
    ]
    assert all(entry[2]["trigger"] for entry in moves)


@pytest.mark.req("CORE-STM-2")
def test_a_step_failure_never_leaves_the_instance_running_and_nothing_is_passed_over():
    world = run(noop("a"), fails("bad"), noop("never"))
    assert world.state == "failed"
    assert world.executed == ["a"]
    assert world.nodes("step.skipped") == []


@pytest.mark.req("CORE-STM-1")
def test_a_failed_instance_keeps_its_error_and_place_and_others_keep_nothing():
    world = run(noop("a"), fails("bad", message="why"))
    snap = world.snap()
    assert (snap.error["message"], snap.error["block"], snap.error["node"]) == ("why", "bad", "bad")
    assert snap.root is not None
    assert run(noop()).snap().root is None


@pytest.mark.req("CORE-STM-4")
def test_every_turn_adds_one_to_the_version_and_an_idle_one_adds_nothing():
    world = run(wait(signal="x"))
    assert world.decision.version == 1
    decision = world.tell()
    assert (decision.version, decision.journal) == (1, b"")
    world.signal("custom:y")
    assert world.decision.version == 2


@pytest.mark.req("CORE-STM-3")
def test_a_step_sees_the_events_of_its_own_turn_and_earlier_ones_only():
    world = run(wait(signal="go"), put("p", "{{data.n}}"), wait("w2", signal="end"))
    world.tell(
        SignalReceived(name="update_context", payload={"n": 1}),
        SignalReceived(name="custom:go"),
        SignalReceived(name="update_context", payload={"n": 2}),
    )
    assert world.outputs["p"] == 1
    assert world.data == {"n": 2}


def test_an_instance_is_born_once_by_a_start_alone():
    world = run(wait(signal="x"))
    world.tell(Started(instance="i1", definition=world.program.hash))
    assert world.state == "waiting"
    assert world.entries("event.ignored")[0][2]["why"] == "the instance exists already"
    for told in (SignalReceived(name="pause"), Started(instance="i1", definition="another")):
        with pytest.raises(InvariantViolation):
            step(world.program, None, [encode_input(told)], 1, world._facts({}))


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("source", STATES)
@pytest.mark.parametrize("target", STATES)
def test_a_move_that_is_not_in_the_table_raises(source, target):
    if target in MOVES[source]:
        check_move(source, target)
    else:
        with pytest.raises(InvariantViolation):
            check_move(source, target)
