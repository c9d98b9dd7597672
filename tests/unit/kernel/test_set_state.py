"""States set by a person: every pair of states, by the table of the life cycle and no other way."""

from __future__ import annotations

import pytest

from detent.model.inputs import Commanded, SignalReceived
from tests.unit.kernel.blocks import call, fails, noop, parallel, saga, scope, sleep, sub, wait
from tests.unit.kernel.driver import World, run
from tests.unit.kernel.invariants import MOVES
from tests.unit.kernel.test_pause import in_state

STATES = list(MOVES)
SETTABLE = ("scheduled", "paused", "cancelled", "failed", "completed")
ALLOWED = [(s, t) for s in STATES for t in SETTABLE if t in MOVES[s]]
REFUSED = [(s, t) for s in STATES for t in STATES if (s, t) not in ALLOWED]


def put(world, state, at=None, to="i1"):
    return world.command("set_state", {"state": state, "next_fire_at": at}, to)


@pytest.mark.req("CORE-STM-1", "CORE-STM-6")
@pytest.mark.parametrize(("source", "target"), ALLOWED)
def test_a_move_of_the_table_is_carried_out_and_journaled(source, target):
    world = in_state(source)
    later = world.tick + 50 if source in ("running", "waiting") else None
    verdict = put(world, target, later if target == "scheduled" else None)
    assert verdict.ok, verdict.message
    assert verdict.result["state"] == world.state
    if target == "cancelled" and world.orders:
        world.apply("a")  # a cancel waits until it is known what became of the call
    assert target in world.states()


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_any_other_move_is_refused_and_changes_nothing(source, target):
    world = in_state(source)
    before = world.snap()
    verdict = put(world, target)
    assert (verdict.ok, verdict.code) == (False, "instance.transition")
    after = world.snap()
    assert (after.state, after.root) == (source, before.root)
    assert world.entries("command.refused")


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("target", ["running", "waiting"])
def test_only_the_engine_sets_an_instance_running_or_waiting(target):
    verdict = put(in_state("waiting"), target)
    assert f"only the engine sets an instance {target}" in verdict.message


@pytest.mark.parametrize(
    "args",
    [
        {"state": "done"},
        {},
        {"state": "paused", "next_fire_at": 9},
        {"state": "scheduled", "next_fire_at": "x"},
    ],
)
def test_what_is_no_state_or_no_tick_is_refused(args):
    assert run(call("a")).command("set_state", args).code == "request.invalid"


@pytest.mark.req("CORE-STM-1", "CORE-STM-6")
@pytest.mark.parametrize("blocks", [[wait(signal="x")], [call("x")]])
def test_one_that_waits_set_to_scheduled_looks_again_and_waits_as_before(blocks):
    world = run(*blocks, noop("after"))
    before, root = world.state, world.snap().root
    verdict = put(world, "scheduled")
    assert (verdict.ok, world.state, world.snap().root) == (True, before, root)
    again = ["scheduled", "running"] + (["waiting"] if before == "waiting" else [])
    assert world.states()[-len(again) :] == again
    if before == "waiting":
        world.signal("custom:x")
    else:
        world.apply("x")
    assert (world.state, world.executed[-1]) == ("completed", "after")


def test_one_that_is_to_pause_when_its_wait_ends_must_be_resumed_first():
    world = run(wait(signal="x"))
    world.signal("pause")
    verdict = put(world, "scheduled")
    assert (verdict.code, world.snap().pause_requested) == ("instance.transition", True)


@pytest.mark.req("CORE-STM-1", "CORE-STM-6")
def test_a_paused_instance_set_to_scheduled_goes_on_at_once():
    world = in_state("paused")
    world.apply("a")
    assert world.state == "paused"
    put(world, "scheduled")
    assert world.state == "completed"


@pytest.mark.req("CORE-STM-1")
def test_a_paused_instance_set_to_scheduled_for_later_stands_until_then():
    world = run(call("a"), call("b"))
    world.signal("pause")
    put(world, "scheduled", world.tick + 100)
    assert (world.state, world.decision.due) == ("scheduled", 101)
    world.apply("a", {"x": 1})
    assert (world.state, world.has("b")) == ("scheduled", False), "it is put off, whatever comes"
    world.at(100)
    assert not world.has("b")
    world.at(101)
    assert (world.state, world.has("b")) == ("running", True)
    assert world.entries("wait.completed")[-1][2] == {"kind": "later"}


def test_a_time_that_has_passed_means_now():
    world = run(wait(signal="x"))
    world.signal("pause")
    world.signal("custom:x")
    assert world.state == "paused"
    put(world, "scheduled", 0)
    assert world.state == "completed"


def test_a_start_in_the_future_is_moved_by_the_time_it_is_scheduled_for():
    world = World(noop()).start(at=100)
    world.command("pause")
    put(world, "scheduled", 50)
    assert (world.state, world.decision.due) == ("scheduled", 50)
    world.due()
    assert world.state == "completed"


@pytest.mark.parametrize("steer", ["pause", "cancel"])
def test_what_is_put_off_can_be_paused_and_cancelled(steer):
    world = run(call("a"), noop("b"))
    put(world, "scheduled", 500)
    world.command(steer)
    assert world.state in ("paused", "scheduled", "running", "cancelled")
    world.apply("a")
    if steer == "pause":
        assert world.state == "paused"
        world.command("resume")
        assert world.state == "completed", "a resume does not wait for the time it was put off to"
    else:
        assert world.state == "cancelled"


def test_a_waiting_instance_put_off_takes_its_signal_and_goes_on_later():
    world = run(wait("w", signal="x", store_as="got"), noop("n"))
    put(world, "scheduled", 30)
    world.signal("custom:x", {"v": 1})
    assert (world.state, world.executed) == ("scheduled", [])
    world.at(30)
    assert (world.state, world.executed) == ("completed", ["n"])
    assert world.data["got"] == {"v": 1}


def test_what_is_to_pause_is_not_put_off():
    held = run(wait(signal="x"))
    held.command("pause")
    assert put(held, "scheduled", 99).code == "instance.transition", "a pause is held"


@pytest.mark.req("CORE-STM-1", "CORE-EFF-2")
def test_failed_to_scheduled_is_a_retry_of_the_failed_nodes_now_or_later():
    world = run(noop("n"), call("a"))
    world.fail("a", retryable=False)
    put(world, "scheduled", 40)
    assert (world.state, world.has("a")) == ("scheduled", False)
    world.due()
    world.apply("a")
    assert (world.state, world.executed) == ("completed", ["n", "a"])
    assert world.snap().generation == 1


@pytest.mark.parametrize("target", ["failed", "completed"])
def test_an_end_that_is_set_lets_the_protected_part_drain(target):
    world = run(scope(call("a"), call("b")), call("c"))
    verdict = put(world, target)
    assert (verdict.ok, world.state) == (True, "running")
    assert put(world, target).code == "instance.transition", "it is ending already"
    world.apply("a")
    world.apply("b")
    assert (world.state, world.has("c")) == (target, False)


def test_a_set_failure_compensates_cleans_up_and_can_be_retried():
    world = run(
        saga((call("a"), call("undo")), (call("b"), None)),
        noop("after"),
        on_failure=[noop("clean")],
    )
    world.apply("a")
    put(world, "failed")
    world.apply("b")
    world.apply("undo")
    assert (world.state, world.executed[-1]) == ("failed", "on_failure/clean")
    assert world.error["kind"] == "operator"
    world.command("retry")
    world.apply("a")
    world.apply("b")
    assert world.state == "completed"


@pytest.mark.req("CORE-EFF-2")
def test_a_retry_after_a_set_failure_is_refused_while_its_call_is_open():
    world = run(call("a"))
    put(world, "failed")
    assert world.state == "failed"
    assert world.command("retry").code == "effect.unsettled"
    world.apply("a")
    assert world.command("retry").ok
    assert world.order("a").key != world.history[0].key


def test_a_cancel_overtakes_an_end_that_was_set():
    world = run(scope(call("a")), on_cancel=[noop("bye")])
    put(world, "completed")
    world.command("cancel")
    world.apply("a")
    assert (world.state, world.executed[-1]) == ("cancelled", "on_cancel/bye")


@pytest.mark.req("SEQ-BLK-6")
@pytest.mark.parametrize("target", ["completed", "failed", "cancelled"])
def test_a_child_driven_to_its_end_wakes_the_parent_that_waits_for_it(target):
    world = World(sub("kid"), noop("n"))
    world.define("kid", [call("k")])
    world.start()
    (kid,) = world.children
    assert put(world, target, to=kid).ok
    if target == "cancelled":
        world.apply("k")
    assert world.snap(kid).state == target
    assert world.state == ("completed" if target == "completed" else "failed")


@pytest.mark.req("CORE-STM-6")
def test_the_state_judged_is_the_one_it_came_to_by_an_input_of_the_same_turn():
    world = run(wait("a", signal="x"), wait("b", signal="y"))
    told = Commanded(verb="set_state", id="c", args={"state": "completed"})
    decision = world.tell(SignalReceived(name="custom:x"), told)
    assert decision.verdicts[-1].code == "instance.transition", "it waits again"


@pytest.mark.parametrize("block", [sleep("s", 60_000), parallel([sleep("s", 60_000)], [call("a")])])
def test_completed_is_set_from_running_whatever_runs(block):
    world = run(block)
    put(world, "completed")
    assert world.state == "completed"
    assert world.snap().root is None


def test_a_failed_instance_needs_no_state_twice():
    assert put(run(fails()), "failed").code == "instance.transition"
