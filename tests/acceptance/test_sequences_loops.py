"""Loops and choices (SEQ-BLK-4, SEQ-BLK-5)."""

from __future__ import annotations

import pytest

import detent
from detent import (
    a_b_split,
    for_each,
    loop,
    route,
    router,
    sequence,
    step,
    variant,
    wait,
)
from detent.testing import Calls
from tests.acceptance.stage import (
    finished,
    nodes,
    outputs,
    virtual,
)


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


@pytest.fixture
def calls():
    return Calls()


def say(id, text=None):
    return step(id, "log", params={"message": text or id})


def said(engine, shown):
    """The blocks with an output row, in the order of creation."""
    return [block for block, _ in outputs(engine, shown.summary.id)]


# loops --------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_runs_while_its_condition_holds(engine):
    @detent.handler
    def count(ctx: detent.HandlerContext):
        return {"n": ctx.data["n"] + 1}

    engine.register(count)
    shown = finished(engine, sequence("s", loop("l", "data.n < 5", step("c", count))), {"n": 0})
    assert shown.data == {"n": 5}
    rows = [output for block, output in outputs(engine, shown.summary.id) if block == "c"]
    assert [row["n"] for row in rows] == [1, 2, 3, 4, 5]


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_whose_condition_is_false_at_once_does_nothing(engine):
    shown = finished(engine, sequence("s", loop("l", "false", say("never")), say("after")))
    assert "never" not in shown.outputs
    assert "after" in shown.outputs


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_completes_at_its_cap_which_is_a_thousand_by_default(engine):
    for most in (None, 3):
        options = {} if most is None else {"max_iterations": most}
        definition = sequence(f"s{most}", loop("l", "true", say("x"), **options))
        shown = finished(engine, definition)
        assert shown.summary.state == "completed"
        assert said(engine, shown).count("x") == (most or 1000)


@pytest.mark.req("SEQ-BLK-4")
def test_break_on_ends_a_loop_after_the_body(engine):
    body = [step("s", "set_state", params={"key": "seen", "value": True}), say("tail")]
    definition = sequence("s", loop("l", "true", *body, break_on="state.seen"))
    shown = finished(engine, definition)
    assert said(engine, shown).count("tail") == 1


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize("go_on", [True, False])
def test_a_failing_body_ends_a_loop_unless_it_is_told_to_go_on(engine, go_on):
    body = [say("a"), step("f", "fail"), say("never")]
    definition = sequence(
        "s", loop("l", "true", *body, max_iterations=3, continue_on_error=go_on), say("after")
    )
    shown = finished(engine, definition)
    assert shown.summary.state == ("completed" if go_on else "failed")
    assert said(engine, shown).count("a") == (3 if go_on else 1)
    assert "never" not in shown.outputs


@pytest.mark.req("SEQ-BLK-4")
def test_a_poll_interval_parts_the_rounds(engine):
    shown = finished(
        engine, sequence("s", loop("l", "true", say("x"), max_iterations=4, poll_interval=30))
    )
    ticks = [row.tick for row in engine.inspect.outputs(shown.summary.id) if row.block == "x"]
    assert ticks == [0, 300, 600, 900]


@pytest.mark.req("SEQ-BLK-4")
def test_for_each_takes_its_collection_once_and_gives_each_element_in_order(engine):
    definition = sequence(
        "s",
        for_each(
            "e",
            "people",
            say("hi", "hi {{ data.person.name }}"),
            wait("w", "1h"),
            item_var="person",
        ),
        say("after", "{{ data.person }}"),
    )
    instance = engine.start(definition, {"people": [{"name": "Ada"}, {"name": "Bob"}]})
    engine.signal(instance, "update_context", {"people": [{"name": "Eve"}] * 9})
    assert engine.wait_for(instance) == "completed"
    hellos = [out["message"] for block, out in outputs(engine, instance) if block == "hi"]
    assert hellos == ["hi Ada", "hi Bob"]
    assert "person" not in engine.inspect.show(instance).data


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize("collection", ["items", "{{ data.items }}", "{{ outputs.made.list }}"])
def test_a_collection_is_a_path_below_data_or_a_template(engine, collection):
    definition = sequence(
        "s",
        step("made", "transform", params={"list": [1, 2, 3]}),
        for_each("e", collection, say("x", "{{ data.item }}")),
    )
    shown = finished(engine, definition, {"items": [1, 2, 3]})
    assert [out["message"] for block, out in outputs(engine, shown.summary.id) if block == "x"] == [
        1,
        2,
        3,
    ]


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize("items", [None, [], "text", 5, {"a": 1}])
def test_what_is_no_list_or_is_empty_completes_doing_nothing(engine, items):
    shown = finished(
        engine, sequence("s", for_each("e", "items", say("x")), say("after")), {"items": items}
    )
    assert shown.summary.state == "completed"
    assert set(shown.outputs) >= {"after"}
    assert "x" not in shown.outputs


@pytest.mark.req("SEQ-BLK-4")
def test_nested_loops_leave_one_output_per_round_and_retention_keeps_the_newest(engine):
    for retain in (None, 2):
        options = {} if retain is None else {"retain_iterations": retain}
        inner = loop("inner", "true", say("x"), max_iterations=3)
        definition = sequence(
            f"s{retain}", loop("outer", "true", inner, max_iterations=4, **options)
        )
        shown = finished(engine, definition)
        assert said(engine, shown).count("x") == (12 if retain is None else 6)


# choices ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize(
    ("data", "taken"),
    [
        ({"n": 1}, "one"),
        ({"n": 15}, "many"),
        ({"n": -3}, "none"),
        ({"n": "x"}, "none"),
        (None, "none"),
    ],
)
def test_a_router_takes_the_first_route_that_holds_or_the_default(engine, data, taken):
    definition = sequence(
        "s",
        router(
            "r",
            route("data.n == 1", say("one")),
            route("data.n > 0", say("many")),
            route("data.n == 1 || data.n > 10", say("too late")),
            default=say("none"),
        ),
    )
    shown = finished(engine, definition, data)
    assert list(shown.outputs) == [taken]
    tree = nodes(engine, shown.summary.id)
    assert tree.pop(f"r/{taken}") == tree.pop("r") == "completed"
    assert set(tree.values()) == {"skipped"}


@pytest.mark.req("SEQ-BLK-5")
def test_a_router_without_a_way_completes_and_a_failing_way_fails_it(engine):
    nowhere = sequence("nowhere", router("r", route("false", say("x"))), say("after"))
    failing = sequence("failing", router("r", route("true", step("f", "fail"))), say("after"))
    assert list(finished(engine, nowhere).outputs) == ["after"]
    assert finished(engine, failing).summary.state == "failed"


@pytest.mark.req("SEQ-BLK-5")
def test_a_split_follows_its_weights_and_is_the_same_each_time_for_an_instance(tmp_path):
    split = a_b_split("ab", variant("a", 3, say("va")), variant("b", 1, say("vb")))
    definition = sequence("s", loop("l", "true", split, max_iterations=3))
    taken = []
    for name in ("one.db", "two.db"):
        with virtual(tmp_path / name, seed=name) as engine:
            made = [engine.start(definition, key=f"k{n}") for n in range(200)]
            engine.run_until_idle()
            ways = [{b for b, _ in outputs(engine, id) if b in ("va", "vb")} for id in made]
            rows = [o for b, o in outputs(engine, made[0]) if b == "ab"]
        assert all(len(way) == 1 for way in ways)
        assert rows[0] in (
            {"variant": "a", "variant_index": 0},
            {"variant": "b", "variant_index": 1},
        )
        taken.append([next(iter(way)) for way in ways])
    assert taken[0] == taken[1]
    assert 120 <= taken[0].count("va") <= 180
