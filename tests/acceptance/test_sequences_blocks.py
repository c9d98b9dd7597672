"""Blocks that hold others: parallel, race, try, scopes, sagas, graphs (SEQ-BLK)."""

from __future__ import annotations

import time

import pytest

import detent
from detent import (
    goto,
    graph,
    parallel,
    race,
    saga,
    saga_step,
    scope,
    sequence,
    step,
    try_catch,
    wait,
)
from detent.testing import Calls
from tests.acceptance.stage import (
    HOUR_MS,
    actions,
    finished,
    nodes,
    outputs,
    state,
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


# parallel -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-2")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_two_sleeps_of_a_second_end_in_well_under_two(tmp_path, writer):
    sleeps = [step(f"s{n}", "sleep", params={"duration_ms": 1000}) for n in range(2)]
    with detent.Engine(tmp_path / "s.db", writer=writer, resolution_ms=50) as engine:
        began = time.monotonic()
        instance = engine.start(sequence("s", parallel("p", *sleeps)))
        assert engine.wait_for(instance) == "completed"
        took = time.monotonic() - began
    assert 0.95 <= took < 1.75


@pytest.mark.req("SEQ-BLK-2")
def test_calls_of_different_branches_are_under_way_at_the_same_time(tmp_path):
    import threading

    both = threading.Barrier(3)

    @detent.handler
    def meet():
        both.wait(10)  # breaks unless all three are called together

    branches = [step(f"m{n}", meet) for n in range(3)]
    with detent.Engine(tmp_path / "s.db", handlers=[meet]) as engine:
        assert engine.wait_for(engine.start(sequence("s", parallel("p", *branches)))) == "completed"


@pytest.mark.req("SEQ-BLK-2")
def test_a_failing_branch_lets_the_others_finish_and_then_the_block_fails(engine):
    definition = sequence(
        "s",
        parallel(
            "p", [step("f", "fail"), say("never")], [wait("w", "1h"), say("later")], [say("quick")]
        ),
        say("after"),
    )
    instance = engine.start(definition)
    assert state(engine, instance) == "waiting"
    assert engine.wait_for(instance) == "failed"
    shown = engine.inspect.show(instance)
    assert {"later", "quick"} <= set(shown.outputs)
    assert not {"never", "after"} & set(shown.outputs)
    assert shown.error["block"] == "f"


@pytest.mark.req("SEQ-BLK-2")
@pytest.mark.parametrize("branches", [[[]], [[], []], [[], say("a")]])
def test_empty_branches_complete(engine, branches):
    shown = finished(engine, sequence("s", parallel("p", *branches), say("after")))
    assert shown.summary.state == "completed"


# race ---------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-3")
def test_the_first_to_resolve_wins_and_the_losers_are_cancelled_with_their_work(engine, calls):
    act = calls.handler("act", {})
    engine.register(act)
    definition = sequence(
        "s",
        race("r", [wait("slow", "1d"), step("a", act)], [wait("quick", "1h"), say("won")]),
        say("after"),
    )
    shown = finished(engine, definition)
    assert shown.summary.state == "completed"
    assert (engine.now().timestamp() * 1000 - shown.started_ms) == HOUR_MS
    assert calls.made == ()
    tree = nodes(engine, shown.summary.id)
    assert (tree["r/slow"], tree["r/a"], tree["r/won"]) == ("cancelled", "skipped", "completed")


@pytest.mark.req("SEQ-BLK-3")
@pytest.mark.parametrize("semantics", ["first_to_resolve", "first_to_succeed"])
def test_a_failure_decides_a_race_only_where_the_first_to_resolve_does(engine, semantics):
    definition = sequence(
        "s", race("r", [step("f", "fail")], [wait("w", "1h"), say("won")], semantics=semantics)
    )
    shown = finished(engine, definition)
    succeeded = semantics == "first_to_succeed"
    assert shown.summary.state == ("completed" if succeeded else "failed")
    assert ("won" in shown.outputs) == succeeded


@pytest.mark.req("SEQ-BLK-3")
def test_a_race_for_success_fails_when_all_have_failed(engine):
    failing = [[wait(f"w{n}", f"{n}h"), step(f"f{n}", "fail")] for n in (1, 2)]
    shown = finished(engine, sequence("s", race("r", *failing, semantics="first_to_succeed")))
    assert shown.summary.state == "failed"


# try, scope, saga ---------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize(
    ("do", "catch", "last", "end", "ran"),
    [
        ([say("a")], [say("c")], [say("f")], "completed", ["a", "f"]),
        ([step("x", "fail"), say("a")], [say("c")], [say("f")], "completed", ["c", "f"]),
        ([step("x", "fail")], [], None, "completed", []),
        ([step("x", "fail")], [step("y", "fail")], [say("f")], "failed", ["f"]),
        ([say("a")], [say("c")], [step("z", "fail")], "failed", ["a"]),
        ([step("x", "fail")], [say("c")], [step("z", "fail")], "failed", ["c"]),
    ],
)
def test_try_catch_and_finally(engine, do, catch, last, end, ran):
    definition = sequence("s", try_catch("t", do=do, catch=catch, finally_=last))
    shown = finished(engine, definition)
    assert shown.summary.state == end
    assert list(shown.outputs) == ran


@pytest.mark.req("SEQ-BLK-5")
def test_the_catch_is_told_what_failed(engine):
    definition = sequence(
        "s",
        try_catch(
            "t",
            do=step("x", "fail"),
            catch=step("c", "transform", params={"e": "{{ data._error }}"}),
        ),
    )
    error = finished(engine, definition).outputs["c"]["e"]
    assert error["failed_blocks"] == ["x"]
    assert (error["source"], error["block_id"]) == ("try_catch", "t")


@pytest.mark.req("SEQ-BLK-5")
def test_finally_runs_on_cancel_too_and_then_nothing_else(engine, calls):
    clean = calls.handler("clean", {})
    engine.register(clean)
    definition = sequence(
        "s",
        try_catch(
            "t",
            do=wait("w", "1d"),
            catch=say("caught"),
            finally_=[step("f", clean), wait("g", "1h")],
        ),
        say("after"),
    )
    instance = engine.start(definition)
    engine.cancel(instance)
    engine.advance(0)
    assert calls.count("clean") == 1
    assert state(engine, instance) != "cancelled"
    engine.run_until_idle()
    shown = engine.inspect.show(instance)
    assert shown.summary.state == "cancelled"
    assert not {"after", "caught"} & set(shown.outputs)


@pytest.mark.req("SEQ-BLK-5")
def test_a_scope_finishes_before_a_cancel_takes_effect(engine, calls):
    act = calls.handler("act", {})
    engine.register(act)
    definition = sequence(
        "s", scope("c", wait("w", "1h"), step("a", act), wait("x", "1h")), say("after")
    )
    instance = engine.start(definition)
    engine.cancel(instance)
    assert engine.inspect.show(instance).cancel_requested
    engine.run_until_idle()
    shown = engine.inspect.show(instance)
    assert shown.summary.state == "cancelled"
    assert calls.count("act") == 1
    assert "after" not in shown.outputs
    assert shown.ended_ms - shown.started_ms == 2 * HOUR_MS


def booking(*fails):
    return sequence(
        "s",
        saga(
            "g",
            *[
                saga_step(
                    f"do{n}",
                    step(f"a{n}", "fail") if n in fails else say(f"a{n}"),
                    step(f"u{n}", "fail") if -n in fails else say(f"u{n}"),
                )
                for n in (1, 2, 3)
            ],
        ),
        say("after"),
    )


@pytest.mark.req("SEQ-BLK-5")
@pytest.mark.parametrize(
    ("fails", "ran"),
    [
        ((), ["a1", "a2", "a3", "after"]),
        ((1,), []),
        ((3,), ["a1", "a2", "u2", "u1"]),
        ((3, -2), ["a1", "a2", "u1"]),
    ],
)
def test_a_saga_undoes_what_was_done_in_reverse_and_then_fails(engine, fails, ran):
    shown = finished(engine, booking(*fails))
    assert shown.summary.state == ("failed" if fails else "completed")
    assert said(engine, shown) == ran
    if fails:
        assert shown.data["_error"]["source"] == "saga"
        assert shown.data["_error"]["block_id"] == "g"


@pytest.mark.req("SEQ-BLK-5", "CORE-EFF-3")
def test_a_saga_undoes_only_when_every_effect_of_it_is_settled(engine, calls):
    act = calls.handler("act", TimeoutError("lost"), on_doubt="once")
    undo = calls.handler("undo", {})
    engine.register([act, undo])
    both = parallel("p", [step("f", "fail")], [step("a", act)])
    definition = sequence(
        "s", saga("g", saga_step("one", say("x"), step("u", undo)), saga_step("two", both))
    )
    instance = engine.start(definition)
    engine.run_until_idle()
    assert state(engine, instance) == "waiting"
    assert calls.count("undo") == 0
    (doubt,) = engine.inspect.doubts()
    engine.resolve(instance, doubt.effect, "happened")
    assert engine.wait_for(instance) == "failed"
    assert calls.count("undo") == 1


@pytest.mark.req("SEQ-BLK-5")
def test_a_graph_follows_its_transitions_and_gotos(engine):
    definition = sequence(
        "s",
        graph(
            "g",
            start="ask",
            nodes={
                "ask": [
                    say("asked"),
                    step("n", "set_state", params={"key": "n", "value": "{{ data.n }}"}),
                ],
                "big": [say("big"), goto("jump", "end")],
                "small": [say("small")],
                "end": [say("end")],
            },
            transitions=[("ask", "big", "data.n > 10"), ("ask", "small"), ("small", "end")],
        ),
        say("after"),
    )
    for n, way in ((50, "big"), (5, "small")):
        shown = finished(engine, definition, {"n": n})
        assert [b for b in said(engine, shown) if b != "n"] == ["asked", way, "end", "after"]


@pytest.mark.req("SEQ-BLK-5")
def test_clean_up_lists_run_once_each_and_their_errors_are_swallowed(engine):
    clean = [step("bad", "fail"), say("cleaned")]
    failing = sequence("failing", step("x", "fail"), on_failure=clean)
    cancelled = sequence("cancelled", wait("w", "1d"), on_cancel=clean)
    shown = finished(engine, failing)
    assert (shown.summary.state, list(shown.outputs)) == ("failed", ["cleaned"])
    instance = engine.start(cancelled)
    engine.cancel(instance)
    engine.run_until_idle()
    shown = engine.inspect.show(instance)
    assert (shown.summary.state, list(shown.outputs)) == ("cancelled", ["cleaned"])
    assert actions(engine, instance).count("run.cancelled") == 1


@pytest.mark.req("CORE-STM-2", "CORE-EFF-2")
def test_a_retry_goes_on_from_the_failed_nodes_and_repeats_nothing_completed(engine, calls):
    good = calls.handler("good", {})
    shaky = calls.handler("shaky", detent.Failed("no"), {})
    engine.register([good, shaky])
    definition = sequence(
        "s",
        step("a", good),
        parallel("p", [step("b", good)], [step("c", good), step("x", shaky), step("d", good)]),
        step("e", good),
    )
    instance = engine.start(definition)
    assert engine.wait_for(instance) == "failed"
    engine.retry(instance)
    assert engine.wait_for(instance) == "completed"
    assert sorted(call.node for call in calls.of("good")) == ["a", "e", "p/b", "p/c", "p/d"]
    assert calls.count("shaky") == 2
