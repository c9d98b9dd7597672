"""Order within a turn, and waits that fall together."""

from __future__ import annotations

import pytest

from detent.model.inputs import EffectApplied, SignalReceived
from tests.unit.kernel.blocks import call, loop, noop, parallel, put, race, sleep, wait
from tests.unit.kernel.driver import run, ticks


@pytest.mark.req("CORE-SCH-2")
def test_waits_due_earlier_fire_before_those_due_later_whatever_their_place():
    world = run(parallel([sleep("late", 300)], [sleep("early", 100)], [sleep("mid", 200)]))
    world.at(100)
    assert world.executed == ["p/early", "p/mid", "p/late"]


@pytest.mark.req("CORE-SCH-2")
def test_waits_due_at_one_tick_fire_in_the_order_of_the_tree():
    world = run(parallel(*[[sleep(f"s{n}", 500), noop(f"n{n}")] for n in range(4)]))
    world.after(500)
    assert world.executed == [path for n in range(4) for path in (f"p/s{n}", f"p/n{n}")]


@pytest.mark.req("CORE-SCH-2")
def test_inputs_come_after_waits_due_before_and_before_waits_due_now():
    world = run(
        parallel(
            [wait("before", duration=900), put("b", "{{data.n|0}}")],
            [wait("now", duration=1000), put("c", "{{data.n|0}}")],
        ),
    )
    world.tick += ticks(1000)
    world.signal("update_context", {"n": 1})
    assert (world.outputs["b"], world.outputs["c"]) == (0, 1)


@pytest.mark.req("CORE-SCH-2", "CORE-SCH-1")
def test_each_input_runs_the_instance_to_its_next_wait_before_the_next_is_looked_at():
    world = run(
        wait("w1", signal="x"),
        put("p1", "{{data.n|0}}"),
        wait("w2", signal="x"),
        put("p2", "{{data.n|0}}"),
    )
    world.tell(
        SignalReceived(name="custom:x"),
        SignalReceived(name="update_context", payload={"n": 1}),
        SignalReceived(name="custom:x"),
    )
    assert (world.outputs["p1"], world.outputs["p2"]) == (0, 1)
    assert world.state == "completed"


@pytest.mark.req("CORE-CLK-3", "CORE-SCH-2")
def test_a_wait_entered_by_a_late_turn_counts_from_that_turn():
    world = run(sleep("a", 100), sleep("b", 100), sleep("c", 0))
    world.at(1000)
    assert world.executed == ["a"]
    assert world.decision.due == 1001
    world.at(1001)
    assert world.executed == ["a", "b", "c"]


@pytest.mark.req("CORE-CLK-3")
@pytest.mark.parametrize("ms", [1, 99, 100, 101, 250, 86_400_000])
def test_no_wait_ever_ends_early_at_any_tick(ms):
    world = run(sleep("s", ms))
    start, due = world.tick, world.decision.due
    assert (due - start) * 100 >= ms > (due - start - 1) * 100
    world.at(due - 1) if due - 1 > start else None
    assert world.state == "running"
    world.at(due)
    assert world.state == "completed"


@pytest.mark.req("CORE-SCH-1")
def test_steps_that_only_compute_follow_in_one_turn_each_with_its_own_entry():
    world = run(noop("a"), put("b", 1), noop("c"))
    assert world.decision.version == 1
    assert world.executed == ["a", "b", "c"]


@pytest.mark.req("CORE-SCH-2")
def test_a_race_of_equal_waits_is_won_by_the_first_in_the_tree():
    world = run(race([wait("a", duration=500)], [wait("b", duration=500)]))
    world.after(500)
    assert list(world.outputs) == ["a"]


@pytest.mark.req("CORE-SCH-2")
def test_an_outcome_at_the_tick_of_the_deadline_comes_first():
    world = run(call("a", deadline=1000))
    world.tick += ticks(1000)
    world.apply("a", {"ok": 1})
    assert world.state == "completed"
    world = run(call("a", deadline=1000))
    world.tick += ticks(1000) + 1
    world.apply("a", {"ok": 1})
    assert world.state == "failed", "one tick later the deadline came first"


@pytest.mark.req("CORE-SCH-2")
def test_a_wait_that_ends_at_the_tick_of_the_steps_deadline_is_in_time():
    world = run(sleep("s", 1000, deadline=1000))
    world.after(1000)
    assert world.state == "completed"


@pytest.mark.req("CORE-SCH-2")
def test_two_outcomes_for_one_branch_in_one_turn_are_taken_one_after_the_other():
    world = run(loop(call("a"), max_iterations=2))
    first = world.order("a").key
    world.tell(EffectApplied(key=first, result={"n": 1}), SignalReceived(name="custom:x"))
    assert world.order("a").node == "l[0]/a"
    assert world.history[-1].node == "l[1]/a"


@pytest.mark.req("CORE-CLK-3")
def test_a_wait_is_due_in_the_snapshot_and_nowhere_else():
    world = run(parallel([sleep("a", 900)], [wait("b", duration=400)], [wait("c", signal="x")]))
    assert world.decision.due == world.tick + 4
    world.due()
    assert world.decision.due == world.tick + 5
    world.due()
    assert world.decision.due is None
    assert world.state == "waiting"
