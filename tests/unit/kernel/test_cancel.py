"""cancel: in every state and phase, with calls withdrawn or settled, and its clean-up list."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import (
    attempt,
    call,
    fails,
    human,
    loop,
    noop,
    parallel,
    scope,
    sleep,
    wait,
)
from tests.unit.kernel.driver import World, run

MARKED = ["keyed", "queryable", "once"]
LATER = {"delay": {"duration": 5000}}
RETRY = {"retry": {"max_attempts": 3, "initial_backoff": 5000, "max_backoff": 5000}}


def _standing(phase):
    """An instance that stands in a phase of one step."""
    match phase:
        case "delay":
            return run(call("a", **LATER), noop("never"))
        case "sleep":
            return run(sleep("a", 5000), noop("never"))
        case "person":
            return run(human("a"), noop("never"))
        case "timer":
            return run(wait("a", duration=5000), noop("never"))
        case "retry":
            world = run(call("a", **RETRY), noop("never"))
            world.fail("a")
            return world
        case "poll":
            return run(loop(noop(), poll_interval=5), noop("never"))
        case "start":
            return World(noop("never")).start(at=500)
        case "defer":
            world = run(call("a"), policies=[{"handler": "p"}])
            world.apply("p", {"allowed": False, "action": "defer", "for_ms": 5000})
            return world
        case "gate":
            world = run(call("a"), policies=[{"handler": "p"}])
            world.apply("p", {"allowed": False, "action": "pause"})
            return world
    raise AssertionError(phase)


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-7")
@pytest.mark.parametrize("door", ["signal", "command"])
@pytest.mark.parametrize(
    "phase",
    ["delay", "sleep", "person", "timer", "retry", "poll", "start", "defer", "gate"],
)
def test_a_cancel_ends_an_instance_at_once_wherever_it_stands(phase, door):
    world = _standing(phase)
    if door == "signal":
        world.signal("cancel")
    else:
        assert world.command("cancel").result == {"state": "cancelled"}
    assert world.state == "cancelled"
    assert "never" not in world.executed
    assert world.decision.due is None


@pytest.mark.req("SEQ-SIG-1")
def test_a_paused_instance_can_be_cancelled():
    world = run(sleep("s", 5000), noop("never"))
    world.signal("pause")
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.states()[-2:] == ["paused", "cancelled"]


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-1")
def test_a_cancel_of_a_paused_instance_lets_its_protected_parts_go_on():
    world = run(scope(sleep("s", 500), call("a")))
    world.signal("pause")
    world.after(500)
    world.signal("cancel")
    assert world.state == "running"
    assert world.states()[-3:] == ["paused", "scheduled", "running"]
    world.apply("a")
    assert world.state == "cancelled"
    assert world.executed == ["sc/s", "sc/a"]


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-1")
def test_a_cancel_of_a_running_instance_shows_no_state_it_is_not_in():
    world = run(scope(call("a")))
    world.signal("cancel")
    assert world.states() == ["scheduled", "running"]


@pytest.mark.req("CORE-EFF-1", "CORE-EFF-3")
@pytest.mark.parametrize("doubt", MARKED)
def test_a_call_that_was_not_started_is_withdrawn_and_the_cancel_is_complete(doubt):
    world = run(call("a"), handlers={"a": {"doubt": doubt}})
    key = world.order("a").key
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.decision.withdrawn == [key]
    assert world.decision.recalled == [key]


@pytest.mark.req("CORE-EFF-3")
@pytest.mark.parametrize("doubt", [*MARKED, "repeatable"])
def test_a_call_in_flight_is_recalled_and_the_cancel_waits_for_its_outcome(doubt):
    world = run(call("a"), handlers={"a": {"doubt": doubt}})
    if doubt != "repeatable":
        world.mark("a")
    key = world.order("a").key
    decision = world.signal("cancel")
    assert not decision.withdrawn
    assert decision.recalled == [key]
    assert world.state == "running"
    world.apply("a", {"done": True})
    assert world.state == "cancelled"
    assert world.data is None, "an unwanted outcome resumes nothing"
    assert world.nodes("effect.applied") == ["a"]


@pytest.mark.req("CORE-EFF-3", "CORE-EFF-4")
def test_cancelling_a_call_in_flight_is_doubt_that_its_class_settles():
    for doubt, calls in (("repeatable", 1), ("keyed", 2), ("queryable", 2), ("once", 1)):
        world = run(call("a"), handlers={"a": {"doubt": doubt}})
        if doubt != "repeatable":
            world.mark("a")
        world.signal("cancel")
        world.doubt("a", "the call was cancelled")
        assert len(world.history) == calls
        if doubt in ("keyed", "queryable"):
            assert world.state == "running"
            world.fail("a") if doubt == "keyed" else world.reconciled("a", "failed")
        assert world.state == "cancelled"


@pytest.mark.req("CORE-EFF-3")
def test_an_unwanted_repeatable_call_is_not_made_again_after_a_crash():
    world = run(call("a"))
    world.signal("cancel")
    world.doubt("a", "the process died", crashed=True)
    assert world.state == "cancelled"
    assert len(world.history) == 1


@pytest.mark.req("CORE-EFF-3")
def test_a_cancel_is_complete_when_the_doubt_is_with_a_person_who_may_still_decide():
    world = run(call("a"), handlers={"a": {"doubt": "once"}})
    world.mark("a")
    world.doubt("a")
    assert world.state == "waiting"
    world.signal("cancel")
    assert world.state == "cancelled"
    (effect,) = world.snap().effects
    assert (effect.state, effect.unwanted) == ("indeterminate", True)
    assert world.resolve(effect.key, "happened", result={"x": 1}).ok
    assert (world.snap().effects, world.data) == ([], None)


@pytest.mark.req("SEQ-SIG-1")
def test_a_second_cancel_changes_nothing_and_a_command_says_so():
    world = run(scope(call("a")))
    assert world.command("cancel").ok
    assert world.command("cancel").code == "instance.transition"
    world.signal("cancel", id="s1")
    assert world.decision.verdicts[0].ok
    world.apply("a")
    assert world.state == "cancelled"


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_an_ended_instance_cannot_be_cancelled(end):
    world = run(wait(signal="x"), *([fails("f")] if end == "failed" else []))
    world.signal("cancel" if end == "cancelled" else "custom:x")
    before = world.snap().root
    assert world.state == end
    assert world.command("cancel").code == "instance.transition"
    assert world.state == end
    assert world.snap().root == before


@pytest.mark.req("SEQ-SIG-1")
def test_the_cancel_list_runs_once_with_errors_swallowed_and_outputs_kept():
    clean = [fails("bad"), call("tell"), noop("last")]
    world = run(wait(signal="x"), on_cancel=clean, on_failure=[noop("not_this")])
    world.signal("cancel")
    assert world.state == "running"
    assert world.order().node == "on_cancel/tell"
    world.fail("tell", retryable=False)
    assert world.state == "cancelled"
    assert world.executed == ["on_cancel/last"]
    assert world.outputs["last"] == {}


@pytest.mark.req("SEQ-BLK-5")
def test_the_failure_list_runs_once_before_the_instance_fails_with_its_own_error():
    clean = [fails("worse"), call("tell"), sleep("rest", 500)]
    world = run(fails("bad"), on_failure=clean, on_cancel=[noop("not_this")])
    assert world.state == "running"
    world.apply("tell", {"told": True})
    assert world.state == "running"
    world.after(500)
    assert world.state == "failed"
    assert world.error["block"] == "bad"
    assert world.data == {"told": True}


@pytest.mark.req("SEQ-BLK-5")
def test_a_clean_up_block_may_have_the_name_of_a_main_one():
    world = run(call("a"), on_failure=[call("a", "other")])
    world.fail("a", retryable=False)
    assert world.order().node == "on_failure/a"
    assert world.history[0].key != world.history[1].key
    world.apply("other")
    assert world.state == "failed"


@pytest.mark.req("SEQ-BLK-5")
def test_a_retry_after_the_clean_up_goes_on_in_the_main_list_and_cleans_up_anew_if_it_fails():
    world = run(call("a"), on_failure=[call("tell")])
    for generation in range(2):
        world.fail("a", retryable=False)
        world.apply("tell")
        assert (world.state, world.snap().generation) == ("failed", generation)
        world.command("retry")
    world.apply("a")
    assert world.state == "completed"
    assert len({order.key for order in world.history}) == len(world.history) == 5


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-7")
def test_a_cancel_ends_the_clean_up_of_a_failure_and_runs_that_of_a_cancel():
    world = run(
        fails("bad"), on_failure=[wait("w", signal="x"), noop("never")], on_cancel=[noop("c")]
    )
    assert world.state == "waiting"
    assert world.command("cancel").ok
    assert world.state == "cancelled"
    assert world.executed == ["on_cancel/c"]


@pytest.mark.req("SEQ-SIG-1")
def test_a_cancel_in_a_failures_clean_up_lets_its_protected_parts_drain():
    world = run(fails("bad"), on_failure=[scope(call("a")), noop("never")])
    world.signal("cancel")
    assert world.state == "running"
    world.apply("a")
    assert world.state == "cancelled"
    assert world.executed == ["on_failure/sc/a"]


@pytest.mark.req("CORE-STM-1", "SEQ-SIG-1")
@pytest.mark.parametrize("list_", ["on_failure", "on_cancel"])
def test_a_pause_during_clean_up_holds_it_until_resumed(list_):
    world = run(wait(signal="x"), fails("bad"), **{list_: [call("a")]})
    world.signal("custom:x" if list_ == "on_failure" else "cancel")
    world.signal("pause")
    assert world.state == "paused"
    world.apply("a")
    assert world.state == "paused"
    world.signal("resume")
    assert world.state == ("failed" if list_ == "on_failure" else "cancelled")


@pytest.mark.req("SEQ-SIG-1")
def test_what_follows_a_drained_part_never_starts_on_any_level():
    world = run(
        loop(
            parallel(
                [attempt([scope(call("kept")), noop("no1")], [], [noop("tidy")]), noop("no2")],
                [sleep("gone", 900), noop("no3")],
            ),
            noop("no4"),
            max_iterations=5,
        ),
        noop("no5"),
    )
    world.signal("cancel")
    world.apply("kept")
    assert world.state == "cancelled"
    assert world.executed == ["l[0]/p/t/sc/kept", "l[0]/p/t/tidy"]


@pytest.mark.req("CORE-POL-1")
def test_a_cancel_does_not_release_what_a_policy_paused_within_a_scope():
    world = run(
        scope(call("a"), call("b")),
        policies=[{"kind": "effect_budget", "params": {"max_effects": 1}}],
    )
    world.apply("a")
    assert world.state == "paused"
    world.signal("cancel")
    assert world.state == "paused", "the scope wants to go on and its policy still says no"
    assert [order.block for order in world.history] == ["a"]
    world.signal("resume")
    world.apply("b")
    assert world.state == "cancelled"
