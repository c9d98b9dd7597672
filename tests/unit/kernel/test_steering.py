"""Steering by people: data, due times, and resuming from a block."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.model.inputs import Commanded
from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    human,
    loop,
    noop,
    parallel,
    put,
    retry,
    scope,
    sleep,
    sub,
    wait,
)
from tests.unit.kernel.driver import World, run
from tests.unit.kernel.invariants import MOVES
from tests.unit.kernel.test_pause import in_state

STATES = list(MOVES)


# data ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-CTX-1")
@pytest.mark.parametrize("state", STATES)
def test_data_is_replaced_in_every_state_and_nothing_else_is(state):
    world = in_state(state)
    before = world.snap()
    assert world.command("set_data", {"data": {"b": 2}, "config": {"x": 1}}).ok
    after = world.snap()
    assert after.data == {"b": 2}
    assert (after.config, after.state, after.root) == (before.config, before.state, before.root)
    assert world.entries("data.replaced") == [("data.replaced", "", {"in": 0})]


@pytest.mark.req("SEQ-CTX-1")
def test_replaced_data_is_what_the_next_step_sees():
    world = World(call("a"), put("b", {"v": "{{ data.v }}"})).start({"v": 1, "old": True})
    world.command("set_data", {"data": {"v": 2}})
    world.apply("a", {})
    assert world.outputs["b"] == {"v": 2}
    assert world.data == {"v": 2}


def test_data_over_the_limit_is_refused_and_at_the_limit_it_is_taken():
    world = run(call("a"))
    room = limits.CONTEXT_BYTES - len('{"v":""}')
    assert world.command("set_data", {"data": {"v": "x" * room}}).ok
    verdict = world.command("set_data", {"data": {"v": "y" * (room + 1)}})
    assert (verdict.ok, verdict.code) == (False, "payload.too_large")
    assert world.data["v"][0] == "x"


# due times -------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize(
    ("block", "due"),
    [
        (noop("n", delay={"duration": 10_000}), 101),
        (call("a", retry=retry(3, 10_000)), 101),
        (loop(noop("b"), poll_interval=10, max_iterations=2), 101),
    ],
)
@pytest.mark.parametrize("offset", [5_000, -5_000, 0])
def test_the_due_time_of_a_scheduled_instance_is_moved(block, due, offset):
    world = run(block)
    if world.orders:
        world.fail()
    assert (world.state, world.decision.due) == ("scheduled", due)
    verdict = world.command("reschedule", {"offset_ms": offset})
    assert verdict.result == {"state": "scheduled", "next_fire_at": due + offset // 100}
    assert world.decision.due == due + offset // 100
    assert world.entries("wait.moved")[0][2]["was"] == due


@pytest.mark.req("SEQ-OPS-1")
def test_a_start_moved_to_the_past_starts_in_the_same_turn():
    world = World(noop()).start(at=1000)
    verdict = world.command("reschedule", {"offset_ms": -1_000_000})
    assert verdict.ok
    assert world.state == "completed"


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize("state", [state for state in STATES if state != "scheduled"])
def test_what_is_not_scheduled_has_no_due_time_to_move(state):
    world = in_state(state)
    before = world.snap()
    assert world.command("reschedule", {"offset_ms": 1000}).code == "instance.transition"
    assert world.snap().root == before.root


@pytest.mark.parametrize("offset", [None, 1.5, "1s", True, limits.DURATION_MS + 1])
def test_an_offset_is_a_bounded_number_of_milliseconds(offset):
    world = World(noop()).start(at=100)
    assert world.command("reschedule", {"offset_ms": offset}).code == "request.invalid"
    assert world.decision.due == 100


def test_a_due_time_is_not_moved_beyond_every_duration():
    world = World(noop()).start(at=100)
    assert world.command("reschedule", {"offset_ms": limits.DURATION_MS}).code == "request.invalid"


def test_an_instance_is_not_put_off_beyond_every_duration():
    world = World(noop()).start(at=100)
    args = {"state": "scheduled", "next_fire_at": 2**62}
    assert world.command("set_state", args).code == "request.invalid"
    assert world.decision.due == 100


def test_only_what_makes_an_instance_scheduled_is_moved():
    world = run(parallel([noop("d", delay={"duration": 10_000})], [wait("w", duration=3_000)]))
    world.command("reschedule", {"offset_ms": 60_000})
    assert [entry[1] for entry in world.entries("wait.moved")] == ["p/d"]
    assert world.decision.due == 31, "the timer keeps its target"


# resuming from a block -------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "CORE-EFF-2")
def test_a_failed_instance_is_resumed_from_a_block_before_the_failed_one():
    world = run(noop("a"), call("b"), noop("c"), fails("d"))
    world.apply("b", {"n": 1})
    verdict = world.command("resume_from", {"block": "b", "data": {"more": True}})
    assert verdict.result == {
        "resumed_from": "b",
        "outputs_deleted": 2,
        "signals_enqueued": 0,
        "state": "running",
    }
    assert list(world.outputs) == ["a"]
    assert world.data == {"n": 1, "more": True}
    first, second = [order for order in world.history if order.handler == "b"]
    assert first.key != second.key, "a new generation has keys of its own"
    assert world.entries("blocks.reset")[0][2] == {"block": "b", "wiped": ["b", "c"]}


@pytest.mark.req("SEQ-OPS-1")
def test_a_paused_instance_is_resumed_from_a_block_and_its_open_parts_are_let_go():
    world = run(noop("a"), parallel([sleep("s", 60_000)], [noop("x")]), noop("z"))
    world.signal("pause")
    assert world.command("resume_from", {"block": "a"}).result["outputs_deleted"] == 2
    assert world.snap().paused_reason == ""
    world.finish()
    assert world.executed == ["a", "p/x", "a", "p/x", "p/s", "z"]


@pytest.mark.req("SEQ-OPS-1")
def test_a_block_ahead_is_where_it_goes_on():
    world = run(fails("a"), noop("b"), noop("c"))
    world.command("resume_from", {"block": "c"})
    assert (world.state, world.executed) == ("completed", ["c"])


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize("state", [s for s in STATES if s not in ("failed", "paused")])
def test_only_a_failed_or_paused_instance_is_resumed_from_a_block(state):
    world = in_state(state)
    before = world.snap()
    block = world.program.main[0].id
    verdict = world.command("resume_from", {"block": block})
    assert (verdict.ok, verdict.code) == (False, "instance.transition")
    assert ("fork" in verdict.message) == (state in ("completed", "cancelled"))
    assert world.snap().root == before.root
    assert world.snap().generation == 0


@pytest.mark.parametrize("block", ["nobody", "inner", None, ""])
def test_the_block_must_be_of_the_top_level(block):
    world = run(attempt([fails("inner")], [fails("again")]))
    verdict = world.command("resume_from", {"block": block})
    assert (verdict.ok, verdict.code, world.state) == (False, "request.invalid", "failed")


@pytest.mark.req("CORE-EFF-2")
@pytest.mark.parametrize(("block", "code"), [("a", "effect.unsettled"), ("p", "effect.unsettled")])
def test_it_is_refused_while_a_call_of_what_is_repeated_is_not_settled(block, code):
    world = run(noop("a"), parallel([call("x")], [call("y")]), noop("z"))
    world.signal("pause")
    assert world.command("resume_from", {"block": block}).code == code
    assert world.state == "paused"
    world.apply("x")
    world.apply("y")
    assert world.command("resume_from", {"block": block}).ok


@pytest.mark.req("CORE-EFF-2")
def test_a_call_that_is_not_repeated_is_settled_unwanted():
    world = run(call("a"), noop("z"))
    world.signal("pause")
    assert world.command("resume_from", {"block": "z"}).ok
    assert world.state == "completed"
    assert world.snap().effects[0].unwanted
    world.apply("a")
    assert world.snap().effects == []


def test_signals_wait_for_the_blocks_that_are_repeated():
    world = run(human("h", timeout=1000), noop("n"))
    world.due()
    assert world.state == "failed"
    signals = [
        {"name": "custom:human_input:h", "payload": {"value": "yes"}},
        {"name": "update_context", "payload": {"data": {"k": 1}}},
    ]
    verdict = world.command("resume_from", {"block": "h", "signals": signals})
    assert verdict.result["signals_enqueued"] == 1
    assert (world.state, world.data) == ("completed", {"k": 1, "h": "yes"})


def test_data_that_would_be_too_large_is_refused_with_nothing_wiped():
    world = World(noop("a"), fails("b")).start({"v": "x" * (limits.CONTEXT_BYTES - 100)})
    verdict = world.command("resume_from", {"block": "a", "data": {"w": "y" * 200}})
    assert (verdict.code, list(world.outputs), world.state) == (
        "payload.too_large",
        ["a"],
        "failed",
    )


def test_a_child_of_what_is_let_go_is_cancelled():
    world = World(parallel([sub("kid")], [sleep("s", 50_000)]))
    world.define("kid", [wait("w", signal="x")])
    world.start()
    world.signal("pause")
    world.command("resume_from", {"block": "p"})
    first, second = world.children
    assert world.snap(first).state == "cancelled"
    assert world.snap(second).state == "waiting"


def test_an_instance_that_is_being_cancelled_is_not_resumed_from_a_block():
    world = run(scope(call("a")), noop("b"))
    world.command("cancel")
    world.command("pause")
    assert world.state == "paused"
    assert world.command("resume_from", {"block": "b"}).code == "instance.transition"


# all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["set_data", "set_state", "reschedule", "resume_from", "inject"])
def test_the_engines_own_instances_are_not_steered(verb):
    world = World(call("a")).start(namespace="detent")
    assert world.command(verb, {}).code == "request.invalid"


@pytest.mark.req("SEQ-OPS-1", "CORE-AUD-2")
@pytest.mark.parametrize(("verb", "noted"), [("pause", True), ("resume", False)])
def test_a_bulk_action_is_noted_where_it_was_carried_out(verb, noted):
    world = run(call("a"))
    world.tell(Commanded(verb=verb, id="b:i1", batch="b"))
    told = [("batch.action", "", {"action": verb, "batch": "b", "state": "running"})]
    assert world.entries("batch.action") == (told if noted else [])
