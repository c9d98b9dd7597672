"""loop: while the condition holds, up to its cap; it yields after 1,000 moves and goes on."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import call, fails, for_each, loop, noop, parallel, put, router, sleep
from tests.unit.kernel.driver import World, run


@pytest.mark.req("SEQ-BLK-4")
def test_the_body_runs_while_the_condition_holds():
    world = run(loop(call("a"), condition="!data.done"))
    world.apply("a")
    world.apply("a", {"done": True})
    assert world.state == "completed"
    assert world.executed == ["l[0]/a", "l[1]/a"]
    assert world.outputs["l"] == {"_iterations": 2}


@pytest.mark.req("SEQ-BLK-4")
@pytest.mark.parametrize("condition", ["false", "data.missing", "1 +", "0"])
def test_a_condition_that_does_not_hold_or_cannot_be_read_runs_nothing(condition):
    world = run(loop(call("a"), condition=condition))
    assert world.state == "completed"
    assert world.outputs["l"] == {"_iterations": 0}


@pytest.mark.req("SEQ-BLK-4")
def test_reaching_the_cap_completes_normally():
    world = run(loop(noop("a"), max_iterations=3), noop("after"))
    assert world.executed == ["l[0]/a", "l[1]/a", "l[2]/a", "after"]
    assert world.outputs["l"] == {"_iterations": 3}


@pytest.mark.req("SEQ-BLK-4")
def test_the_cap_is_1000_unless_told():
    world = run(loop(noop("a"))).finish()
    assert world.outputs["l"] == {"_iterations": 1000}


@pytest.mark.req("SEQ-BLK-4")
def test_break_on_ends_the_loop_after_the_body_and_counts_that_round():
    world = run(loop(call("a"), break_on="data.stop"))
    world.apply("a")
    world.apply("a", {"stop": True})
    assert world.state == "completed"
    assert world.outputs["l"] == {"_iterations": 2}


@pytest.mark.req("SEQ-BLK-4")
def test_a_failing_body_fails_the_loop_at_once():
    world = run(loop(noop("a"), fails("bad"), noop("never"), max_iterations=3))
    assert world.state == "failed"
    assert world.executed == ["l[0]/a"]
    assert world.error["node"] == "l[0]/bad"


@pytest.mark.req("SEQ-BLK-4")
def test_continue_on_error_goes_on_with_the_next_round():
    world = run(loop(fails("bad"), noop("never"), max_iterations=3, continue_on_error=True))
    assert world.state == "completed"
    assert world.outputs["l"] == {"_iterations": 3}
    assert world.nodes("error.occurred") == ["l[0]/bad", "l[1]/bad", "l[2]/bad"]


@pytest.mark.req("SEQ-BLK-4", "CORE-CLK-3")
def test_poll_interval_waits_between_rounds_in_whole_seconds():
    world = run(loop(call("look"), condition="!data.ready", poll_interval=5))
    world.apply("look")
    assert world.state == "scheduled"
    world.after(4900)
    assert not world.has("look")
    world.after(100)
    world.apply("look", {"ready": True})
    assert world.state == "scheduled"
    world.after(5000)
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-4")
def test_a_loop_that_waits_to_poll_is_not_woken_by_another_branch():
    world = run(parallel([loop(noop("look"), poll_interval=60)], [call("a")]), noop("after"))
    world.apply("a")
    assert world.state == "scheduled"
    assert world.executed == ["p/l[0]/look", "p/a"]


@pytest.mark.req("SEQ-BLK-4", "SEQ-SIG-1")
def test_a_cancel_ends_a_loop_that_waits_to_poll():
    world = run(loop(noop("look"), poll_interval=60), noop("after"))
    world.signal("cancel")
    assert world.state == "cancelled"


@pytest.mark.req("CORE-SCH-3")
def test_after_1000_moves_the_instance_yields_and_is_ready_again_at_once():
    world = run(loop(noop("a"), max_iterations=2000))
    assert world.decision.more
    assert world.decision.due == world.tick
    assert world.state == "running"
    first = len(world.executed)
    assert 400 <= first <= 1000
    world.tell()
    assert len(world.executed) <= 2 * first + 1
    world.finish()
    assert world.state == "completed"
    assert world.executed == [f"l[{n}]/a" for n in range(2000)]


@pytest.mark.req("CORE-SCH-3")
def test_an_empty_round_is_a_move_too():
    world = run(loop(noop("a", when="false"), max_iterations=100_000))
    assert world.decision.more
    assert len(world.nodes("step.skipped")) <= 1000


@pytest.mark.req("CORE-SCH-3")
def test_waits_of_no_length_use_up_moves_as_well():
    world = run(loop(sleep("s", 0), max_iterations=100_000))
    assert world.decision.more
    assert len(world.executed) <= 1000


@pytest.mark.req("CORE-SCH-3")
def test_retries_without_backoff_use_up_moves_as_well():
    many = {"max_attempts": 1_000_000, "initial_backoff": 0, "max_backoff": 0}
    world = run(fails("bad", retryable=True, retry=many))
    assert world.decision.more
    assert len(world.entries("error.retried")) <= 1001
    world.tell()
    assert world.decision.more


@pytest.mark.req("CORE-SCH-3", "SEQ-SIG-1")
def test_a_loop_out_of_moves_can_be_cancelled_and_paused():
    blocks = [loop(noop("a"), max_iterations=100_000)]
    world = World(*blocks).start()
    world.signal("pause")
    assert world.state == "paused"
    assert not world.decision.more
    assert world.decision.due is None
    world.signal("resume")
    assert world.decision.more
    world.signal("cancel")
    assert world.state == "cancelled"


@pytest.mark.req("SEQ-BLK-4", "SEQ-SIG-1")
@pytest.mark.parametrize("block", [loop(call("a"), max_iterations=2), for_each(call("a"))])
def test_a_round_that_ends_while_paused_is_not_the_last_one(block):
    world = run(block, data={"items": [1, 2]})
    world.signal("pause")
    world.apply("a")
    assert (world.state, len(world.executed)) == ("paused", 1)
    world.signal("resume")
    world.apply("a")
    assert world.state == "completed"
    assert len(world.executed) == 2


@pytest.mark.req("SEQ-BLK-4")
def test_a_retry_goes_on_in_the_round_that_failed():
    world = run(loop(call("a"), call("b"), max_iterations=3))
    world.apply("a")
    world.apply("b")
    world.apply("a")
    world.fail("b", retryable=False)
    world.command("retry")
    assert world.order().node == "l[1]/b"
    world.apply("b")
    world.finish()
    assert world.executed == ["l[0]/a", "l[0]/b", "l[1]/a", "l[1]/b", "l[2]/a", "l[2]/b"]


@pytest.mark.req("SEQ-BLK-4")
def test_a_condition_that_fails_in_a_strict_definition_is_retried_in_its_round():
    blocks = [loop(call("a"), condition="data.n < 2")]
    world = run(*blocks, data={"n": 0}, mode="strict")
    world.apply("a", {"n": "many"})
    assert world.state == "failed"
    assert world.error["kind"] == "expression"
    world.command("retry")
    assert world.state == "failed", "nothing changed, so it fails in the same place"
    assert world.planned() == [("l[0]/a", 1)]


@pytest.mark.req("CORE-EFF-2")
def test_every_round_of_every_enclosing_loop_has_its_own_key():
    world = run(loop(loop(call("a"), id="in", max_iterations=2), id="out", max_iterations=2))
    world.finish()
    nodes = [node for node, _ in world.planned()]
    assert nodes == ["out[0]/in[0]/a", "out[0]/in[1]/a", "out[1]/in[0]/a", "out[1]/in[1]/a"]
    assert len({order.key for order in world.history}) == 4


@pytest.mark.req("SEQ-BLK-4")
def test_outputs_of_the_body_are_visible_to_the_condition_and_the_next_round():
    world = run(
        loop(
            put("n", {"seen": "{{outputs.n.count|0}}", "count": 1}),
            condition="outputs.n.count != 1 || outputs.n.seen == 0",
        )
    )
    assert world.outputs["l"] == {"_iterations": 2}


@pytest.mark.req("SEQ-BLK-4")
def test_loops_in_parallel_take_turns_of_one_budget():
    world = run(
        parallel(
            [loop(noop("a"), id="l1", max_iterations=700)],
            [loop(router(("true", [noop("b")])), id="l2", max_iterations=700)],
        )
    )
    assert world.decision.more
    world.finish()
    assert world.state == "completed"
    assert len(world.executed) == 1400
