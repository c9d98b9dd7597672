"""router, a_b_split and cancellation_scope."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import (
    call,
    fails,
    loop,
    noop,
    parallel,
    router,
    scope,
    sleep,
    split,
    wait,
)
from tests.unit.kernel.driver import World, run


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize(
    ("data", "taken"),
    [({"n": 1}, "ro/one"), ({"n": 2}, "ro/two"), ({"n": 3}, "ro/other"), (None, "ro/other")],
)
def test_the_first_route_that_holds_is_taken_else_the_default(data, taken):
    world = run(
        router(
            ("n == 1", [noop("one")]),
            ("n >= 1 && n <= 2", [noop("two")]),
            default=[noop("other")],
        ),
        data=data,
    )
    assert world.executed == [taken]


@pytest.mark.req("SEQ-BLK-5")
def test_without_a_match_and_a_default_it_completes_doing_nothing():
    world = run(router(("false", [noop("never")])), noop("after"))
    assert world.executed == ["after"]


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize("condition", ["mode ==", "mode == fast", "nothing.at.all"])
def test_a_broken_condition_is_false_in_a_lenient_definition(condition):
    world = run(router((condition, [noop("never")]), default=[noop("d")]), data={"mode": "fast"})
    assert world.executed == ["ro/d"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_condition_that_needs_too_much_work_is_false_in_a_lenient_definition():
    items = {"items": [1] * 110_000}
    world = run(router(("len(unique(items)) > 0", [noop("yes")]), default=[noop("d")]), data=items)
    assert world.executed == ["ro/d"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_condition_that_cannot_be_evaluated_fails_a_strict_definition():
    world = run(router(("data.n < 1", [noop()])), data={"n": "x"}, mode="strict")
    assert world.state == "failed"
    assert (world.error["kind"], world.error["block"]) == ("expression", "ro")
    assert world.entries("error.occurred")[0][1] == "ro"


@pytest.mark.req("SEQ-BLK-5")
def test_the_choice_is_made_once_and_survives_waits_and_retries():
    world = run(router(("go", [call("a"), call("b")]), default=[noop("d")]), data={"go": True})
    world.apply("a", {"go": False})
    world.fail("b", retryable=False)
    world.command("retry")
    world.apply("b")
    assert world.state == "completed"
    assert world.executed == ["ro/a", "ro/b"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_failing_block_of_the_chosen_route_fails_the_router_and_stops_it():
    world = run(router(("true", [fails("bad"), noop("never")])))
    assert world.state == "failed"
    assert world.executed == []


@pytest.mark.req("SEQ-BLK-5")
def test_conditions_see_outputs_and_state():
    world = run(
        call("a"),
        {"type": "step", "id": "s", "handler": "set_state", "params": {"key": "k", "value": 3}},
        router(("outputs.a.ok && state.k == 3", [noop("yes")])),
    )
    world.apply("a", {"ok": True})
    assert world.executed[-1] == "ro/yes"


@pytest.mark.req("SEQ-BLK-5")
def test_a_split_takes_the_same_variant_every_time_for_one_instance():
    arms = split(("x", 1, [noop("a")]), ("y", 1, [noop("b")]))
    world = run(loop(arms, max_iterations=10))
    taken = {entry[1].rpartition("/")[2] for entry in world.entries("step.executed")}
    assert len(taken) == 1
    variant = world.outputs["ab"]
    assert variant == {
        "variant": "xy"[variant["variant_index"]],
        "variant_index": variant["variant_index"],
    }
    assert run(arms).outputs["ab"] == variant


@pytest.mark.req("SEQ-BLK-5")
def test_half_and_half_takes_both_variants_about_equally():
    taken = {"x": 0, "y": 0}
    world = World(split(("x", 50, []), ("y", 50, [])))
    for number in range(400):
        world.start(id=f"instance-{number}")
        taken[world.snap(f"instance-{number}").outputs["ab"]["variant"]] += 1
    assert 150 < taken["x"] < 250
    first = [world.snap(f"instance-{n}").outputs["ab"]["variant"] for n in range(20)]
    assert {*first} == {"x", "y"}


@pytest.mark.req("SEQ-BLK-5")
def test_a_variant_of_no_weight_is_never_taken():
    world = World(split(("never", 0, [noop("a")]), ("always", 3, [noop("b")])))
    for number in range(30):
        world.start(id=f"i{number}")
        assert world.snap(f"i{number}").outputs["ab"]["variant"] == "always"


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_cancel_takes_effect_after_the_scope_and_nothing_follows():
    world = run(scope(call("a"), call("b")), noop("never"))
    world.signal("cancel")
    assert world.state == "running"
    world.apply("a")
    assert world.has("b"), "the scope goes on to its end"
    world.apply("b")
    assert world.state == "cancelled"
    assert world.executed == ["sc/a", "sc/b"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_cancel_outside_the_scope_is_not_delayed_by_one_that_has_ended():
    world = run(scope(noop("a")), wait("w", signal="x"))
    world.signal("cancel")
    assert world.state == "cancelled"


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_scope_protects_its_branch_only():
    world = run(parallel([scope(sleep("kept", 500))], [call("gone")]), noop("never"))
    world.signal("cancel")
    assert world.nodes("step.cancelled") == ["p/gone"]
    world.after(500)
    assert world.state == "running", "the call that was under way is not settled yet"
    world.apply("gone")
    assert world.state == "cancelled"
    assert world.executed == ["p/sc/kept"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_scope_that_fails_after_a_cancel_ends_cancelled():
    world = run(scope(call("a")))
    world.signal("cancel")
    world.fail("a", retryable=False)
    assert world.state == "cancelled"


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_waiting_scope_is_protected_too():
    world = run(scope(wait("w", signal="x"), noop("a")), noop("never"))
    assert world.state == "waiting"
    world.signal("cancel")
    assert world.state == "waiting"
    world.signal("custom:x")
    assert world.state == "cancelled"
    assert world.executed == ["sc/a"]
