"""The claims of external workers: heartbeats, leases, time-outs, and tasks called off."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step
from detent.model import limits
from tests.acceptance.stage import actions, refused, state, virtual
from tests.acceptance.workshop import (
    STALE_MS,
    TICK_MS,
    completed,
    events,
    polled,
    proved,
    started,
)

pytestmark = pytest.mark.req("SEQ-HND-3")


@pytest.fixture
def engine():
    with virtual(workers=True) as engine:
        yield engine


# heartbeats, leases and time-outs ----------------------------------------------------------------


def test_a_silent_worker_loses_its_task_to_another_with_the_checkpoint(engine):
    instance = started(engine)
    task = polled(engine)
    assert engine.work.heartbeat(task.id, "w1", 1, checkpoint=[1], seq=0) == 1
    engine.advance(STALE_MS - TICK_MS)
    assert engine.work.show(task.id).state == "claimed"
    engine.advance(TICK_MS)
    back = engine.work.show(task.id)
    assert (back.state, back.worker, back.claim_epoch) == ("pending", None, 1)
    other = polled(engine, "w2")
    assert (other.id, other.claim_epoch) == (task.id, 2)
    assert (other.checkpoint, other.checkpoint_seq) == ([1], 1)
    with refused("work.lost"):
        engine.work.complete(task.id, "w1", 1, {"from": "w1"})
    completed(engine, other, {"from": "w2"}, "w2")
    assert events(engine, task) == [
        "claimed",
        "reclaimed",
        "claimed",
        "stale_mutation_rejected",
        "completed",
    ]
    assert engine.inspect.show(instance).outputs == {"a": {"from": "w2"}}
    proved(engine, instance)


def test_heartbeats_keep_a_claim_for_as_long_as_they_come(engine):
    started(engine)
    task = polled(engine)
    for _ in range(10):
        engine.advance(STALE_MS - TICK_MS)
        assert engine.work.heartbeat(task.id, "w1", 1) == 0
    assert events(engine, task) == ["claimed"]
    completed(engine, task)


def test_a_checkpoint_needs_the_number_of_the_one_it_replaces(engine):
    started(engine)
    task = polled(engine)
    with refused("request.invalid"):
        engine.work.heartbeat(task.id, "w1", 1, checkpoint={})
    assert engine.work.heartbeat(task.id, "w1", 1, checkpoint={"at": 1}, seq=0) == 1
    with refused("work.checkpoint"):
        engine.work.heartbeat(task.id, "w1", 1, checkpoint={"at": 2}, seq=0)
    assert engine.work.heartbeat(task.id, "w1", 1) == 1
    with refused("payload.too_large"):
        engine.work.heartbeat(task.id, "w1", 1, checkpoint="x" * limits.CHECKPOINT_BYTES, seq=1)
    at_most = "x" * (limits.CHECKPOINT_BYTES - 2)
    assert engine.work.heartbeat(task.id, "w1", 1, checkpoint=at_most, seq=1) == 2
    assert engine.work.show(task.id).checkpoint == at_most


@pytest.mark.req("CORE-EFF-4")
def test_a_step_s_timeout_counts_from_the_claim_and_heartbeats_do_not_stretch_it(engine):
    policy = detent.retry(2, initial_backoff=0)
    definition = sequence("s", step("a", "charge", timeout=90_000, retry=policy))
    instance = started(engine, definition)
    engine.advance(10 * 90_000)  # nobody has claimed it: its time has not begun
    task = polled(engine)
    engine.advance(50_000)
    engine.work.heartbeat(task.id, "w1", 1)
    engine.advance(40_000)
    assert engine.work.show(task.id).state == "failed"
    assert events(engine, task) == ["claimed", "timed_out"]
    with refused("work.lost"):
        engine.work.complete(task.id, "w1", 1, {})
    again = polled(engine)
    assert (again.attempt, again.claim_epoch) == (1, 1)
    engine.advance(STALE_MS)
    again = polled(engine, "w2")
    engine.advance(90_000)
    assert state(engine, instance) == "waiting"  # silence, not the timeout, came first
    completed(engine, polled(engine, "w3"), worker="w3")
    assert state(engine, instance) == "completed"
    proved(engine, instance)


@pytest.mark.req("CORE-EFF-4")
def test_a_task_that_silences_every_worker_fails_unless_it_makes_progress(engine):
    instance = started(engine)
    for crash in range(limits.CRASHES_PER_EFFECT):
        task = polled(engine)
        if not crash:
            engine.work.heartbeat(task.id, "w1", 1, checkpoint=1, seq=0)
        engine.advance(STALE_MS)
    assert polled(engine).claim_epoch == limits.CRASHES_PER_EFFECT + 1
    engine.advance(STALE_MS)
    assert state(engine, instance) == "failed"
    assert engine.inspect.show(instance).error["code"] == "effect.crash_loop"


def test_a_deadline_of_the_step_ends_the_claim_with_it(engine):
    instance = engine.start(sequence("s", step("a", "charge", deadline=10_000)))
    task = polled(engine)
    engine.run_until_idle()
    assert state(engine, instance) == "failed"
    assert engine.work.show(task.id).state == "cancelled"


# cancelling --------------------------------------------------------------------------------------


def test_a_cancel_is_at_once_and_a_late_report_is_taken_and_ignored(engine):
    held, free = started(engine), started(engine)
    task = polled(engine)
    engine.cancel(held)
    engine.cancel(free)
    assert (state(engine, held), state(engine, free)) == ("cancelled", "cancelled")
    assert engine.work.stats().by_state == {"cancelled": 2}
    with refused("work.lost"):
        engine.work.heartbeat(task.id, "w1", 1)
    completed(engine, task, {"late": True})
    assert engine.inspect.show(held).outputs == {}
    assert actions(engine, held, "effect.applied") == []
    assert events(engine, task) == ["claimed", "cancelled"]
    assert list(engine.work.poll("charge", "w2")) == []
    proved(engine, held, free)


@pytest.mark.req("SEQ-BLK-3")
def test_the_losers_of_a_race_are_called_off(engine):
    definition = sequence("r", detent.race("r", [step("a", "charge")], [step("b", "mail")]))
    instance = started(engine, definition)
    winner, loser = polled(engine), polled(engine, handler="mail")
    completed(engine, winner, {"won": True})
    assert state(engine, instance) == "completed"
    assert engine.work.show(loser.id).state == "cancelled"
    engine.work.complete(loser.id, "w1", 1, {"late": True})
    engine.run_until_idle()
    assert engine.inspect.show(instance).data == {"n": 1, "won": True}
    proved(engine, instance)
