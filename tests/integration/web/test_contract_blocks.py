"""What every kind of block does, told by the served API (contract §5.2), line by line."""

from __future__ import annotations

import time
import uuid

import pytest

from tests.integration.web.house import step

FAIL = {"params": {"message": "boom"}}


def bad(id):
    return step(id, "fail", **FAIL)


def say(id, **params):
    return step(id, "transform", params=params)


def parallel(*branches, id="p"):
    return {"type": "parallel", "id": id, "branches": list(branches)}


def race(*branches, **more):
    return {"type": "race", "id": "r", "branches": list(branches), **more}


def each(body, id="f", collection="items", **more):
    return {"type": "for_each", "id": id, "collection": collection, "body": body, **more}


def loop(body, condition="true", id="l", **more):
    return {"type": "loop", "id": id, "condition": condition, "body": body, **more}


def run(server, *blocks, data=None, **fields):
    """Run a sequence of these blocks to its end; the instance and its last state."""
    instance = server.instance(server.sequence(*blocks), data, **fields)
    return instance, server.settle(instance)


def named(server, instance, block):
    return [output for name, output in server.outputs(instance) if name == block]


def nodes(server, instance):
    found = server.get(f"/instances/{instance}/tree").json()
    return {node["block_id"]: node for node in found}


def data_of(server, instance):
    return server.shown(instance)["context"]["data"]


# parallel and race -------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-2")
def test_a_failed_branch_fails_a_parallel_and_its_siblings_finish_their_work(server):
    slow = [step("z", "sleep", params={"duration_ms": 150}), say("late", ok=True)]
    instance, end = run(server, parallel([bad("b")], slow), step("never"))
    assert end == "failed"
    assert [block for block, _ in server.outputs(instance)] == ["z", "late"]
    states = {block: node["state"] for block, node in nodes(server, instance).items()}
    assert states == {
        "p": "failed",
        "b": "failed",
        "z": "completed",
        "late": "completed",
        "never": states["never"],
    }
    assert states["never"] in ("cancelled", "skipped")  # every node is terminal at the end


@pytest.mark.req("SEQ-BLK-2")
def test_steps_of_two_branches_overlap(server):
    sleeps = [[step(name, "sleep", params={"duration_ms": 1000})] for name in ("a", "b")]
    begun = time.monotonic()
    instance, end = run(server, parallel(*sleeps))
    assert end == "completed"
    assert time.monotonic() - begun < 1.75
    assert dict(server.outputs(instance)) == {
        "a": {"slept_ms": 1000},
        "b": {"slept_ms": 1000},
    }


@pytest.mark.req("SEQ-BLK-2")
@pytest.mark.parametrize("branches", [[[], [step("a")]], [[], []]])
def test_empty_branches_complete(server, branches):
    assert run(server, parallel(*branches))[1] == "completed"


@pytest.mark.req("SEQ-BLK-3")
def test_the_first_branch_to_drain_wins_a_race_and_the_others_are_cancelled(server):
    slow = step("slow", "sleep", params={"duration_ms": 60_000})
    quick = step("quick", "sleep", params={"duration_ms": 50})
    instance, end = run(server, race([quick], [slow]))
    assert end == "completed"
    assert nodes(server, instance)["slow"]["state"] == "cancelled"
    assert [block for block, _ in server.outputs(instance)] == ["quick"]


@pytest.mark.req("SEQ-BLK-3")
def test_a_failure_decides_a_race_unless_only_success_counts(server):
    pair = ([bad("b")], [step("z", "sleep", params={"duration_ms": 100})])
    assert run(server, race(*pair))[1] == "failed"
    assert run(server, race(*pair, semantics="first_to_succeed"))[1] == "completed"
    losers = ([bad("b1")], [bad("b2")])
    assert run(server, race(*losers, semantics="first_to_succeed"))[1] == "failed"


# router and a_b_split ----------------------------------------------------------------------------


def route(condition, *blocks):
    return {"condition": condition, "blocks": list(blocks)}


ROUTER = {
    "type": "router",
    "id": "r",
    "routes": [
        route("{{ context.data.plan == 'gold' }}", step("gold")),
        route("data.plan == 'new'", step("new")),
    ],
    "default": [step("other")],
}


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize(
    ("plan", "taken", "index"), [("gold", "gold", 0), ("new", "new", 1), ("none", "other", 2)]
)
def test_the_first_truthy_route_wins_and_the_others_are_skipped(server, plan, taken, index):
    instance, end = run(server, ROUTER, data={"plan": plan})
    assert end == "completed"
    assert [block for block, _ in server.outputs(instance)] == [taken]
    found = nodes(server, instance)
    assert {block: found[block]["state"] for block in ("gold", "new", "other")} == {
        block: "completed" if block == taken else "skipped" for block in ("gold", "new", "other")
    }
    assert found[taken]["branch_index"] == index
    assert found[taken]["parent_id"] == found["r"]["id"]


@pytest.mark.req("SEQ-BLK-5")
def test_without_a_match_and_a_default_nothing_is_done_and_an_unquoted_word_is_a_path(server):
    alone = {"type": "router", "id": "r", "routes": [route("plan == gold", step("gold"))]}
    instance, end = run(server, alone, step("after"), data={"plan": "gold"})
    assert end == "completed"
    assert [block for block, _ in server.outputs(instance)] == ["after"]
    failing = {**alone, "routes": [route("true", bad("b"))]}
    assert run(server, failing)[1] == "failed"


@pytest.mark.req("SEQ-BLK-5")
def test_a_split_takes_one_variant_says_which_and_both_occur(server):
    split = {
        "type": "a_b_split",
        "id": "ab",
        "variants": [
            {"name": "a", "weight": 50, "blocks": [step("in_a")]},
            {"name": "b", "weight": 50, "blocks": [step("in_b")]},
        ],
    }
    sequence = server.sequence(split)
    made = [server.instance(sequence) for _ in range(20)]
    seen = set()
    for instance in made:
        assert server.settle(instance) == "completed"
        (row,) = named(server, instance, "ab")
        assert set(row) == {"variant", "variant_index"}
        assert row["variant_index"] == {"a": 0, "b": 1}[row["variant"]]
        found = nodes(server, instance)
        other = {"a": "b", "b": "a"}[row["variant"]]
        assert found[f"in_{row['variant']}"]["state"] == "completed"
        assert found[f"in_{other}"]["state"] == "skipped"
        assert found["ab"]["block_type"] == "a_b_split"
        seen.add(row["variant"])
    assert seen == {"a", "b"}


# try_catch ---------------------------------------------------------------------------------------


def attempt(tried, caught, last=None):
    block = {"type": "try_catch", "id": "t", "try_block": tried, "catch_block": caught}
    return block | ({"finally_block": last} if last is not None else {})


@pytest.mark.req("SEQ-BLK-5")
def test_what_failed_is_in_the_data_before_catch_runs_and_finally_runs_always(server):
    caught = say("c", error="{{data._error}}")
    instance, end = run(server, attempt([step("a"), bad("b")], [caught], [step("fin")]))
    assert end == "completed"
    (told,) = named(server, instance, "c")
    error = {"failed_blocks": ["b"], "source": "try_catch", "block_id": "t"}
    assert {name: told["error"][name] for name in error} == error
    assert told["error"]["message"] == "boom"
    assert [block for block, _ in server.outputs(instance)] == ["a", "c", "fin"]
    indexes = {name: nodes(server, instance)[name]["branch_index"] for name in ("b", "c", "fin")}
    assert indexes == {"b": 0, "c": 1, "fin": 2}


@pytest.mark.req("SEQ-BLK-5")
def test_a_skipped_catch_leaves_no_outputs(server):
    instance, end = run(server, attempt([step("a")], [step("c")], [step("fin")]))
    assert end == "completed"
    assert [block for block, _ in server.outputs(instance)] == ["a", "fin"]
    assert nodes(server, instance)["c"]["state"] == "skipped"


@pytest.mark.req("SEQ-BLK-5")
def test_an_empty_catch_swallows_and_a_failing_catch_or_finally_fails(server):
    assert run(server, attempt([bad("b")], []))[1] == "completed"
    assert run(server, attempt([bad("b")], [bad("c")], [step("fin")]))[1] == "failed"
    assert run(server, attempt([step("a")], [], [bad("fin")]))[1] == "failed"


# loop and for_each -------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_that_reaches_its_cap_completes_with_a_row_per_iteration(server):
    instance, end = run(server, loop([step("s")], max_iterations=3))
    assert end == "completed"
    assert len(named(server, instance, "s")) == 3
    markers = named(server, instance, "l")
    assert markers[-1] == {"_iterations": 3}
    assert run(server, loop([step("s")], "false"))[1] == "completed"


@pytest.mark.req("SEQ-BLK-4")
def test_a_failing_body_fails_its_loop_unless_it_goes_on(server):
    assert run(server, loop([bad("b")], max_iterations=2))[1] == "failed"
    going = loop([step("s"), bad("b")], max_iterations=2, continue_on_error=True)
    instance, end = run(server, going)
    assert end == "completed"
    assert len(named(server, instance, "s")) == 2
    stopped = loop([step("s")], max_iterations=9, break_on="data.enough")
    instance, _ = run(server, stopped, data={"enough": True})
    assert len(named(server, instance, "s")) == 1


@pytest.mark.req("SEQ-BLK-4")
def test_a_for_each_walks_what_the_list_was_at_first(server):
    grown = step("grow", "transform", params={"v": "{{data.item}}"})
    asking = {"type": "wait", "id": "w", "signal": "go"}
    instance = server.instance(server.sequence(each([grown, asking])), {"items": ["x", "y"]})
    server.settle(instance, "waiting")
    more = {"signal_type": "update_context", "payload": {"data": {"items": [1, 2, 3, 4]}}}
    assert server.post(f"/instances/{instance}/signals", more).status_code == 201
    assert data_of(server, instance)["item"] == "x"
    for _ in range(2):
        server.signal(instance, "go")
    assert server.settle(instance) == "completed"
    assert named(server, instance, "grow") == [{"v": "x"}, {"v": "y"}]
    assert data_of(server, instance) == {"items": [1, 2, 3, 4]}  # the item is gone at the end


@pytest.mark.req("SEQ-BLK-4")
def test_a_for_each_leaves_marker_rows(server):
    instance, _ = run(server, each([step("s")], item_var="it"), data={"items": [1, 2]})
    markers = named(server, instance, "f")
    assert markers
    for marker in markers:
        assert {"_index", "_total", "_item_var"} <= set(marker)
    assert (markers[-1]["_total"], markers[-1]["_item_var"]) == (2, "it")


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize("data", [None, {}, {"items": []}, {"items": "text"}, {"items": {"a": 1}}])
def test_a_for_each_over_nothing_completes(server, data):
    instance, end = run(server, each([step("s")]), data=data)
    assert end == "completed"
    assert named(server, instance, "s") == []


@pytest.mark.req("SEQ-BLK-4")
def test_nested_rounds_leave_exactly_as_many_rows(server):
    inner = each([step("in")], id="g", collection="{{data.inner}}", item_var="b")
    instance, end = run(
        server, each([step("out"), inner], item_var="a"), data={"items": [1, 2, 3], "inner": [1, 2]}
    )
    assert end == "completed"
    assert len(named(server, instance, "out")) == 3
    assert len(named(server, instance, "in")) == 6
    assert run(server, each([bad("b")]), data={"items": [1]})[1] == "failed"


# sub_sequence ------------------------------------------------------------------------------------


def sub(name, **more):
    return {"type": "sub_sequence", "id": "sub", "sequence_name": name, **more}


@pytest.fixture
def kid(server):
    """A name with two versions; the newer one is deprecated later by who wants to."""
    name = f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(say("one", v=1, got="{{data.x}}"), name=name, version=1)
    newer = server.sequence(say("two", v=2), name=name, version=2)
    return name, newer


@pytest.mark.req("SEQ-BLK-6")
def test_a_child_belongs_to_its_parent_and_its_rows_are_the_output(server, kid):
    name, newer = kid
    instance, end = run(server, sub(name, version=1, input={"x": "{{data.y}}"}), data={"y": 7})
    assert end == "completed"
    (rows,) = named(server, instance, "sub")
    assert [(row["block_id"], row["output"]) for row in rows] == [("one", {"v": 1, "got": 7})]
    (child,) = server.get(f"/instances/{instance}/children").json()
    assert child["parent_instance_id"] == instance
    assert child["metadata"]["_parent_block_id"] == "sub"
    assert child["metadata"]["_sub_sequence_depth"] == 1
    assert child["context"]["data"] == {"x": 7}
    assert newer


@pytest.mark.req("SEQ-BLK-6")
def test_the_latest_version_that_is_not_deprecated_runs_unless_one_is_pinned(server, kid):
    name, newer = kid
    ran = lambda *blocks: named(server, run(server, *blocks)[0], "sub")[0][0]["block_id"]  # noqa: E731
    assert ran(sub(name)) == "two"
    assert server.post(f"/sequences/{newer}/deprecate").status_code == 204
    assert ran(sub(name)) == "one"
    assert ran(sub(name, version=2)) == "two"


@pytest.mark.req("SEQ-BLK-6")
def test_a_child_that_fails_or_is_cancelled_fails_the_block(server):
    broken, waits = (f"kid-{uuid.uuid4().hex[:8]}" for _ in range(2))
    server.sequence(bad("b"), name=broken)
    server.sequence({"type": "wait", "id": "w", "signal": "x"}, name=waits)
    assert run(server, sub(broken))[1] == "failed"
    assert run(server, attempt([sub(broken)], [step("c")]))[1] == "completed"
    assert run(server, sub(f"nobody-{uuid.uuid4().hex}"))[1] == "failed"
    parent = server.instance(server.sequence(sub(waits)))
    server.settle(parent, "waiting")
    (child,) = server.get(f"/instances/{parent}/children").json()
    assert server.post(f"/instances/{child['id']}/cancel").status_code == 200
    assert server.settle(parent) == "failed"


# cancellation_scope ------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-5")
def test_a_cancel_does_not_touch_a_scope_that_runs(server):
    inside = [step("z", "sleep", params={"duration_ms": 400}), step("in")]
    scope = {"type": "cancellation_scope", "id": "c", "blocks": inside}
    instance = server.instance(server.sequence(scope, step("after")))
    server.settle(instance, "running")
    assert server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"}).status_code
    assert server.settle(instance) == "cancelled"
    assert [block for block, _ in server.outputs(instance)] == ["z", "in"]
