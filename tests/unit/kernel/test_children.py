"""sub_sequence: a child instance per visit; its data and its end come back once."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.model.inputs import ChildEnded, Parent
from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    loop,
    noop,
    put,
    race,
    scope,
    sub,
    wait,
)
from tests.unit.kernel.driver import World

CHILD = [call("work")]


def family(*blocks, child=None, **more):
    world = World(*blocks, **more)
    world.define("child", child or CHILD)
    return world


@pytest.mark.req("SEQ-BLK-6")
def test_the_parent_waits_and_takes_the_childs_data_and_outputs():
    world = family(sub(), noop("after"), child=[put("first", 1), call("work")]).start({"mine": 1})
    (child,) = world.children
    assert world.state == "waiting"
    assert world.snap(child).state == "running"
    world.apply("work", {"made": 2})
    assert world.snap(child).state == "completed"
    assert world.state == "completed"
    assert world.data == {"mine": 1, "made": 2}
    assert world.outputs["sub"] == [
        {"block_id": "first", "output": 1},
        {"block_id": "work", "output": {"made": 2}},
    ]


@pytest.mark.req("SEQ-BLK-6")
def test_the_child_inherits_what_it_must_and_its_input_is_templated():
    world = family(sub(input={"who": "{{data.name}}", "all": "{{data}}"}))
    world.start(
        {"name": "Ada"},
        tenant="t",
        namespace="ns",
        priority=3,
        timezone="Europe/Paris",
        config={"c": 1},
        dry_run=True,
        auto_approve=True,
        seed="s",
    )
    snap = world.snap(world.children[0])
    assert snap.data == {"who": "Ada", "all": {"name": "Ada"}}
    assert (snap.tenant, snap.namespace, snap.priority) == ("t", "ns", 3)
    assert (snap.timezone, snap.config) == ("Europe/Paris", {"c": 1})
    assert (snap.dry_run, snap.auto_approve, snap.seed) == (True, True, "s")
    assert snap.parent["instance"] == "i1"
    assert snap.metadata == {"_parent_block_id": "sub", "_sub_sequence_depth": 1}


@pytest.mark.req("SEQ-BLK-6", "CORE-POL-1")
def test_policies_given_at_the_start_hold_for_the_child_too():
    budget = {"kind": "effect_budget", "params": {"max_effects": 1, "action": "fail"}}
    world = family(sub(), child=[call("one"), call("two")]).start(policies=(budget,))
    world.apply("one")
    assert world.snap(world.children[0]).state == "failed"
    assert world.state == "failed"


@pytest.mark.req("SEQ-BLK-6")
def test_the_newest_version_is_taken_unless_one_is_pinned():
    world = family(sub("kid", id="s1"), sub("kid", id="s2", version=1))
    old = world.define("kid", [noop("old")], version=1)
    new = world.define("kid", [noop("new")], version=2)
    world.start()
    assert [world.snap(id).definition for id in world.children] == [new.hash, old.hash]
    told = [facts for facts in world.actors["i1"].facts if facts]
    assert told == [{"child:kid:": new.hash}, {"child:kid:1": old.hash}]


@pytest.mark.req("SEQ-BLK-6")
@pytest.mark.parametrize("block", [sub("unknown"), sub("child", version=9)])
def test_an_unknown_name_or_version_fails_the_block(block):
    world = family(block).start()
    assert world.state == "failed"
    assert world.error["code"] == "definition.unknown"
    assert world.children == []


@pytest.mark.req("SEQ-BLK-6")
def test_a_failing_child_fails_the_block_and_can_be_caught():
    world = family(attempt([sub()], [noop("c")]), child=[fails("bad", message="broken")]).start()
    assert world.state == "completed"
    assert world.executed == ["t/c"]
    assert "broken" in world.data["_error"]["message"]
    world = family(sub(), child=[fails("bad")]).start()
    assert world.state == "failed"
    assert world.error["kind"] == "child"


@pytest.mark.req("SEQ-BLK-6")
def test_a_cancelled_child_fails_the_block():
    world = family(sub(), child=[wait(signal="x")]).start()
    world.signal("cancel", to=world.children[0])
    assert world.state == "failed"
    assert "cancelled" in world.error["message"]


@pytest.mark.req("SEQ-BLK-6", "SEQ-SIG-1")
def test_a_cancel_of_the_parent_cancels_the_child():
    world = family(sub(), noop("never"), child=[wait(signal="x")]).start()
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.snap(world.children[0]).state == "cancelled"


@pytest.mark.req("SEQ-BLK-6", "CORE-STM-5")
def test_the_late_end_of_a_child_is_noted_and_changes_nothing():
    world = family(
        race([sub()], [wait(signal="now")]), wait("w2", signal="end"), child=[scope(call("work"))]
    ).start()
    world.signal("custom:now")
    (child,) = world.children
    assert world.snap(child).state == "running", "its scope drains"
    before = world.data
    world.apply("work", {"late": True})
    assert world.snap(child).state == "cancelled"
    assert world.data == before
    assert world.entries("event.ignored")[-1][2]["why"] == "nobody waits for this child any more"


@pytest.mark.req("CORE-STM-5")
def test_the_end_of_a_child_with_an_old_token_or_another_id_is_ignored():
    world = family(sub()).start()
    (child,) = world.children
    token = world.snap().root.lanes[0].open.wait.token
    for told in (
        ChildEnded(child=child, token=token + 1, state="completed"),
        ChildEnded(child="another", token=token, state="completed", id="e1"),
    ):
        decision = world.tell(told)
        assert world.state == "waiting"
    assert decision.verdicts[0].ok
    assert len(world.entries("event.ignored")) == 2
    world.apply("work")
    assert world.state == "completed"


@pytest.mark.req("CORE-STM-5")
def test_the_same_end_told_twice_counts_once():
    world = family(loop(sub(), max_iterations=2)).start()
    first = world.snap().root.lanes[0].open.lanes[0].open.wait
    told = ChildEnded(child=first.name, token=first.token, state="completed", data={"n": 1})
    world.tell(told, told)
    assert world.state == "waiting"
    assert len(world.nodes("child.completed")) == 1
    assert len(world.entries("event.ignored")) == 1


@pytest.mark.req("SEQ-BLK-6")
def test_a_second_visit_makes_a_new_child():
    world = family(loop(sub(), max_iterations=3)).start()
    world.finish()
    assert world.state == "completed"
    assert len(set(world.children)) == 3


@pytest.mark.req("SEQ-BLK-6", "CORE-EFF-2")
def test_a_retry_starts_a_new_child():
    world = family(sub(), child=[call("work")]).start()
    world.fail("work", retryable=False)
    world.command("retry")
    assert len(set(world.children)) == 2
    world.apply("work", {"ok": True})
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-6")
def test_children_nest_16_deep_and_no_deeper():
    for depth, end in ((14, "completed"), (15, "failed")):
        world = family(sub("deep"), child=[noop()])
        world.define("deep", [sub("child")])
        world.start(parent=Parent(instance="p", token=1, block="b", depth=depth))
        assert world.state == end


@pytest.mark.req("SEQ-BLK-6")
def test_a_sequence_that_starts_itself_ends_at_the_sixteenth():
    world = World(noop())
    endless = world.define("self", [sub("self")])
    world.start(program=endless)
    assert world.state == "failed"
    assert len(world.children) == 16


@pytest.mark.req("SEQ-BLK-6")
def test_an_input_larger_than_the_context_fails_the_block():
    world = family(sub(input={"x": "{{data.big}}", "y": "{{data.big}}"}))
    world.start({"big": "a" * (limits.CONTEXT_BYTES // 2)})
    assert world.state == "failed"
    assert world.error["code"] == "payload.too_large"
    assert world.children == []


@pytest.mark.req("SEQ-BLK-6", "SEQ-CTX-1")
def test_a_childs_data_that_does_not_fit_fails_the_block_and_changes_nothing():
    world = family(sub(), child=[call("work")]).start({"mine": "a" * 200_000})
    world.apply("work", {"its": "b" * 100_000})
    assert world.state == "failed"
    assert world.error["code"] == "payload.too_large"
    assert list(world.data) == ["mine"]


@pytest.mark.req("SEQ-BLK-6")
def test_a_broken_input_template_fails_the_block():
    world = family(sub(input="{{nowhere.x}}")).start()
    assert (world.state, world.error["kind"]) == ("failed", "expression")


@pytest.mark.req("SEQ-BLK-6")
def test_the_outputs_come_in_the_order_of_their_latest_creation():
    world = family(
        sub(),
        child=[
            loop(noop("a"), noop("b", when="runtime.total_steps_executed < 2"), max_iterations=2)
        ],
    ).start()
    assert [row["block_id"] for row in world.outputs["sub"]] == ["b", "a", "l"]


@pytest.mark.req("SEQ-BLK-6", "CORE-STM-7")
def test_a_pause_held_while_a_child_runs_takes_effect_when_it_ends():
    world = family(sub(), noop("after")).start()
    world.signal("pause")
    assert (world.state, world.snap().pause_requested) == ("waiting", True)
    world.apply("work", {"made": 1})
    assert world.state == "paused"
    assert world.data == {"made": 1}
    assert world.executed == []
    world.signal("resume")
    assert world.state == "completed"
