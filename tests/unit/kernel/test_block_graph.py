"""graph and goto: the first edge that holds, visits numbered, gotos from anywhere inside."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    goto,
    graph,
    loop,
    noop,
    router,
    scope,
    sleep,
    split,
    wait,
)
from tests.unit.kernel.driver import run


@pytest.mark.req("SEQ-BLK-7")
def test_the_first_transition_that_holds_is_taken():
    nodes = {"a": [call("x")], "b": [noop("y")], "c": [noop("z")]}
    edges = [("a", "b", "data.n == 1"), ("a", "c"), ("b", "c")]
    world = run(graph(nodes, *edges))
    world.apply("x", {"n": 1})
    assert world.executed == ["g[0:a]/x", "g[1:b]/y", "g[2:c]/z"]
    world = run(graph(nodes, *edges))
    world.apply("x", {"n": 2})
    assert world.executed == ["g[0:a]/x", "g[1:c]/z"]


def test_a_node_without_a_matching_transition_ends_the_graph():
    world = run(graph({"a": [noop("x")], "b": [noop("y")]}, ("a", "b", "false")), noop("after"))
    assert world.executed == ["g[0:a]/x", "after"]


def test_an_empty_node_is_passed_through():
    world = run(graph({"a": [], "b": [noop("y")]}, ("a", "b")))
    assert world.executed == ["g[1:b]/y"]


@pytest.mark.req("CORE-EFF-2")
def test_a_cycle_numbers_its_visits_and_each_has_its_own_key():
    world = run(graph({"ask": [call("q"), wait("w", duration=1000)]}, ("ask", "ask", "!data.done")))
    for round_ in range(3):
        assert world.order().node == f"g[{round_}:ask]/q"
        world.apply("q", {"done": round_ == 2})
        assert world.state == "waiting"
        world.after(1000)
    assert world.state == "completed"
    assert len({order.key for order in world.history}) == 3


@pytest.mark.req("CORE-SCH-3")
def test_a_cycle_without_waits_yields_after_1000_moves():
    world = run(graph({"a": []}, ("a", "a", "!data.done")))
    assert world.decision.more
    world.signal("update_context", {"done": True})
    world.tell()
    assert world.state == "completed"


@pytest.mark.parametrize(
    "nested",
    [
        lambda jump: [router(("true", [jump]))],
        lambda jump: [loop(jump)],
        lambda jump: [attempt([jump])],
        lambda jump: [attempt([fails("bad")], [jump])],
        lambda jump: [attempt([noop("in")], [], [jump])],
        lambda jump: [scope(jump)],
        lambda jump: [split(("v", 1, [jump]), ("u", 1, [dict(jump, id="j2")]))],
        lambda jump: [scope(router(("true", [loop(attempt([jump]))])))],
    ],
    ids=["router", "loop", "try", "catch", "finally", "scope", "split", "deep"],
)
def test_a_goto_leaves_the_node_from_within_any_block(nested):
    nodes = {"a": [*nested(goto("b", id="j")), noop("skipped")], "b": [noop("y")]}
    world = run(graph(nodes), noop("after"))
    assert world.executed[-2:] == ["g[1:b]/y", "after"]
    assert "g[0:a]/skipped" not in world.executed


def test_a_goto_names_a_node_of_the_nearest_graph():
    inner = graph({"a": [router(("true", [goto("b", id="j")]))], "b": [noop("i")]}, id="in")
    world = run(graph({"a": [inner], "b": [noop("o")]}, ("a", "b"), id="out"))
    assert world.executed == ["out[0:a]/in[1:b]/i", "out[1:b]/o"]


def test_a_failing_node_fails_the_graph_and_a_retry_goes_on_there():
    world = run(graph({"a": [call("x")], "b": [call("y"), call("z")]}, ("a", "b")))
    world.apply("x")
    world.apply("y")
    world.fail("z", retryable=False)
    assert world.state == "failed"
    world.command("retry")
    assert [order.node for order in world.orders] == ["g[1:b]/z"]
    world.apply("z")
    assert world.state == "completed"


def test_an_edge_that_cannot_be_evaluated_fails_a_strict_graph_and_is_tried_again_on_retry():
    world = run(
        graph({"a": [call("x")], "b": [noop("y")]}, ("a", "b", "data.n < 2")), mode="strict"
    )
    world.apply("x", {"n": "many"})
    assert (world.state, world.error["kind"]) == ("failed", "expression")
    world.command("retry")
    assert world.planned() == [("g[0:a]/x", 1)], "the node itself is not repeated"
    assert world.state == "failed"


@pytest.mark.req("SEQ-SIG-1")
def test_a_cancel_ends_the_present_node():
    world = run(graph({"a": [sleep("s", 900)], "b": [noop("y")]}, ("a", "b")), noop("never"))
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.nodes("step.cancelled") == ["g[0:a]/s"]


@pytest.mark.req("SEQ-SIG-1")
def test_a_cancel_lets_a_protected_node_finish_and_follows_no_edge():
    world = run(graph({"a": [scope(call("s"))], "b": [noop("y")]}, ("a", "b")))
    world.signal("cancel")
    world.apply("s")
    assert world.state == "cancelled"
    assert world.executed == ["g[0:a]/sc/s"]
