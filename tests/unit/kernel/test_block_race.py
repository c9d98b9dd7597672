"""race: the first branch decides; the losers are cancelled, with their calls, after finally."""

from __future__ import annotations

import pytest

from detent.model.inputs import EffectApplied
from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    goto,
    graph,
    noop,
    race,
    saga,
    scope,
    sleep,
    wait,
)
from tests.unit.kernel.driver import run

ONCE = {"b": {"doubt": "once"}}
FIRST_TO_SUCCEED = {"semantics": "first_to_succeed"}


@pytest.mark.req("SEQ-BLK-3")
def test_the_first_branch_to_complete_wins_and_the_rest_never_run():
    world = run(race([call("a"), noop("a2")], [call("b"), noop("b2")]), noop("after"))
    world.apply("b")
    assert world.state == "completed"
    assert world.executed == ["r/b", "r/b2", "after"]
    assert world.entries("race.decided")[0][2] == {"branch": 1, "ended": "completed"}


@pytest.mark.req("SEQ-BLK-3")
def test_an_empty_branch_wins_at_once():
    world = run(race([call("a")], []))
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-3")
def test_by_default_the_first_to_fail_decides_too():
    world = run(race([call("a")], [call("b")]))
    world.fail("a", retryable=False)
    assert world.state == "failed"
    assert world.error["block"] == "a"


@pytest.mark.req("SEQ-BLK-3")
def test_first_to_succeed_fails_only_when_all_have_failed():
    world = run(race([call("a")], [call("b")], [call("c")], **FIRST_TO_SUCCEED))
    world.fail("a", retryable=False)
    world.fail("c", retryable=False)
    assert world.state == "running"
    world.fail("b", "the last", retryable=False)
    assert world.state == "failed"
    assert world.error["message"] == "the last"


@pytest.mark.req("SEQ-BLK-3")
def test_first_to_succeed_is_not_decided_by_a_failure():
    world = run(race([fails("bad")], [call("b")], **FIRST_TO_SUCCEED))
    world.apply("b")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-3", "CORE-EFF-3")
def test_a_losers_call_that_was_not_started_is_withdrawn():
    world = run(race([call("a")], [call("b")]), noop("after"), handlers=ONCE)
    key = world.order("b").key
    decision = world.apply("a")
    assert decision.withdrawn == [key]
    assert world.nodes("effect.withdrawn") == ["r/b"]
    assert not world.snap().effects


@pytest.mark.req("SEQ-BLK-3", "CORE-EFF-3")
def test_a_losers_call_in_flight_is_recalled_and_settled_without_resuming_anything():
    world = run(race([call("a")], [call("b"), noop("b2")]), call("next"), handlers=ONCE)
    key = world.mark("b").key
    decision = world.apply("a")
    assert not decision.withdrawn
    assert decision.recalled == [key]
    assert [effect.unwanted for effect in world.snap().effects] == [True, False]
    world.apply("b", {"late": True})
    assert world.data is None
    assert "r/b2" not in world.executed
    assert world.nodes("effect.applied") == ["r/a", "r/b"]


@pytest.mark.req("SEQ-BLK-3", "CORE-STM-5")
def test_a_losers_outcome_settles_its_entry_even_after_the_end():
    world = run(race([call("a")], [call("b")]))
    key = world.order("b").key
    world.apply("a")
    assert world.state == "completed"
    assert world.decision.busy
    world.tell(EffectApplied(key=key, result={}))
    assert not world.decision.busy
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-3", "SEQ-BLK-5")
def test_the_finally_of_a_loser_runs_and_the_race_waits_for_it():
    world = run(
        race([call("a")], [attempt([wait("w", signal="never")], [], [call("tidy")])]),
        noop("after"),
    )
    world.apply("a")
    assert world.has("tidy")
    assert world.executed == ["r/a"]
    world.apply("tidy")
    assert world.executed == ["r/a", "r/t/tidy", "after"]


@pytest.mark.req("SEQ-BLK-3", "SEQ-BLK-5")
@pytest.mark.parametrize(
    "protected",
    [
        [scope(sleep("s", 500))],
        [sleep("s", 500, cancellable=False)],
        [attempt([wait("w", signal="never")], [], [sleep("s", 500)])],
        [saga((noop("did"), sleep("s", 500)), (wait("w", signal="never"), None))],
    ],
    ids=["scope", "not cancellable", "finally", "saga"],
)
def test_what_may_not_be_stopped_in_a_loser_drains_before_the_race_ends(protected):
    world = run(race([call("a")], protected), noop("after"))
    world.apply("a")
    assert "after" not in world.executed
    world.finish()
    assert world.state == "completed"
    assert world.executed[-1] == "after"


@pytest.mark.req("SEQ-BLK-3")
def test_a_failing_finally_of_a_loser_does_not_change_who_won():
    world = run(race([call("a")], [attempt([wait("w", signal="x")], [], [fails("bad")])]))
    world.apply("a")
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-3")
def test_a_cancel_while_a_loser_drains_ends_the_instance_after_it():
    world = run(
        race([call("a")], [attempt([wait("w", signal="x")], [], [call("tidy")])]), noop("after")
    )
    world.apply("a")
    world.signal("cancel")
    assert world.state == "running"
    world.apply("tidy")
    assert world.state == "cancelled"
    assert "after" not in world.executed


@pytest.mark.req("SEQ-BLK-3")
def test_a_retry_goes_on_in_the_failed_branch_and_leaves_the_losers_cancelled():
    world = run(race([call("a"), call("b")], [call("c"), wait("w", signal="never")]))
    world.apply("c")
    world.apply("a")
    world.fail("b", retryable=False)
    assert world.state == "failed"
    world.command("retry")
    assert [order.block for order in world.orders] == ["b"]
    world.apply("b")
    assert world.state == "completed"
    assert [node for node, _ in world.planned()] == ["r/a", "r/c", "r/b", "r/b"]


@pytest.mark.req("SEQ-BLK-3")
def test_a_goto_decides_a_race_and_the_losers_goto_is_ignored():
    world = run(
        graph(
            {
                "here": [
                    race(
                        [call("a"), goto("left", id="j1")],
                        [scope(call("b"), goto("right", id="j2"))],
                    )
                ],
                "left": [noop("at_left")],
                "right": [noop("at_right")],
            }
        )
    )
    world.apply("a")
    world.apply("b")
    assert world.executed == ["g[0:here]/r/a", "g[0:here]/r/sc/b", "g[1:left]/at_left"]
