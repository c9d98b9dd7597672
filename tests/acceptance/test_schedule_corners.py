"""Schedules in odd hours: retries, pauses, shared ids, stops after a stand-still."""

from __future__ import annotations

import pytest

from detent import handler, sequence, step, wait
from tests.acceptance.stage import HOUR_MS, actions, refused, virtual
from tests.acceptance.test_sequences_schedules import (
    HOUR,
    NIGHTLY,
    children,
    sleep_through,
    times,
)


@pytest.fixture
def engine():
    with virtual() as engine:
        engine.deploy(NIGHTLY)
        yield engine


@pytest.mark.req("SEQ-TIM-3")
def test_a_retried_instance_counts_for_overlaps_until_it_ends_again(engine):
    ended = {"failures": 1}

    @handler
    def flaky() -> dict:
        if ended["failures"]:
            ended["failures"] -= 1
            raise RuntimeError("first")
        return {}

    engine.register(flaky)
    engine.deploy(sequence("flaky", step("x", flaky), wait("w", signal="go")))
    cron = engine.crons.create("flaky", "0 * * * *", overlap="skip")
    engine.advance(HOUR)
    (child,) = children(engine, cron)
    assert (child.state, engine.crons.show(cron.id).running) == ("failed", ())
    engine.retry(child.id)
    engine.advance(HOUR)
    assert engine.crons.show(cron.id).running == (child.id,)
    assert [each.state for each in children(engine, cron)] == ["waiting"]
    engine.signal(child.id, "go")
    engine.advance(60_000)
    assert engine.crons.show(cron.id).running == ()
    assert engine.replay(cron.instance).identical
    assert engine.replay(child.id).identical


@pytest.mark.req("SEQ-TIM-3")
@pytest.mark.parametrize("overlap", ["skip", "cancel_previous"])
def test_a_schedule_and_what_another_one_starts_never_share_an_id(engine, overlap):
    """The id of the second one is the first one's with the instant of its first fire."""
    first = engine.crons.create("nightly", "0 * * * *", id="a", overlap=overlap)
    second = engine.crons.create("nightly", "30 * * * *", id=f"a:{first.next_fire_ms}")
    engine.advance(3 * HOUR)
    assert len(children(engine, first)) == len(children(engine, second)) == 3
    assert [each.id for each in engine.crons.list()] == [first.id, second.id]
    third = engine.crons.create("nightly", "30 * * * *", id=f"a:{first.created_ms + 2 * HOUR_MS}")
    assert engine.crons.show(third.id).fires == 0


@pytest.mark.req("SEQ-TIM-3")
def test_a_pause_is_shown_and_a_change_meanwhile_loses_no_fire(engine):
    cron = engine.crons.create("nightly", "0 * * * *", missed="all")
    engine.pause(cron.instance)
    assert engine.crons.show(cron.id).paused
    engine.advance(3 * HOUR)
    assert engine.crons.update(cron.id, metadata={"team": "ops"}).paused
    engine.resume(cron.instance)
    engine.advance(1_000)
    seen = engine.crons.show(cron.id)
    assert (seen.paused, seen.fires, seen.skipped_fires) == (False, 3, 0)


@pytest.mark.req("SEQ-TIM-3")
def test_a_schedule_whose_times_are_over_takes_changes_that_need_none(engine):
    cron = engine.crons.create("nightly", "0 0 3 1 1 ? 2026")
    engine.advance(4 * HOUR)
    seen = engine.crons.update(cron.id, metadata={"team": "ops"})
    assert (seen.metadata, seen.next_fire_ms) == ({"team": "ops"}, None)
    for changes in ({"expr": "0 0 3 1 1 ? 2026"}, {"enabled": True}, {"timezone": "UTC"}):
        with refused("calendar.cron"):
            engine.crons.update(cron.id, **changes)


@pytest.mark.req("SEQ-TIM-3")
@pytest.mark.parametrize("verb", ["disable", "delete"])
def test_a_schedule_that_is_stopped_after_a_stand_still_starts_nothing(tmp_path, verb):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        cron = engine.crons.create(NIGHTLY, "0 * * * *", missed="all", id="a")
    sleep_through(path, 5 * HOUR_MS + 1_000)
    with virtual(path) as engine:
        getattr(engine.crons, verb)("a")
        engine.advance(HOUR)
        assert times(engine, cron) == []
        assert actions(engine, cron.instance, "cron.skipped") == ["cron.skipped"]
        assert engine.inspect.show(cron.instance).kv["skipped_fires"] == 5
        assert engine.replay(cron.instance).identical
        assert engine.inspect.verify().valid
