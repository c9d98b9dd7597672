"""Blocks (contract §5): what the tests of each kind of block leave open.

`tests/integration/web/test_contract_blocks.py` walks §5.2 kind by kind.
"""

from __future__ import annotations

import time
import uuid

import pytest

from tests.integration.web.house import sequence_body, step

pytestmark = pytest.mark.contract("5")

TERMINAL = {"completed", "failed", "cancelled", "skipped"}


def bad(id, **more):
    return step(id, "fail", params={"message": "boom", **more})


def say(id, **params):
    return step(id, "transform", params=params)


def sleeping(id, ms):
    return step(id, "sleep", params={"duration_ms": ms})


def loop(body, condition="true", **more):
    return {"type": "loop", "id": "l", "condition": condition, "body": body, **more}


def sub(name, **more):
    return {"type": "sub_sequence", "id": "sub", "sequence_name": name, **more}


def run(server, *blocks, data=None, **fields):
    instance = server.instance(server.sequence(*blocks), data, **fields)
    return instance, server.settle(instance)


def named(server, instance, block):
    return [output for name, output in server.outputs(instance) if name == block]


def tree(server, instance):
    return server.get(f"/instances/{instance}/tree").json()


# trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_all_nodes_are_terminal_once_the_instance_is(server, end):
    last = {
        "completed": step("z"),
        "failed": bad("z"),
        "cancelled": {"type": "wait", "id": "z", "signal": "x"},
    }[end]
    blocks = [
        {"type": "parallel", "id": "p", "branches": [[step("a")], []]},
        {
            "type": "router",
            "id": "r",
            "routes": [{"condition": "false", "blocks": [step("b")]}],
            "default": [step("c")],
        },
        last,
        step("after"),
    ]
    instance = server.instance(server.sequence(*blocks))
    if end == "cancelled":
        server.settle(instance, "waiting")
        server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"})
    assert server.settle(instance) == end
    assert {node["state"] for node in tree(server, instance)} <= TERMINAL


def test_nodes_that_are_open_say_so(server):
    blocks = [
        {"type": "parallel", "id": "p", "branches": [[{"type": "wait", "id": "w", "signal": "x"}]]},
        step("after"),
    ]
    instance = server.instance(server.sequence(*blocks))
    server.settle(instance, "waiting")
    states = {node["block_id"]: node["state"] for node in tree(server, instance)}
    assert states["w"] == "waiting"
    assert states["p"] in ("running", "waiting")
    assert states["after"] == "pending"


# bodies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda blocks: {"type": "parallel", "id": "c", "branches": [blocks]},
        lambda blocks: loop(blocks, max_iterations=1),
        lambda blocks: {"type": "cancellation_scope", "id": "c", "blocks": blocks},
        lambda blocks: {"type": "try_catch", "id": "c", "try_block": blocks, "catch_block": []},
        lambda blocks: {
            "type": "router",
            "id": "c",
            "routes": [{"condition": "true", "blocks": blocks}],
        },
    ],
)
def test_a_failed_block_stops_its_body_at_once(server, wrap):
    instance, _end = run(server, wrap([step("a"), bad("b"), step("never")]))
    assert named(server, instance, "never") == []
    assert named(server, instance, "a") == [{}]


def test_a_loop_sees_context_and_breaks_after_its_body(server):
    count = step("n", "set_state", params={"key": "n", "value": "{{ state.n | 0 }}"})
    counted = loop([count], "data.go", break_on="data.stop", max_iterations=5)
    instance, end = run(server, counted, data={"go": True, "stop": True})
    assert (end, len(named(server, instance, "n"))) == ("completed", 1)
    assert named(server, instance, "l")[-1] == {"_iterations": 1}


def test_a_poll_interval_is_in_whole_seconds_between_iterations(server):
    begun = time.monotonic()
    instance, end = run(server, loop([step("s")], max_iterations=2, poll_interval=1))
    assert end == "completed"
    assert time.monotonic() - begun >= 1
    assert len(named(server, instance, "s")) == 2


def test_iterations_that_are_not_retained_leave_no_row(server):
    instance, end = run(server, loop([step("s")], max_iterations=5, retain_iterations=2))
    assert end == "completed"
    assert len(named(server, instance, "s")) == 2


def test_a_broken_condition_is_false(server):
    instance, end = run(server, loop([step("s")], "data.x ==", max_iterations=3), step("z"))
    assert end == "completed"
    assert named(server, instance, "s") == []


# for_each ----------------------------------------------------------------------------------------


def test_a_plain_collection_is_a_path_below_the_data_and_a_template_any_array(server):
    def items(collection, data):
        each = {
            "type": "for_each",
            "id": "f",
            "collection": collection,
            "body": [say("s", v="{{data.item}}")],
        }
        instance, end = run(server, each, data=data)
        assert end == "completed"
        return [row["v"] for row in named(server, instance, "s")]

    data = {"items": [1, 2], "a": {"b": ["x"]}}
    assert items("items", data) == [1, 2]
    assert items("a.b", data) == ["x"]
    assert items("{{ context.data.a.b }}", data) == ["x"]
    assert items("context.data.items", data) == []


def test_markers_tell_where_the_walk_stands(server):
    each = {"type": "for_each", "id": "f", "collection": "items", "body": [step("s")]}
    instance, _ = run(server, each, data={"items": ["a", "b"]})
    marker = named(server, instance, "f")[-1]
    assert {"_total": 2, "_item_var": "item"}.items() <= marker.items()
    assert marker["_index"] in (1, 2)


# sub_sequence ------------------------------------------------------------------------------------


@pytest.fixture
def child(server):
    name = f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(
        say("one", got="{{data.x}}"), {"type": "wait", "id": "w", "signal": "go"}, name=name
    )
    return name


def test_a_child_has_the_parents_place_priority_zone_session_and_budget(server, child):
    session = server.post("/sessions", {"tenant_id": "acme", "session_key": uuid.uuid4().hex})
    parent = server.instance(
        server.sequence(sub(child, input={"x": 1})),
        priority="High",
        timezone="Europe/Berlin",
        session_id=session.json()["id"],
        budget={"max_steps": 50},
    )
    server.settle(parent, "waiting")
    (kid,) = server.get(f"/instances/{parent}/children").json()
    assert kid["parent_instance_id"] == parent
    assert (kid["tenant_id"], kid["namespace"]) == ("acme", "default")
    assert (kid["priority"], kid["timezone"]) == ("High", "Europe/Berlin")
    assert kid["session_id"] == session.json()["id"]
    assert kid["budget"] == {"max_steps": 50}
    server.signal(kid["id"], "go")
    assert server.settle(parent) == "completed"


def test_the_childs_data_is_merged_into_the_parents(server):
    name = f"kid-{uuid.uuid4().hex[:8]}"
    ask = step("ask", wait_for_input={"store_as": "answer"})
    server.sequence(ask, name=name)
    block = sub(name, input={"x": "{{data.y}}"})
    parent = server.instance(server.sequence(block), {"y": 5, "own": True})
    server.settle(parent, "waiting")
    (kid,) = server.get(f"/instances/{parent}/children").json()
    server.signal(kid["id"], "human_input:ask", {"value": "no"})
    assert server.settle(parent) == "completed"
    data = server.shown(parent)["context"]["data"]
    assert data == {"y": 5, "own": True, "x": 5, "answer": "no"}


def test_every_visit_makes_a_child_of_its_own(server):
    name = f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(step("in"), name=name)
    parent, end = run(server, loop([sub(name)], max_iterations=3))
    assert end == "completed"
    assert len(server.get(f"/instances/{parent}/children").json()) == 3


def test_children_are_nested_sixteen_deep_and_no_deeper(server):
    name = f"deep-{uuid.uuid4().hex[:8]}"
    server.sequence(sub(name), name=name)
    parent = server.instance(server.sequence(sub(name)))
    assert server.settle(parent) == "failed"
    depth, found = 0, server.get(f"/instances/{parent}/children").json()
    while found:
        depth += 1
        assert found[0]["metadata"]["_sub_sequence_depth"] == depth
        found = server.get(f"/instances/{found[0]['id']}/children").json()
    assert depth == 16


# our own -----------------------------------------------------------------------------------------


def test_a_wait_gives_the_payload_or_says_that_its_time_is_over(server):
    waits = {"type": "wait", "id": "w", "signal": "go", "store_as": "told"}
    instance = server.instance(server.sequence(waits))
    server.settle(instance, "waiting")
    server.signal(instance, "go", {"n": 1})
    assert server.settle(instance) == "completed"
    assert named(server, instance, "w") == [{"n": 1}]
    assert server.shown(instance)["context"]["data"] == {"told": {"n": 1}}
    instance, end = run(server, {"type": "wait", "id": "w", "signal": "go", "duration": 50})
    assert (end, named(server, instance, "w")) == ("completed", [{"timed_out": True}])


def test_a_graph_goes_where_its_transitions_and_gotos_say(server):
    graph = {
        "type": "graph",
        "id": "g",
        "start": "one",
        "nodes": {
            "one": [step("a")],
            "two": [step("b"), {"type": "goto", "id": "j", "to": "three"}],
            "three": [step("c")],
        },
        "transitions": [{"from": "one", "to": "two", "when": "data.go"}],
    }
    instance, end = run(server, graph, data={"go": True})
    assert end == "completed"
    assert [block for block, _ in server.outputs(instance)][:3] == ["a", "b", "c"]
    outside = {"type": "goto", "id": "j", "to": "x"}
    assert server.post("/sequences", sequence_body(outside)).status_code == 400
