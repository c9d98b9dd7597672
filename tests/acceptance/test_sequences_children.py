"""Children and the execution tree (SEQ-BLK-6, SEQ-BLK-7)."""

from __future__ import annotations

import pytest

import detent
from detent import (
    for_each,
    loop,
    parallel,
    race,
    router,
    saga,
    saga_step,
    scope,
    sequence,
    step,
    sub_sequence,
    try_catch,
    wait,
)
from detent.model import limits
from detent.ports.store import Page
from tests.acceptance.stage import HOUR_MS, finished, nodes, state, virtual


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def children(engine, parent):
    return [each.id for each in engine.inspect.instances(Page(parent=parent)).items]


# children -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-6")
def test_a_parent_waits_for_its_child_and_takes_its_data_and_outputs(engine):
    engine.deploy(
        sequence(
            "child",
            wait("w", "1h"),
            step("a", "transform", params={"got": "{{ data.x }}"}),
            wait("told", signal="go", store_as="answer"),
        )
    )
    parent = sequence("parent", sub_sequence("c", "child", input={"x": "{{ data.n }}", "y": 1}))
    instance = engine.start(parent, {"n": 7}, priority="High", timezone="Asia/Tokyo")
    assert state(engine, instance) == "waiting"
    engine.advance(HOUR_MS)
    (child,) = children(engine, instance)
    assert engine.inspect.show(child).data == {"x": 7, "y": 1}
    assert engine.inspect.show(child).summary.parent == instance
    assert engine.inspect.show(child).summary.priority == 2
    assert engine.inspect.show(child).timezone == "Asia/Tokyo"
    engine.signal(child, "go", 42)
    assert engine.wait_for(instance) == "completed"
    shown = engine.inspect.show(instance)
    assert shown.data == {"n": 7, "x": 7, "y": 1, "answer": 42}
    assert [(row["block_id"], row["output"]) for row in shown.outputs["c"]] == [
        ("w", {"timed_out": True}),
        ("a", {"got": 7}),
        ("told", 42),
    ]


@pytest.mark.req("SEQ-BLK-6")
@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_child_that_fails_or_is_cancelled_fails_its_block(engine, end):
    engine.deploy(sequence("child", wait("w", "1h"), step("f", "fail")))
    instance = engine.start(sequence("parent", sub_sequence("c", "child"), step("after", "noop")))
    engine.advance(0)
    (child,) = children(engine, instance)
    if end == "cancelled":
        engine.cancel(child)
    assert engine.wait_for(instance) == "failed"
    assert state(engine, child) == end
    assert "after" not in engine.inspect.show(instance).outputs


@pytest.mark.req("SEQ-BLK-6")
def test_a_failing_child_can_be_caught_by_its_parent(engine):
    engine.deploy(sequence("child", step("f", "fail")))
    caught = try_catch("t", do=sub_sequence("c", "child"), catch=step("ok", "noop"))
    assert finished(engine, sequence("parent", caught)).summary.state == "completed"


@pytest.mark.req("SEQ-BLK-6")
def test_a_cancel_of_the_parent_cancels_the_child_and_its_children(engine):
    engine.deploy(sequence("leaf", wait("w", "1d")))
    engine.deploy(sequence("middle", sub_sequence("c", "leaf")))
    instance = engine.start(sequence("top", sub_sequence("c", "middle")))
    engine.advance(0)
    family = [instance, *children(engine, instance)]
    family += children(engine, family[1])
    assert len(family) == 3
    engine.cancel(instance)
    engine.advance(0)
    assert [state(engine, each) for each in family] == ["cancelled"] * 3


@pytest.mark.req("SEQ-BLK-6")
def test_every_visit_makes_a_child_of_its_own(engine):
    engine.deploy(sequence("child", step("s", "noop")))
    definition = sequence("s", loop("l", "true", sub_sequence("c", "child"), max_iterations=3))
    instance = finished(engine, definition).summary.id
    assert len(children(engine, instance)) == 3


@pytest.mark.req("SEQ-BLK-6")
@pytest.mark.parametrize("named", ["nobody", "child@9"])
def test_a_child_that_is_not_known_fails_its_instance(engine, named):
    engine.deploy(sequence("child", step("s", "noop")))
    name, _, version = named.partition("@")
    block = sub_sequence("c", name, version=int(version) if version else None)
    shown = finished(engine, sequence("s", block))
    assert shown.summary.state == "failed"
    assert shown.error["code"] == "definition.unknown"
    assert name in shown.error["message"]


@pytest.mark.req("SEQ-BLK-6")
def test_children_may_nest_sixteen_deep_and_not_deeper(engine):
    deepest = limits.SUB_SEQUENCE_DEPTH
    for level in range(deepest + 2):
        below = sub_sequence("c", f"level{level + 1}")
        engine.deploy(sequence(f"level{level}", step("n", "noop"), below))
    engine.deploy(sequence(f"level{deepest + 2}", step("n", "noop")))
    fits = finished(engine, engine.definition("level2"))
    over = finished(engine, engine.definition("level1"))
    assert fits.summary.state == "completed"
    assert over.summary.state == "failed"
    assert str(deepest) in repr(over.error)


@pytest.mark.req("SEQ-BLK-6")
def test_a_child_of_another_tenant_or_namespace_is_not_found(engine):
    engine.deploy(sequence("child", step("s", "noop")), tenant="other")
    engine.deploy(sequence("child", step("s", "noop")), namespace="elsewhere")
    shown = finished(engine, sequence("s", sub_sequence("c", "child")))
    assert shown.summary.state == "failed"


@pytest.mark.req("SEQ-BLK-6", "CORE-STM-5")
def test_a_late_end_of_a_child_whose_parent_went_on_changes_nothing(engine):
    engine.deploy(sequence("child", scope("sc", wait("w", "2h"))))
    raced = race("r", [sub_sequence("c", "child")], [wait("quick", "1h")])
    instance = engine.start(sequence("s", raced, wait("x", "5h")))
    engine.advance(HOUR_MS)
    (child,) = children(engine, instance)
    assert state(engine, child) == "waiting"
    engine.advance(2 * HOUR_MS)
    assert state(engine, child) == "cancelled"
    assert state(engine, instance) == "waiting"
    assert engine.inspect.audit(instance, action="event.ignored")
    assert engine.wait_for(instance) == "completed"


# tree ---------------------------------------------------------------------------------------------

EVERY = sequence(
    "every",
    step("s", "noop"),
    parallel("p", [step("p1", "noop"), wait("pw", "1h")], [step("p2", "noop")]),
    race("r", [wait("rw", "1d")], [wait("rq", "1h")]),
    loop("l", "true", step("ls", "noop"), max_iterations=2),
    for_each("e", "items", step("es", "noop")),
    router("o", detent.route("false", step("on", "noop")), default=step("od", "noop")),
    try_catch("t", do=step("tf", "fail"), catch=step("tc", "noop"), finally_=step("tl", "noop")),
    scope("c", step("cs", "noop")),
    saga("g", saga_step("g1", step("ga", "noop"), step("gu", "noop"))),
    sub_sequence("sub", "child"),
    step("last", "noop"),
)
TERMINAL = {"completed", "failed", "cancelled", "skipped"}


@pytest.mark.req("SEQ-BLK-7")
def test_before_it_is_reached_a_node_is_pending_and_at_the_end_all_are_terminal(engine):
    engine.deploy(sequence("child", wait("cw", "1h")))
    instance = engine.start(EVERY, {"items": [1, 2]})
    tree = nodes(engine, instance)
    assert (tree["s"], tree["p"], tree["p/p1"], tree["p/pw"]) == (
        "completed",
        "running",
        "completed",
        "waiting",
    )
    assert {tree[path] for path in ("r", "l", "e", "o", "t", "c", "g", "sub", "last")} == {
        "pending"
    }
    assert engine.wait_for(instance) == "completed"
    tree = nodes(engine, instance)
    assert set(tree.values()) <= TERMINAL
    assert {path: tree[path] for path in ("t/tf", "r/rw", "o/on", "g/gu", "sub")} == {
        "t/tf": "failed",
        "r/rw": "cancelled",
        "o/on": "skipped",
        "g/gu": "skipped",
        "sub": "completed",
    }
    assert len([path for path in tree if path.endswith("/ls")]) == 2
    assert len([path for path in tree if path.endswith("/es")]) == 2


@pytest.mark.req("SEQ-BLK-7")
@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_all_nodes_are_terminal_however_the_instance_ends(engine, end):
    engine.deploy(sequence("child", wait("cw", "1h")))
    body = sequence("body", parallel("p", wait("w", "1h"), [step("x", "fail")]), step("y", "noop"))
    instance = engine.start(EVERY if end == "cancelled" else body, {"items": [1]})
    if end == "cancelled":
        engine.cancel(instance)
    assert engine.wait_for(instance) == end
    assert set(nodes(engine, instance).values()) <= TERMINAL


@pytest.mark.req("SEQ-BLK-7")
def test_a_node_says_its_type_parent_branch_and_times(engine):
    engine.deploy(sequence("child", wait("cw", "1h")))
    instance = engine.start(EVERY, {"items": [1]})
    engine.run_until_idle()
    tree = {node.id: node for node in engine.inspect.tree(instance).nodes}
    assert (tree["p/p2"].parent, tree["p/p2"].branch_index) == ("p", 1)
    assert [tree[path].branch_index for path in ("t/tf", "t/tc", "t/tl")] == [0, 1, 2]
    assert [tree[path].branch_index for path in ("o/on", "o/od")] == [0, 1]
    assert [tree[path].branch_index for path in ("g/ga", "g/gu")] == [0, 1]
    assert tree["r"].type == "race"
    assert tree["s"].parent is None
    waited = tree["p/pw"]
    assert (waited.completed - waited.started) * 100 == HOUR_MS
    order = [node.id for node in engine.inspect.tree(instance).nodes]
    assert all(
        node.parent is None or order.index(node.parent) < order.index(node.id)
        for node in tree.values()
    )
