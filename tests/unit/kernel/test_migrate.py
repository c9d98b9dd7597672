"""Moving a live instance to another version: only at a wait, at the same place, undoable."""

from __future__ import annotations

import pytest

from detent.kernel.migrate import preview
from tests.unit.kernel.blocks import (
    call,
    fails,
    graph,
    human,
    loop,
    noop,
    parallel,
    put,
    race,
    router,
    saga,
    wait,
)
from tests.unit.kernel.driver import World, run


def moved(world, *blocks, **more):
    """Ask to move to another version with these blocks."""
    program = world.define("main", blocks, version=2, **more)
    return program, world.command("migrate", {"to": program.hash})


@pytest.mark.req("SEQ-4")
def test_at_a_wait_an_instance_goes_on_in_the_other_version():
    world = run(noop("a"), wait(signal="x"), put("b", "old"))
    old = world.program.hash
    program, verdict = moved(world, noop("a0"), wait(signal="x"), put("b", "new"), noop("c"))
    assert verdict.ok
    assert world.snap().definition == program.hash
    assert world.entries("migration.applied")[0][2] == {"from": old, "to": program.hash}
    world.signal("custom:x")
    assert world.state == "completed"
    assert (world.outputs["b"], world.executed) == ("new", ["a", "b", "c"])


@pytest.mark.req("SEQ-4")
@pytest.mark.parametrize("how", ["in flight", "in doubt", "with a person"])
def test_with_an_unsettled_effect_it_is_refused(how):
    world = run(
        call("a"), handlers={"a": {"doubt": "queryable" if how != "with a person" else "once"}}
    )
    world.mark("a")
    if how != "in flight":
        world.doubt("a")
    before = world.snap()
    _, verdict = moved(world, call("a"), noop("b"))
    assert verdict.code == "migration.refused"
    assert world.snap().definition == before.definition
    assert world.snap().root == before.root


@pytest.mark.req("SEQ-4")
@pytest.mark.parametrize(
    "blocks",
    [
        [noop("a")],
        [wait("other", signal="x")],
        [router(("true", [wait(signal="x")]))],
        [put("w", 1)],
    ],
    ids=["gone", "renamed", "elsewhere", "another kind"],
)
def test_an_open_block_must_be_at_the_same_place_and_of_the_same_kind(blocks):
    world = run(wait(signal="x"))
    _, verdict = moved(world, *blocks)
    assert verdict.code == "migration.refused"
    world.signal("custom:x")
    assert world.state == "completed"


@pytest.mark.req("SEQ-4")
def test_one_that_has_done_nothing_yet_begins_with_the_other_version():
    world = World(noop("a"), noop("b"))
    world.start(at=50)
    program, verdict = moved(world, noop("x"), noop("y"))
    assert verdict.ok
    world.at(50)
    assert (world.state, world.executed) == ("completed", ["x", "y"])
    assert world.snap().definition == program.hash


@pytest.mark.req("SEQ-4")
@pytest.mark.parametrize(
    ("blocks", "executed"),
    [
        ([noop("z"), call("a"), noop("c")], ["a", "c"]),
        ([noop("z"), noop("b"), noop("c")], ["a", "b", "c"]),
        ([noop("z"), noop("c")], None),
    ],
    ids=["after the last", "before the next", "nowhere"],
)
def test_between_two_blocks_it_goes_on_before_the_next_or_after_the_last(blocks, executed):
    world = run(call("a"), noop("b"))
    world.signal("pause")
    world.apply("a")
    assert world.state == "paused"
    _, verdict = moved(world, *blocks)
    assert verdict.ok is (executed is not None)
    world.signal("resume")
    assert world.state == "completed"
    assert world.executed == (executed or ["a", "b"])


@pytest.mark.req("SEQ-4")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_an_ended_instance_cannot_be_moved(end):
    world = run(wait(signal="x"), *([fails("f")] if end == "failed" else []))
    world.signal("cancel" if end == "cancelled" else "custom:x")
    assert moved(world, wait(signal="x"))[1].code == "migration.refused"


@pytest.mark.req("SEQ-4")
def test_an_unknown_definition_is_refused():
    world = run(wait(signal="x"))
    assert world.command("migrate", {"to": "nobody"}).code == "definition.unknown"
    assert world.state == "waiting"


@pytest.mark.req("SEQ-4")
def test_out_of_moves_or_cleaning_up_it_is_refused():
    world = run(loop(noop(), max_iterations=100_000))
    assert moved(world, loop(noop(), max_iterations=5))[1].code == "migration.refused"
    world = run(fails("f"), on_failure=[wait(signal="x")])
    assert moved(world, fails("f"), on_failure=[wait(signal="x")])[1].code == "migration.refused"


@pytest.mark.req("SEQ-4")
def test_a_migration_can_be_undone_until_a_new_effect_was_made():
    world = run(wait(signal="x"), wait("w2", signal="y"), call("a"), wait("w3", signal="z"))
    old = world.program.hash
    blocks = [
        wait(signal="x"),
        wait("w2", signal="y"),
        call("a"),
        wait("w3", signal="z"),
        noop("n"),
    ]
    assert moved(world, *blocks)[1].ok
    assert world.command("migrate", {"undo": True}).ok
    assert world.snap().definition == old
    assert world.command("migrate", {"undo": True}).code == "migration.refused"
    assert moved(world, *blocks)[1].ok
    world.signal("custom:x")
    assert world.command("migrate", {"undo": True}).ok, "no effect was made since"
    assert moved(world, *blocks)[1].ok
    world.signal("custom:y")
    world.apply("a")
    verdict = world.command("migrate", {"undo": True})
    assert verdict.code == "migration.refused"
    assert "effect" in verdict.message


@pytest.mark.req("SEQ-4")
def test_nested_frames_move_with_their_lists():
    world = run(loop(noop("a"), wait(signal="x"), max_iterations=2), data={})
    assert moved(world, loop(noop("a0"), noop("a"), wait(signal="x"), noop("b"), max_iterations=2))[
        1
    ].ok
    world.signal("custom:x")
    assert world.executed == ["l[0]/a", "l[0]/b", "l[1]/a0", "l[1]/a"]


@pytest.mark.req("SEQ-4")
def test_a_node_of_a_graph_is_found_by_its_name():
    world = run(graph({"m": [wait(signal="x")], "z": [noop("end")]}, ("m", "z")))
    nodes = {"a": [wait("other", signal="x")], "m": [wait(signal="x")], "z": [noop("end2")]}
    assert moved(world, graph(nodes, ("m", "a", "false"), ("m", "z"), start="m"))[1].ok
    world.signal("custom:x")
    assert world.executed == ["g[1:z]/end2"]


@pytest.mark.req("SEQ-4")
def test_a_graph_without_the_present_node_is_refused():
    world = run(graph({"m": [wait(signal="x")]}))
    assert moved(world, graph({"n": [wait(signal="x")]}))[1].code == "migration.refused"


@pytest.mark.req("SEQ-4")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (parallel([wait(signal="x")], [noop("n")]), parallel([wait(signal="x")], [noop("n")], [])),
        (race([wait(signal="x")], [wait("w2", signal="y")]), race([wait(signal="x")])),
        (saga((wait(signal="x"), None)), saga((wait(signal="x"), None), (noop("b"), None))),
    ],
    ids=["parallel", "race", "saga"],
)
def test_a_block_whose_branches_all_run_must_keep_their_number(before, after):
    assert moved(run(before), after)[1].code == "migration.refused"


@pytest.mark.req("SEQ-4")
def test_a_step_that_waits_for_an_answer_must_still_ask_for_one():
    world = run(human("h"))
    assert moved(world, noop("h"))[1].code == "migration.refused"
    assert moved(world, human("h", prompt="new"))[1].ok
    world.signal("custom:human_input:h", {"value": "yes"})
    assert world.state == "completed"


@pytest.mark.req("SEQ-4")
def test_a_failed_branch_must_have_its_place_too_for_a_retry():
    before = parallel([fails("f")], [wait(signal="x")])
    assert moved(run(before), parallel([noop("g")], [wait(signal="x")]))[1].code == (
        "migration.refused"
    )
    world = run(before)
    assert moved(world, parallel([noop("n0"), put("f", 1)], [wait(signal="x")]))[1].ok
    world.signal("custom:x")
    assert world.state == "failed"
    assert world.command("retry").ok
    assert world.state == "completed"
    assert world.executed == ["p/f"]


@pytest.mark.req("SEQ-4", "CORE-POL-1")
def test_the_policies_of_the_other_version_hold_and_those_of_the_start_stay():
    world = World(wait(signal="x"), call("a"), policies=[{"handler": "old"}])
    world.start(policies=({"handler": "mine"},))
    assert moved(world, wait(signal="x"), call("a"), policies=[{"handler": "new"}])[1].ok
    world.signal("custom:x")
    world.apply("new", {"allowed": True})
    world.apply("mine", {"allowed": True})
    assert world.has("a")


@pytest.mark.req("SEQ-4")
def test_a_paused_instance_can_be_moved_between_its_blocks():
    world = run(call("a"), noop("b"))
    world.signal("pause")
    world.apply("a")
    assert moved(world, call("a"), noop("inserted"), noop("b"))[1].ok
    world.signal("resume")
    assert world.executed == ["a", "b"], "it goes on at the block that was next"


@pytest.mark.req("SEQ-4")
def test_a_preview_changes_nothing_and_lists_every_problem():
    world = run(parallel([wait("w1", signal="x")], [wait("w2", signal="y")]))
    other = world.define("main", [parallel([noop("n1")], [noop("n2")])], version=3)
    before = world.actors["i1"].body
    problems = preview(world.snap(), world.program, other)
    assert len(problems) == 2
    assert all("same place" in problem for problem in problems)
    assert preview(world.snap(), world.program, world.program) == []
    assert world.actors["i1"].body == before
