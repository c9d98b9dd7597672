"""try_catch: try, on failure catch, always finally: after success, failure, cancel and goto."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    goto,
    graph,
    noop,
    parallel,
    put,
    sleep,
    wait,
)
from tests.unit.kernel.driver import run


@pytest.mark.req("SEQ-BLK-5")
def test_after_success_catch_is_passed_over_and_finally_runs():
    world = run(attempt([noop("a")], [noop("c")], [noop("z")]), noop("after"))
    assert world.executed == ["t/a", "t/z", "after"]
    assert "c" not in world.outputs


@pytest.mark.req("SEQ-BLK-5")
def test_a_failure_is_caught_with_its_error_in_data_and_finally_runs():
    world = run(
        attempt([fails("bad"), noop("never")], [put("c", "{{data._error.block_id}}")], [noop("z")])
    )
    assert world.state == "completed"
    assert world.executed == ["t/c", "t/z"]
    assert world.outputs["c"] == "t"
    error = world.data["_error"]
    assert (error["failed_blocks"], error["source"]) == (["bad"], "try_catch")
    assert "bad" not in world.outputs


@pytest.mark.req("SEQ-BLK-5")
def test_an_empty_catch_swallows_the_failure():
    world = run(attempt([fails("bad")]), noop("after"))
    assert world.state == "completed"
    assert world.executed == ["after"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_failing_catch_fails_the_block_after_finally():
    world = run(attempt([fails("bad")], [fails("worse")], [noop("z")]), noop("never"))
    assert world.state == "failed"
    assert world.executed == ["t/z"]
    assert world.error["block"] == "worse"


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize("tried", [[noop("a")], [fails("bad")]])
def test_a_failing_finally_fails_the_block(tried):
    world = run(attempt(tried, [], [fails("last")]))
    assert world.state == "failed"
    assert world.error["block"] == "last"


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_finally_runs_when_try_is_cancelled_and_catch_does_not():
    world = run(attempt([wait("w", signal="x")], [noop("c")], [call("z")]), noop("never"))
    world.signal("cancel")
    assert world.state == "running"
    world.apply("z")
    assert world.state == "cancelled"
    assert world.executed == ["t/z"]


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_finally_runs_when_catch_is_cancelled():
    world = run(attempt([fails("bad")], [sleep("c", 9000)], [noop("z")]))
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.executed == ["t/z"]


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_running_finally_is_not_touched_by_a_cancel():
    world = run(attempt([noop("a")], [], [sleep("z", 500), noop("z2")]), noop("never"))
    world.signal("cancel")
    assert world.state == "running"
    world.after(500)
    assert world.executed == ["t/a", "t/z", "t/z2"]
    assert world.state == "cancelled"


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_finally_that_fails_while_cancelling_still_ends_cancelled():
    world = run(attempt([wait("w", signal="x")], [], [fails("z")]))
    world.signal("cancel")
    assert world.state == "cancelled"


@pytest.mark.req("SEQ-BLK-5")
def test_a_cancel_in_a_block_without_finally_ends_at_once():
    world = run(attempt([wait("w", signal="x")], [noop("c")]))
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.executed == []


@pytest.mark.req("SEQ-BLK-5")
def test_finally_runs_when_a_goto_leaves_try():
    world = run(
        graph(
            {
                "here": [attempt([noop("a"), goto("there", id="j")], [], [call("z")])],
                "there": [noop("b")],
            }
        )
    )
    assert world.has("z")
    assert world.executed == ["g[0:here]/t/a"]
    world.apply("z")
    assert world.executed[1:] == ["g[0:here]/t/z", "g[1:there]/b"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_goto_whose_finally_fails_goes_on_to_its_target_after_a_retry():
    world = run(
        graph(
            {
                "here": [attempt([goto("there", id="j")], [], [call("z")])],
                "there": [noop("b")],
            }
        )
    )
    world.fail("z", retryable=False)
    assert world.state == "failed"
    world.command("retry")
    world.apply("z")
    assert world.executed == ["g[0:here]/t/z", "g[1:there]/b"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_retry_goes_on_in_a_failed_catch_and_repeats_finally_after_it():
    world = run(attempt([call("a"), fails("bad")], [call("c1"), call("c2")], [noop("z")]))
    world.apply("a")
    world.apply("c1")
    world.fail("c2", retryable=False)
    assert (world.state, world.executed) == ("failed", ["t/a", "t/c1", "t/z"])
    world.command("retry")
    assert [order.block for order in world.orders] == ["c2"]
    world.apply("c2")
    assert world.state == "completed"
    assert world.executed == ["t/a", "t/c1", "t/z", "t/c2", "t/z"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_retry_goes_on_in_a_failed_finally():
    world = run(attempt([call("a")], [], [call("z1"), call("z2")]))
    world.apply("a")
    world.apply("z1")
    world.fail("z2", retryable=False)
    world.command("retry")
    assert [order.block for order in world.orders] == ["z2"]
    world.apply("z2")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-5")
def test_an_inner_finally_runs_before_the_outer_catch():
    inner = attempt([fails("bad")], [fails("worse")], [noop("z1")], id="in")
    world = run(attempt([inner], [noop("c")], [noop("z2")], id="out"))
    assert world.executed == ["out/in/z1", "out/c", "out/z2"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_failing_branch_is_caught_after_the_others_have_finished():
    world = run(attempt([parallel([fails("bad")], [call("a")])], [noop("c")]))
    assert world.executed == []
    world.apply("a")
    assert world.executed == ["t/p/a", "t/c"]
