"""parallel: branches overlap, all must complete, a failing one lets the others finish."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import attempt, call, fails, goto, graph, noop, parallel, sleep, wait
from tests.unit.kernel.driver import run


@pytest.mark.req("SEQ-BLK-2")
def test_calls_of_all_branches_are_ordered_in_the_same_turn():
    world = run(parallel([call("a")], [call("b")], [call("c")]))
    assert [order.block for order in world.orders] == ["a", "b", "c"]
    world.apply("b")
    world.apply("c")
    assert world.state == "running"
    world.apply("a")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-2")
def test_two_sleeps_of_a_second_take_one_second_and_not_two():
    world = run(parallel([sleep("x", 1000)], [sleep("y", 1000)]))
    world.after(900)
    assert world.state == "running"
    world.after(100)
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-2")
@pytest.mark.parametrize("branches", [([],), ([], [], []), ([], [noop()])])
def test_empty_branches_complete(branches):
    assert run(parallel(*branches)).state == "completed"


@pytest.mark.req("SEQ-BLK-2")
def test_a_failing_branch_lets_the_others_finish_and_then_fails_the_block():
    world = run(parallel([fails("bad"), noop("never")], [call("a"), call("b")]), noop("after"))
    assert world.state == "running"
    world.apply("a")
    world.apply("b")
    assert world.state == "failed"
    assert world.executed == ["p/a", "p/b"]
    assert world.error["block"] == "bad"


@pytest.mark.req("SEQ-BLK-2")
def test_the_first_of_two_failures_is_the_one_that_is_reported():
    world = run(parallel([call("a")], [call("b")]))
    world.fail("b", "second branch", retryable=False)
    world.fail("a", "first branch", retryable=False)
    assert world.error["message"] == "second branch"


@pytest.mark.req("SEQ-BLK-2")
def test_the_outputs_and_data_of_all_branches_are_there_afterwards():
    world = run(parallel([call("a")], [call("b")]))
    world.apply("b", {"from_b": 2})
    world.apply("a", {"from_a": 1})
    assert world.data == {"from_a": 1, "from_b": 2}
    assert list(world.outputs) == ["b", "a"]


@pytest.mark.req("SEQ-BLK-2", "SEQ-SIG-1")
def test_a_cancel_ends_every_branch_and_runs_each_finally():
    world = run(
        parallel(
            [attempt([wait("w1", duration=9000)], [], [noop("tidy")], id="t1")],
            [sleep("s", 9000)],
            [noop("done")],
        ),
        noop("after"),
    )
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.executed == ["p/done", "p/t1/tidy"]


@pytest.mark.req("SEQ-BLK-2")
def test_a_retry_goes_on_in_the_failed_branch_alone():
    world = run(parallel([call("a")], [call("b"), call("c")]))
    world.apply("a")
    world.apply("b")
    world.fail("c", retryable=False)
    assert world.state == "failed"
    assert world.command("retry").ok
    assert [order.block for order in world.orders] == ["c"]
    world.apply("c")
    assert world.state == "completed"
    assert world.planned() == [("p/a", 1), ("p/b", 1), ("p/c", 1), ("p/c", 1)]


@pytest.mark.req("SEQ-BLK-2")
def test_a_retry_goes_on_in_every_failed_branch():
    world = run(parallel([call("a")], [call("b")], [call("c")]))
    world.fail("a", retryable=False)
    world.apply("b")
    world.fail("c", retryable=False)
    world.command("retry")
    assert [order.block for order in world.orders] == ["a", "c"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_goto_in_one_branch_waits_until_the_finally_of_another_has_run():
    world = run(
        graph(
            {
                "here": [
                    parallel(
                        [call("go"), goto("there", id="j")],
                        [attempt([wait("w", signal="x")], [], [call("tidy")])],
                    ),
                ],
                "there": [noop("arrived")],
            },
        )
    )
    world.apply("go")
    assert world.has("tidy")
    assert "g[1:there]/arrived" not in world.executed
    world.apply("tidy")
    assert world.executed[-1] == "g[1:there]/arrived"
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-2")
def test_a_goto_after_a_failure_of_another_branch_does_not_hide_the_failure():
    world = run(
        graph(
            {
                "here": [parallel([fails("bad")], [call("go"), goto("there", id="j")])],
                "there": [noop("arrived")],
            }
        )
    )
    world.apply("go")
    assert world.state == "failed"
    assert world.error["block"] == "bad"
