"""The execution tree: pending before, terminal after, one node per visit."""

from __future__ import annotations

import pytest

from detent.kernel.lifecycle import NODE
from detent.kernel.places import Places
from detent.kernel.tree import tree
from detent.model import limits
from tests.unit.kernel.stories import tell_story
from tests.unit.kernel.worlds import TERMINAL, World, a_program, a_step

ENDED = ("completed", "failed", "cancelled", "skipped")


def drawn(world):
    return tree(world.program, world.rows, world.snapshot, world.blobs)


def states(world):
    return {node.id: node.state for node in drawn(world).nodes}


def started(*blocks, **more):
    world = World(a_program(list(blocks), **more))
    world.start({"items": [1, 2]}, tick=1)
    return world


@pytest.mark.req("SEQ-BLK-7")
def test_what_is_not_reached_is_pending_and_what_is_called_is_running():
    world = started(a_step("a"), a_step("b"))
    assert states(world) == {"a": "running", "b": "pending"}
    world.apply({}, tick=2)
    assert states(world) == {"a": "completed", "b": "running"}
    first = drawn(world).nodes[0]
    assert (first.started, first.completed, first.attempt, first.type) == (1, 2, 1, "step")


@pytest.mark.req("SEQ-BLK-7")
def test_a_wait_is_waiting_and_a_sleep_is_running():
    assert states(started({"type": "wait", "id": "w", "duration": 100})) == {"w": "waiting"}
    sleeping = started(a_step("s", "sleep", params={"duration_ms": 500}))
    assert states(sleeping) == {"s": "running"}


@pytest.mark.req("SEQ-BLK-7")
def test_a_loop_adds_a_node_for_each_further_iteration():
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": 3,
        "body": [a_step("b")],
    }
    world = started(loop)
    assert states(world) == {"l": "running", "l[0]/b": "running"}
    world.finish()
    nodes = drawn(world).nodes
    assert [node.id for node in nodes] == ["l", "l[0]/b", "l[1]/b", "l[2]/b"]
    assert [node.iteration for node in nodes] == [None, 0, 1, 2]
    assert {node.parent for node in nodes[1:]} == {"l"}


def test_a_loop_that_retains_few_iterations_shows_the_newest_and_says_so():
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": 5,
        "body": [a_step("b")],
        "retain_iterations": 2,
    }
    world = started(loop).finish()
    nodes = drawn(world).nodes
    assert [node.id for node in nodes] == ["l", "l[3]/b", "l[4]/b"]
    assert nodes[0].note == "3 earlier iterations are not shown"


def test_a_loop_longer_than_the_limit_shows_the_newest_iterations(monkeypatch):
    monkeypatch.setattr(limits, "ITERATIONS_SHOWN", 4)
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "max_iterations": 6,
        "body": [a_step("n", "noop")],
    }
    nodes = drawn(started(loop)).nodes
    assert [node.iteration for node in nodes[1:]] == [2, 3, 4, 5]


def test_a_tree_larger_than_the_limit_is_cut_with_a_note(monkeypatch):
    monkeypatch.setattr(limits, "TREE_NODES", 2)
    drawing = drawn(started(a_step("a"), a_step("b"), a_step("c")))
    assert [node.id for node in drawing.nodes] == ["a", "b"]
    assert drawing.note == "1 further nodes are not shown"


@pytest.mark.parametrize(
    ("block", "indexes"),
    [
        (
            {"type": "parallel", "id": "p", "branches": [[a_step("x")], [a_step("y")]]},
            {"x": 0, "y": 1},
        ),
        (
            {
                "type": "router",
                "id": "p",
                "routes": [{"condition": "false", "blocks": [a_step("x")]}],
                "default": [a_step("y")],
            },
            {"x": 0, "y": 1},
        ),
        (
            {
                "type": "try_catch",
                "id": "p",
                "try_block": [a_step("x")],
                "catch_block": [a_step("y")],
                "finally_block": [a_step("z")],
            },
            {"x": 0, "y": 1, "z": 2},
        ),
        (
            {
                "type": "saga",
                "id": "p",
                "steps": [
                    {"id": "s1", "action": a_step("x"), "compensation": a_step("y")},
                    {"id": "s2", "action": a_step("z")},
                ],
            },
            {"x": 0, "y": 1, "z": 2},
        ),
        (
            {"type": "loop", "id": "p", "condition": "true", "body": [a_step("x")]},
            {"x": None},
        ),
    ],
)
def test_branches_are_numbered_as_the_contract_numbers_them(block, indexes):
    nodes = {node.block: node for node in drawn(started(block)).nodes}
    assert nodes["p"].branch_index is None
    assert {block: nodes[block].branch_index for block in indexes} == indexes
    assert {nodes[block].parent for block in indexes} == {"p"}


def test_a_route_that_was_not_taken_is_skipped_at_once():
    world = started(
        {
            "type": "router",
            "id": "r",
            "default": [a_step("y")],
            "routes": [{"condition": "false", "blocks": [a_step("x")]}],
        }
    )
    assert states(world) == {"r": "running", "r/x": "skipped", "r/y": "running"}


def test_a_catch_that_was_not_needed_is_skipped_when_the_block_ends():
    block = {
        "type": "try_catch",
        "id": "t",
        "try_block": [a_step("a")],
        "catch_block": [a_step("c")],
    }
    assert states(started(block))["t/c"] == "pending"
    assert states(started(block).finish()) == {
        "t": "completed",
        "t/a": "completed",
        "t/c": "skipped",
    }


def test_the_visits_of_a_graph_are_nodes_of_their_own():
    graph = {
        "type": "graph",
        "id": "g",
        "start": "one",
        "nodes": {"one": [a_step("x")], "two": [a_step("y")]},
        "transitions": [{"from": "one", "to": "two"}],
    }
    world = started(graph)
    assert states(world) == {"g": "running", "g[0:one]/x": "running", "g[two]/y": "pending"}
    world.finish()
    assert states(world) == {"g": "completed", "g[0:one]/x": "completed", "g[1:two]/y": "completed"}


def test_what_fails_is_failed_and_what_was_left_is_cancelled():
    world = started(a_step("a"), a_step("b"))
    world.fail("no", retryable=False)
    assert states(world) == {"a": "failed", "b": "cancelled"}


def test_a_retried_composite_runs_again_though_the_journal_says_it_failed():
    block = {"type": "parallel", "id": "p", "branches": [[a_step("x")], [a_step("y")]]}
    world = started(block)
    world.apply({}, "p/x")
    world.fail("no", "p/y", retryable=False)
    assert states(world) == {"p": "failed", "p/x": "completed", "p/y": "failed"}
    world.command("retry", tick=5)
    assert states(world) == {"p": "running", "p/x": "completed", "p/y": "running"}


def test_clean_up_appears_once_it_runs():
    world = started(a_step("a"), on_failure=[a_step("tidy")])
    assert states(world) == {"a": "running"}
    world.fail("no", retryable=False)
    assert states(world) == {"a": "failed", "on_failure/tidy": "running"}
    world.apply({})
    assert states(world)["on_failure/tidy"] == "completed"


@pytest.mark.req("SEQ-BLK-7")
@pytest.mark.parametrize("part", range(3))
def test_every_story_has_a_sound_tree_and_all_nodes_end_with_the_instance(part):
    for seed in range(part * 40, part * 40 + 40):
        for world in tell_story(seed):
            nodes = drawn(world).nodes
            ids = {node.id: node for node in nodes}
            assert len(ids) == len(nodes), f"seed {seed}"
            for node in nodes:
                assert node.state in NODE
                assert node.parent is None or node.parent in ids
                if world.decision.state in TERMINAL:
                    assert node.state in ENDED, f"seed {seed}: {node}"


def test_a_path_is_read_by_the_structure_whatever_the_ids_look_like():
    """Ids are any words without path marks: a colon or a dot in one is no step down."""
    blocks = [
        a_step("a.b"),
        {"type": "loop", "id": "a", "condition": "true", "body": [a_step("b:1"), a_step("c d")]},
    ]
    places = Places(a_program(blocks))
    assert places.find("a.b").node.id == "a.b"
    assert places.find("a[3]/b:1").rounds == (("a", 3),)
    assert places.find("a[3]/c d").node.id == "c d"
    assert places.find("a/c d") is None
