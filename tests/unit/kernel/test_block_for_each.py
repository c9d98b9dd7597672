"""for_each: the body once per element of a collection that is read once."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import (
    attempt,
    call,
    for_each,
    goto,
    graph,
    noop,
    put,
    sleep,
)
from tests.unit.kernel.driver import run


@pytest.mark.req("SEQ-BLK-4")
def test_each_element_is_visible_under_its_name_and_removed_at_the_end():
    world = run(
        for_each(put("p", {"it": "{{data.item}}"})),
        put("last", "{{data.item}}"),
        data={"items": [7, 8]},
    )
    outputs = [entry[2]["output"] for entry in world.entries("step.executed")]
    assert outputs == [{"it": 7}, {"it": 8}, None]
    assert world.data == {"items": [7, 8]}
    assert world.outputs["fe"] == {"_index": 2, "_total": 2, "_item_var": "item"}


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize(
    ("collection", "data"),
    [
        ("items", {"items": []}),
        ("items", {}),
        ("items", None),
        ("items", {"items": "abc"}),
        ("items", {"items": {"a": 1}}),
        ("a.b", {"a": 1}),
        ("{{data.nothing}}", {}),
    ],
)
def test_what_is_missing_empty_or_no_list_completes_without_a_round(collection, data):
    world = run(for_each(call("a"), collection=collection), data=data)
    assert world.state == "completed"
    assert world.outputs["fe"]["_total"] == 0


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize(
    "collection", ["order.lines", "{{data.order.lines}}", "{{context.data.order.lines}}"]
)
def test_a_collection_is_a_path_below_data_or_a_template(collection):
    world = run(for_each(noop(), collection=collection), data={"order": {"lines": [1, 2, 3]}})
    assert world.outputs["fe"]["_total"] == 3


@pytest.mark.req("SEQ-BLK-4")
def test_the_collection_is_read_once_and_later_changes_do_not_matter():
    world = run(for_each(call("a", params={"x": "{{data.item}}"})), data={"items": [1, 2]})
    world.signal("update_context", {"data": {"items": [9, 9, 9]}})
    assert world.request() == {"x": 1}
    world.apply()
    assert world.request() == {"x": 2}
    world.apply()
    assert world.state == "completed"
    assert world.data["items"] == [9, 9, 9]


@pytest.mark.req("SEQ-BLK-4")
def test_max_iterations_bounds_the_rounds():
    world = run(for_each(noop(), max_iterations=2), data={"items": [1, 2, 3]})
    assert world.executed == ["fe[0]/n", "fe[1]/n"]


@pytest.mark.req("SEQ-BLK-4")
def test_a_failing_element_fails_the_block_and_its_name_is_gone():
    world = run(for_each(call("a")), data={"items": [1, 2]})
    world.apply()
    world.fail(retryable=False)
    assert world.state == "failed"
    assert "item" not in world.data


@pytest.mark.req("SEQ-BLK-4")
def test_a_caught_failure_leaves_no_element_behind():
    world = run(attempt([for_each(call("a"), item_var="it")]), data={"items": [1]})
    world.fail(retryable=False)
    assert world.state == "completed"
    assert "it" not in world.data


@pytest.mark.req("SEQ-BLK-4")
def test_a_retry_goes_on_with_the_failed_element_and_shows_it_again():
    world = run(for_each(call("a", params={"x": "{{data.item}}"})), data={"items": [5, 6, 7]})
    world.apply()
    world.fail(retryable=False)
    world.command("retry")
    assert (world.order().node, world.request()) == ("fe[1]/a", {"x": 6})
    world.apply()
    world.apply()
    assert world.state == "completed"
    assert [node for node, _ in world.planned()] == ["fe[0]/a", "fe[1]/a", "fe[1]/a", "fe[2]/a"]


@pytest.mark.req("SEQ-BLK-4", "SEQ-SIG-1")
@pytest.mark.parametrize("cancellable", [True, False])
def test_a_cancel_ends_it_in_the_element_under_way(cancellable):
    world = run(for_each(sleep("s", 500, cancellable=cancellable)), data={"items": [1, 2]})
    world.signal("cancel")
    world.finish()
    assert world.state == "cancelled"
    assert world.executed == ([] if cancellable else ["fe[0]/s"])
    assert "item" not in world.data


@pytest.mark.req("SEQ-BLK-4")
def test_a_goto_out_of_it_leaves_no_element_behind():
    world = run(
        graph({"here": [for_each(goto("there", id="j"))], "there": [noop()]}),
        data={"items": [1, 2]},
    )
    assert world.executed == ["g[1:there]/n"]
    assert "item" not in world.data


@pytest.mark.req("SEQ-BLK-4")
def test_nested_collections_run_every_pair():
    world = run(
        for_each(
            for_each(put("p", "{{data.x}}{{data.y}}"), id="in", collection="ys", item_var="y"),
            id="out",
            collection="xs",
            item_var="x",
        ),
        data={"xs": [1, 2], "ys": ["a", "b"]},
    )
    outputs = [entry[2]["output"] for entry in world.entries("step.executed")]
    assert outputs == ["1a", "1b", "2a", "2b"]


@pytest.mark.req("SEQ-BLK-4")
def test_a_template_that_cannot_be_rendered_fails_the_block():
    world = run(for_each(noop(), collection="{{nowhere.items}}"), data={})
    assert world.state == "failed"
    assert world.error["kind"] == "expression"
