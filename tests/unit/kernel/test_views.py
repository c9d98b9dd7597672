"""Audit, outputs and timeline as the contract shows them."""

from __future__ import annotations

import pytest

from detent.kernel.places import Places
from detent.kernel.views import OutputReader, audit, noted, outputs, timeline, transitions
from detent.model import limits
from detent.model.inputs import ChildEnded
from tests.unit.kernel.worlds import World, a_program, a_step


def started(*blocks, **more):
    world = World(a_program(list(blocks), **more))
    world.start({"items": [1, 2]}, tick=1)
    return world


def shown(world):
    return [(row.block, row.output) for row in outputs(world.rows, world.program, world.blobs)]


def test_outputs_come_in_the_order_of_creation_and_a_noop_has_one_too():
    world = started(a_step("a"), a_step("n", "noop"), a_step("b"))
    world.apply({"x": 1})
    assert shown(world) == [("a", {"x": 1}), ("n", {})]
    world.apply([1, 2])
    assert shown(world) == [("a", {"x": 1}), ("n", {}), ("b", [1, 2])]


def test_every_iteration_of_every_body_block_has_its_own_row():
    inner = {
        "type": "loop",
        "id": "in",
        "condition": "true",
        "max_iterations": 2,
        "body": [a_step("n", "noop")],
    }
    outer = {"type": "for_each", "id": "out", "collection": "items", "body": [inner]}
    blocks = [block for block, _ in shown(started(outer))]
    assert blocks.count("n") == 4
    assert blocks.count("in") == 2
    assert blocks.count("out") == 1


def test_only_the_iterations_a_loop_retains_are_shown():
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": 5,
        "retain_iterations": 2,
        "body": [a_step("n", "noop")],
    }
    world = started(loop)
    nodes = [row.node for row in outputs(world.rows, world.program, world.blobs)]
    assert nodes == ["l[3]/n", "l[4]/n", "l"]


def test_a_flat_failure_leaves_an_error_row_that_a_retry_takes_back():
    world = started(a_step("a"), a_step("b"))
    world.apply({"x": 1})
    world.fail("no way", retryable=False)
    rows = outputs(world.rows, world.program, world.blobs)
    assert rows[-1].ref == "__error__"
    assert rows[-1].output == {"__error__": True, "retryable": False, "message": "no way"}
    world.command("retry")
    assert shown(world) == [("a", {"x": 1})]


def test_a_failure_in_a_tree_leaves_no_row():
    block = {"type": "try_catch", "id": "t", "try_block": [a_step("f", "fail")], "catch_block": []}
    assert shown(started(block)) == []


def test_a_skipped_step_has_no_row():
    assert shown(started(a_step("a", "noop", when="false"))) == []


def test_an_answer_of_a_person_is_the_first_row_of_its_block():
    world = started(a_step("h", wait_for_input={"prompt": "ok?"}))
    world.signal("custom:human_input:h", {"value": "yes"})
    world.apply({"done": True})
    assert shown(world) == [("h", {"value": "yes", "_human_gate": True}), ("h", {"done": True})]


def test_equal_small_values_of_a_call_and_a_move_after_it_are_both_shown():
    """The journal leaves an output out where it is the very value the call brought."""
    world = started(a_step("a"), a_step("t", "transform", params=True))
    world.apply(True)
    assert shown(world) == [("a", True), ("t", True)]


def test_a_decision_of_a_person_and_a_large_result_are_shown_whole():
    text = "x" * (limits.BLOB_BYTES + 1)
    world = started(a_step("a"))
    world.apply({"text": text})
    assert shown(world) == [("a", {"text": text})]


def test_a_child_gives_its_outputs_as_the_output_of_its_block():
    child = a_program([a_step("x")])
    program = a_program([{"type": "sub_sequence", "id": "s", "sequence_name": "story"}])
    world = World(program, child, children={"story": child.hash})
    world.start(tick=1)
    wait = world.snapshot.root.lanes[0].open.wait
    rows = ({"block_id": "x", "output": 1},)
    world.tell(ChildEnded(child=wait.name, token=wait.token, state="completed", outputs=rows))
    assert shown(world) == [("s", [{"block_id": "x", "output": 1}])]


def test_the_attempt_that_succeeded_is_named():
    retry = {"max_attempts": 3, "initial_backoff": 100, "max_backoff": 100}
    world = started(a_step("a", retry=retry))
    world.fail("no")
    world.tell(tick=world.decision.due)
    world.apply({})
    assert [row.attempt for row in outputs(world.rows, world.program, world.blobs)] == [2]


@pytest.mark.req("CORE-AUD-4")
def test_audit_entries_have_ids_and_can_be_asked_for_by_action_and_node():
    world = started(a_step("a"), a_step("b")).finish()
    entries = list(audit(world.rows, world.blobs))
    assert [entry.id for entry in entries[:2]] == ["1.0", "1.1"]
    assert len({entry.id for entry in entries}) == len(entries)
    runs = list(audit(world.rows, world.blobs, action="run."))
    assert {entry.action for entry in runs} == {"run.created", "run.started", "run.completed"}
    only = list(audit(world.rows, world.blobs, action="step.executed", node="b"))
    assert [(entry.action, entry.node) for entry in only] == [("step.executed", "b")]
    assert list(audit(world.rows, world.blobs, node="nowhere")) == []


@pytest.mark.req("CORE-AUD-4")
def test_an_entry_that_refers_to_an_input_shows_it():
    world = started(a_step("a"))
    world.apply({"x": 1})
    [entry] = audit(world.rows, world.blobs, action="effect.applied")
    assert entry.input["result"] == {"x": 1}
    [made] = audit(world.rows, world.blobs, action="run.created")
    assert made.input["t"] == "started"


@pytest.mark.req("CORE-STM-6")
def test_the_timeline_shows_every_change_of_state_with_its_cause():
    world = started({"type": "wait", "id": "w", "duration": 1_000})
    world.tell(tick=11)
    told = timeline(world.rows, world.program, world.blobs)
    moves = [(move.source, move.target, move.tick) for move in told.transitions]
    assert moves == [
        ("scheduled", "running", 1),
        ("running", "waiting", 1),
        ("waiting", "running", 11),
        ("running", "completed", 11),
    ]
    assert all(move.trigger for move in told.transitions)
    assert [row.block for row in told.outputs] == ["w"]


def test_an_erased_row_is_told_as_erased_and_the_rest_is_shown():
    world = started(a_step("a"), a_step("b")).finish()
    rows = [row._replace(body=None) if row.seq == 2 else row for row in world.rows]
    entries = list(audit(rows, world.blobs))
    assert [entry.action for entry in entries if entry.seq == 2] == ["row.erased"]
    assert list(transitions(rows, world.blobs))
    assert [row.block for row in outputs(rows, world.program, world.blobs)] == ["b"]


def test_a_reader_that_begins_in_the_middle_looks_back_for_what_was_under_way():
    world = started(a_step("a"), a_step("b"))
    world.apply({"x": 1})
    world.apply({"y": 2})
    entries = list(noted(world.rows, world.blobs))
    places = Places(world.program)
    whole = OutputReader(flat=world.program.flat)
    told = [(entry, whole.read(entry, places)) for entry in entries]
    for cut in range(len(entries)):
        reader = OutputReader(flat=world.program.flat)
        reader.back = lambda cut=cut: reversed(entries[:cut])
        for entry, row in told[cut:]:
            assert reader.read(entry, places) == row, (cut, entry)
        assert reader._attempts == {}
