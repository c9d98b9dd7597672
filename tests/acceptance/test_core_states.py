"""Life cycles: the table of moves, its records, held pauses, stale inputs (CORE-STM)."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest

import detent
from detent import parallel, sequence, step, sub_sequence, wait
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    actions,
    finished,
    moves,
    refused,
    state,
    virtual,
)

TABLE = {
    "scheduled": {"running", "paused", "cancelled"},
    "running": {"scheduled", "waiting", "paused", "completed", "failed", "cancelled"},
    "waiting": {"running", "scheduled", "failed", "cancelled"},
    "paused": {"scheduled", "cancelled"},
    "failed": {"scheduled"},
    "completed": set(),
    "cancelled": set(),
}
SLEEPER = sequence("sleeper", step("s", "sleep", params={"duration_ms": HOUR_MS}))
WAITER = sequence("waiter", wait("w", signal="go"), step("after", "noop"))
DELAYED = sequence("delayed", step("s", "noop", delay="1h"))
FAILING = sequence("failing", step("s", "fail"))
DONE = sequence("done", step("s", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


def in_state(engine, wanted):
    """An instance that shows this state."""
    if wanted == "scheduled":
        return engine.start(DELAYED)
    if wanted == "running":
        return engine.start(SLEEPER)
    if wanted == "waiting":
        return engine.start(WAITER)
    if wanted == "paused":
        instance = engine.start(SLEEPER)
        engine.pause(instance)
    elif wanted == "cancelled":
        instance = engine.start(WAITER)
        engine.cancel(instance)
    else:
        instance = engine.start(FAILING if wanted == "failed" else DONE)
    return instance


LEGAL = {
    ("pause", "scheduled"): "paused",
    ("pause", "running"): "paused",
    ("pause", "waiting"): "waiting",  # held: CORE-STM-7
    ("resume", "paused"): "running",
    ("cancel", "scheduled"): "cancelled",
    ("cancel", "running"): "cancelled",
    ("cancel", "waiting"): "cancelled",
    ("cancel", "paused"): "cancelled",
    ("retry", "failed"): "failed",  # it fails again
}
VERBS = ("pause", "resume", "cancel", "retry")


@pytest.mark.req("CORE-STM-1", "SEQ-2")
@pytest.mark.parametrize("source", TABLE)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_moves_an_instance_as_the_table_says_or_is_refused_with_nothing_changed(
    engine, path, verb, source
):
    instance = in_state(engine, source)
    assert state(engine, instance) == source
    before, shown = moves(engine, instance), engine.inspect.show(instance)
    if (verb, source) in LEGAL:
        getattr(engine, verb)(instance)
        assert state(engine, instance) == LEGAL[verb, source]
        return
    with refused("instance.transition") as refusal:
        getattr(engine, verb)(instance)
    assert source in refusal.value.message
    now = engine.inspect.show(instance)
    assert now.summary.state == source
    assert moves(engine, instance) == before
    for unchanged in ("data", "outputs", "error", "pause_requested", "ended_ms"):
        assert getattr(now, unchanged) == getattr(shown, unchanged)
    assert actions(engine, instance)[-1] == "command.refused"


@pytest.mark.req("CORE-STM-1", "CORE-STM-6")
def test_every_move_of_a_mixed_population_is_one_of_the_table_and_each_follows_the_last(engine):
    @detent.handler
    def shaky(ctx: detent.HandlerContext):
        if ctx.attempt < 3:
            raise detent.Failed("not yet")
        return {}

    engine.register(shaky)
    retry = detent.retry(3, initial_backoff="10s")
    definitions = [
        SLEEPER,
        WAITER,
        DELAYED,
        FAILING,
        DONE,
        sequence("retried", step("s", shaky, retry=retry)),
        sequence("both", parallel("p", wait("w", "1h"), step("s", "sleep"))),
        sequence("parent", sub_sequence("c", "done")),
    ]
    made = [engine.start(definition) for definition in definitions for _ in range(3)]
    for instance in made[::3]:
        if state(engine, instance) in ("scheduled", "running", "waiting"):
            engine.pause(instance)
    engine.advance(DAY_MS)
    for instance in made:
        if state(engine, instance) == "paused":
            engine.resume(instance)
        if state(engine, instance) == "waiting":
            engine.cancel(instance)
    engine.run_until_idle()
    for instance in made:
        seen = engine.inspect.timeline(instance).transitions
        assert seen[0].source == "scheduled"
        assert seen[-1].target == state(engine, instance)
        for move in seen:
            assert move.target in TABLE[move.source], move
            assert move.trigger
        for earlier, later in pairwise(seen):
            assert earlier.target == later.source
            assert earlier.tick <= later.tick


@pytest.mark.req("CORE-STM-1")
def test_with_several_branches_running_is_shown_before_scheduled_before_waiting(engine):
    sleep = step("a", "sleep", params={"duration_ms": HOUR_MS})
    delay = step("b", "noop", delay="2h")
    timer = wait("c", "3h")
    instance = engine.start(sequence("s", parallel("p", sleep, delay, timer)))
    seen = [state(engine, instance)]
    for _ in range(3):
        engine.advance(HOUR_MS)
        seen.append(state(engine, instance))
    assert seen == ["running", "scheduled", "waiting", "completed"]


@pytest.mark.req("CORE-STM-1", "SEQ-2")
def test_a_scheduled_instance_shows_when_it_will_go_on(engine):
    delayed = engine.start(DELAYED)
    start = engine.now().timestamp() * 1000
    later = engine.start(DONE, at=dt.timedelta(days=2))
    assert engine.inspect.show(delayed).summary.due_ms == start + HOUR_MS
    assert engine.inspect.show(later).summary.due_ms == start + 2 * DAY_MS
    assert state(engine, later) == "scheduled"
    engine.run_until_idle()
    assert engine.inspect.show(later).started_ms == start + 2 * DAY_MS


@pytest.mark.req("SEQ-2")
@pytest.mark.parametrize("later", ["step", "wait"])
def test_the_shown_time_follows_when_it_moves_later(engine, later):
    """The signal ends a wait of an hour; what comes after it takes a day."""
    after = step("late", "noop", delay="1d") if later == "step" else wait("late", "1d")
    instance = engine.start(sequence("s", wait("w", "1h", signal="go"), after))
    start = engine.now().timestamp() * 1000
    engine.signal(instance, "go")
    assert engine.explain(instance).earliest_ms == start + DAY_MS
    assert engine.inspect.show(instance).summary.due_ms == start + DAY_MS


@pytest.mark.req("CORE-STM-2")
def test_seed_one_s_table_holds_row_by_row(engine):
    """Start, wait, wait elapsed, manual pause, manual resume, completion, failure after retries."""
    instance = engine.start(
        sequence(
            "s",
            wait("w", "1h"),
            step("a", "sleep", params={"duration_ms": 5_000}),
            step("b", "noop"),
        )
    )
    engine.advance(HOUR_MS)
    engine.pause(instance)
    engine.resume(instance)
    engine.run_until_idle()
    assert moves(engine, instance) == [
        ("scheduled", "running"),
        ("running", "waiting"),
        ("waiting", "running"),
        ("running", "paused"),
        ("paused", "scheduled"),
        ("scheduled", "running"),
        ("running", "completed"),
    ]
    retry = detent.retry(2, initial_backoff="1s")
    failing = finished(
        engine,
        sequence("f", step("s", "fail", params={"retryable": True}, retry=retry)),
    )
    assert moves(engine, failing.summary.id) == [
        ("scheduled", "running"),
        ("running", "scheduled"),
        ("scheduled", "running"),
        ("running", "failed"),
    ]


@pytest.mark.req("CORE-STM-2")
def test_a_failed_step_stops_its_instance_and_nothing_after_it_runs(engine):
    ran = []

    @detent.handler
    def after():
        ran.append(1)

    engine.register(after)
    shown = finished(engine, sequence("s", step("a", "fail"), step("b", after)))
    assert shown.summary.state == "failed"
    assert shown.error["message"] == "forced failure"
    assert shown.error["block"] == "a"
    assert ran == []


@pytest.mark.req("CORE-STM-3")
def test_what_a_step_is_given_is_a_copy_it_cannot_change(engine):
    @detent.handler
    def greedy(ctx: detent.HandlerContext, items: list[int]):
        ctx.data["stolen"] = True
        ctx.data["list"].append(99)
        ctx.config["rate"] = 0
        items.append(7)
        return {"mine": 1}

    engine.register(greedy)
    data, config = {"list": [1]}, {"rate": 5}
    definition = sequence(
        "s", parallel("p", *[step(f"g{n}", greedy, params={"items": [n]}) for n in range(3)])
    )
    shown = finished(engine, definition, data, config=config)
    assert shown.data == {"list": [1], "mine": 1}
    assert shown.config == {"rate": 5}
    assert (data, config) == ({"list": [1]}, {"rate": 5})


@pytest.mark.req("CORE-STM-4")
def test_every_turn_raises_the_version_by_one_and_is_one_row_of_the_journal(engine):
    instance = engine.start(WAITER)
    versions = [engine.inspect.show(instance).snapshot_version]
    for n in range(5):
        engine.signal(instance, "update_context", {"n": n})
        versions.append(engine.inspect.show(instance).snapshot_version)
    assert versions == [1, 2, 3, 4, 5, 6]
    received = engine.inspect.audit(instance, action="event.received")
    assert [entry.seq for entry in received] == [2, 3, 4, 5, 6]


@pytest.mark.req("CORE-STM-5")
def test_a_call_that_answers_after_its_node_was_cancelled_settles_and_resumes_nothing(engine):
    @detent.handler
    def work():
        return {"late": True}

    engine.register(work)
    race = detent.race("r", step("slow", work), step("quick", "noop"))
    shown = finished(engine, sequence("s", race, wait("w", "1h")))
    assert shown.summary.state == "completed"
    seen = actions(engine, shown.summary.id)
    assert "effect.unwanted" in seen
    (effect,) = engine.inspect.effects(shown.summary.id)
    assert effect.state in ("applied", "failed")
    assert shown.data is None
    assert "slow" not in shown.outputs


@pytest.mark.req("CORE-STM-6")
def test_a_move_by_an_operator_is_written_like_any_other(engine):
    instance = engine.start(SLEEPER)
    engine.advance(1_000)
    engine.pause(instance)
    engine.advance(1_000)
    engine.cancel(instance)
    told = engine.inspect.timeline(instance).transitions
    assert [(move.source, move.target, move.trigger, move.tick) for move in told] == [
        ("scheduled", "running", "start", 0),
        ("running", "paused", "operator", 10),
        ("paused", "cancelled", "cancelled", 20),
    ]


@pytest.mark.req("CORE-STM-7", "SEQ-SIG-1")
def test_a_pause_in_a_wait_is_held_and_the_wait_keeps_its_target(engine):
    instance = engine.start(sequence("s", wait("w", "1h"), step("after", "noop")))
    due = engine.explain(instance).earliest
    engine.pause(instance)
    assert state(engine, instance) == "waiting"
    assert engine.inspect.show(instance).pause_requested
    assert engine.explain(instance).earliest == due
    engine.advance(HOUR_MS)
    assert state(engine, instance) == "paused"
    shown = engine.inspect.show(instance)
    assert shown.outputs == {"w": {"timed_out": True}}
    engine.advance(DAY_MS)
    assert state(engine, instance) == "paused"
    engine.resume(instance)
    assert state(engine, instance) == "completed"


@pytest.mark.req("CORE-STM-7")
def test_a_resume_before_the_wait_ends_withdraws_the_held_pause(engine):
    instance = engine.start(sequence("s", wait("w", "1h"), step("after", "noop")))
    engine.pause(instance)
    engine.pause(instance)
    engine.resume(instance)
    assert not engine.inspect.show(instance).pause_requested
    with refused("instance.transition"):
        engine.resume(instance)
    engine.advance(HOUR_MS)
    assert state(engine, instance) == "completed"


@pytest.mark.req("CORE-STM-7")
def test_a_cancel_ends_a_wait_at_once_also_one_with_a_held_pause(engine):
    for held in (False, True):
        instance = engine.start(sequence("s", wait("w", "30d"), step("after", "noop")))
        if held:
            engine.pause(instance)
        engine.cancel(instance)
        assert state(engine, instance) == "cancelled"
        assert not engine.inspect.show(instance).pause_requested


@pytest.mark.req("CORE-STM-8", "CORE-EFF-3")
def test_an_indeterminate_effect_keeps_its_instance_waiting_for_a_decision(engine):
    @detent.handler(on_doubt="once")
    def pay():
        raise TimeoutError("no answer")

    engine.register(pay)
    shown = finished(engine, sequence("s", step("pay", pay)))
    assert shown.summary.state == "waiting"
    told = engine.explain(shown.summary.id)
    assert [told_wait.kind for told_wait in told.waits] == ["decision"]
    assert told.earliest is None
