"""Schedules through the engine's own door: fires, overlaps, missed times, crashes, refusals."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest

from detent import sequence, step, wait
from detent.model.ids import derived_id
from detent.ports.store import Page
from tests.acceptance.stage import DAY_MS, HOUR_MS, actions, opened, refused, state, virtual

NIGHTLY = sequence("nightly", step("work", "noop"))
LONG = sequence("long", wait("w", signal="go"))
HOUR = dt.timedelta(hours=1)
ZONE = "Europe/Berlin"


def instant(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def ms(text):
    return int(instant(text).timestamp() * 1000)


@pytest.fixture
def engine():
    with virtual() as engine:
        engine.deploy(NIGHTLY)
        engine.deploy(LONG)
        yield engine


def children(engine, cron):
    """What a schedule has started, oldest first."""
    return engine.inspect.instances(Page(parent=cron.instance)).items


def times(engine, cron):
    return [each.created_ms for each in children(engine, cron)]


# firing ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-3")
def test_a_schedule_starts_an_instance_at_each_of_its_times(engine):
    cron = engine.crons.create("nightly", "30 2 * * *", timezone=ZONE, metadata={"team": "ops"})
    assert cron.next_fire_ms == ms("2026-01-01T01:30")
    engine.advance(dt.timedelta(days=3))
    assert times(engine, cron) == [ms(f"2026-01-0{day}T01:30") for day in (1, 2, 3)]
    first = engine.inspect.show(children(engine, cron)[0].id)
    assert first.metadata == {"team": "ops", "cron_schedule_id": cron.id}
    assert (first.timezone, first.summary.priority, first.data) == (ZONE, 1, None)
    assert first.summary.state == "completed"
    seen = engine.crons.show(cron.id)
    assert (seen.fires, seen.skipped_fires, seen.running) == (3, 0, ())
    assert seen.last_triggered_ms == ms("2026-01-03T01:30")
    assert seen.next_fire_ms == ms("2026-01-04T01:30")


@pytest.mark.req("SEQ-TIM-3", "SEQ-TIM-2")
def test_a_time_that_the_zone_skips_fires_at_the_end_of_the_gap_and_one_it_has_twice_once():
    """In Berlin 02:30 is missing on 29 March 2026 and comes twice on 25 October."""
    spring = ms("2026-03-28T12:00")
    with virtual(epoch_ms=spring) as engine:
        cron = engine.crons.create(NIGHTLY, "30 2 * * *", timezone=ZONE)
        engine.advance(to=instant("2026-03-31T00:00"))
        assert times(engine, cron) == [ms("2026-03-29T01:00"), ms("2026-03-30T00:30")]
    with virtual(epoch_ms=ms("2026-10-24T12:00")) as engine:
        cron = engine.crons.create(NIGHTLY, "30 2 * * *", timezone=ZONE)
        engine.advance(to=instant("2026-10-27T00:00"))
        assert times(engine, cron) == [ms("2026-10-25T00:30"), ms("2026-10-26T01:30")]


@pytest.mark.req("SEQ-TIM-3")
def test_the_next_fires_are_told_without_storing_anything(engine):
    told = engine.crons.preview("0 9 * * MON-FRI", ZONE, 3)
    assert told == [instant(f"2026-01-0{day}T08:00") for day in (1, 2, 5)]
    after = instant("2026-07-01T00:00")
    assert engine.crons.preview("0 0 9 * * MON-FRI *", ZONE, 1, after=after) == [
        instant("2026-07-01T07:00")
    ]
    assert engine.crons.list() == ()
    cron = engine.crons.create("nightly", "0 9 * * MON-FRI", timezone=ZONE)
    assert engine.crons.next_fires(cron.id, 3) == told
    assert [len(engine.crons.next_fires(cron.id, n)) for n in (1, 50)] == [1, 50]
    for n in (0, 51, "5", True):
        with refused("request.invalid"):
            engine.crons.next_fires(cron.id, n)


@pytest.mark.req("SEQ-TIM-3")
def test_a_name_follows_the_newest_version_and_a_version_stays(engine):
    newest = engine.crons.create("nightly", "0 * * * *")
    pinned = engine.crons.create("nightly@1", "0 * * * *")
    second = sequence("nightly", step("other", "noop"), version=2)
    engine.deploy(second)
    engine.advance(HOUR)
    assert children(engine, newest)[0].definition == second.hash
    assert children(engine, pinned)[0].definition == NIGHTLY.hash
    assert engine.crons.update(pinned.id, second).version == 2
    engine.advance(HOUR)
    assert children(engine, pinned)[1].definition == second.hash


@pytest.mark.req("SEQ-TIM-3")
def test_a_sequence_that_is_gone_when_it_fires_is_told_and_does_no_harm(engine):
    cron = engine.crons.create("nightly", "0 * * * *")
    engine.deprecate("nightly", 1)
    engine.advance(HOUR)
    seen = engine.crons.show(cron.id)
    assert (seen.fires, seen.failed_fires) == (0, 1)
    assert seen.last_error == "there is no sequence named 'nightly'"
    assert actions(engine, cron.instance, "cron.failed") == ["cron.failed"]
    assert seen.next_fire_ms == seen.created_ms + 2 * HOUR_MS


@pytest.mark.req("SEQ-TIM-3")
def test_explain_tells_when_a_schedule_moves_and_then_it_does(engine):
    cron = engine.crons.create("nightly", "15 4 * * *")
    said = engine.explain(cron.instance)
    assert said.earliest_ms == cron.next_fire_ms == ms("2026-01-01T04:15")
    engine.advance(to=said.earliest - 1)
    assert times(engine, cron) == []
    engine.advance(to=said.earliest)
    assert times(engine, cron) == [cron.next_fire_ms]


@pytest.mark.req("SEQ-TIM-3", "CORE-RPL-1")
def test_a_schedule_can_be_replayed_and_verified(engine):
    cron = engine.crons.create("long", "0 * * * *", timezone=ZONE, overlap="buffer_one")
    engine.advance(3 * HOUR)
    engine.crons.update(cron.id, expr="*/20 * * * *")
    engine.advance(HOUR)
    assert engine.replay(cron.instance).identical
    assert engine.inspect.recompute(cron.instance) == []
    assert engine.inspect.verify().valid


# overlaps ----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-3")
@pytest.mark.parametrize(
    ("overlap", "states", "skipped"),
    [
        ("allow", ["waiting", "waiting", "waiting"], 0),
        ("skip", ["waiting"], 2),
        ("buffer_one", ["waiting"], 1),
        ("cancel_previous", ["cancelled", "cancelled", "waiting"], 0),
    ],
)
def test_what_a_fire_does_while_an_earlier_one_runs(engine, overlap, states, skipped):
    cron = engine.crons.create("long", "0 * * * *", overlap=overlap)
    engine.advance(3 * HOUR)
    assert [each.state for each in children(engine, cron)] == states
    seen = engine.crons.show(cron.id)
    assert (seen.skipped_fires, seen.last_skipped_ms is not None) == (skipped, skipped > 0)


@pytest.mark.req("SEQ-TIM-3")
def test_a_buffered_fire_starts_when_the_running_one_ends(engine):
    cron = engine.crons.create("long", "0 * * * *", overlap="buffer_one")
    engine.advance(2 * HOUR)
    assert engine.crons.show(cron.id).held_fire_ms == cron.created_ms + 2 * HOUR_MS
    engine.signal(children(engine, cron)[0].id, "go")
    engine.advance(60_000)
    assert [each.state for each in children(engine, cron)] == ["completed", "waiting"]
    held = derived_id("default", "cron", f"{cron.id}:{cron.created_ms + 2 * HOUR_MS}")
    assert children(engine, cron)[1].id == held


# changes -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-3")
def test_a_schedule_is_changed_disabled_enabled_and_deleted(engine):
    cron = engine.crons.create("long", "0 * * * *", id="tidy-up")
    engine.advance(HOUR)
    changed = engine.crons.update(cron.id, expr="30 0 * * * *", priority="High", metadata={"a": 1})
    assert changed.next_fire_ms == cron.created_ms + HOUR_MS + 30_000
    assert (changed.cron_expr, changed.priority) == ("30 0 * * * *", "High")
    assert engine.crons.disable("tidy-up").next_fire_ms is None
    engine.advance(5 * HOUR)
    assert len(children(engine, cron)) == 1
    assert engine.crons.enable("tidy-up").next_fire_ms == cron.created_ms + 6 * HOUR_MS + 30_000
    engine.advance(HOUR)
    assert len(children(engine, cron)) == 2
    engine.crons.delete("tidy-up")
    assert [each.state for each in children(engine, cron)] == ["waiting", "waiting"]
    engine.advance(dt.timedelta(days=1))
    assert (len(children(engine, cron)), state(engine, cron.instance)) == (2, "cancelled")
    for call in (engine.crons.show, engine.crons.delete, engine.crons.enable):
        with refused("cron.not_found"):
            call("tidy-up")
    with refused("cron.exists"):
        engine.crons.create("long", "0 * * * *", id="tidy-up")


@pytest.mark.req("SEQ-TIM-3")
def test_schedules_are_listed_by_creation_and_apart_between_tenants(engine):
    engine.deploy(NIGHTLY, tenant="acme")
    mine = [engine.crons.create("nightly", f"{n} * * * *", id=f"s{n}") for n in range(3)]
    theirs = engine.crons.create("nightly", "0 * * * *", tenant="acme", id="s0")
    assert [each.id for each in engine.crons.list(tenant="default")] == ["s0", "s1", "s2"]
    assert [each.id for each in engine.crons.list(limit=2)] == ["s0", "s1"]
    assert engine.crons.list(tenant="acme") == (theirs,)
    assert engine.crons.show("s1") == mine[1]
    assert engine.crons.show("s0", tenant="acme").instance != mine[0].instance
    with refused("cron.not_found"):
        engine.crons.show("s1", tenant="acme")
    with refused("request.invalid"):
        engine.crons.show("s0")
    for limit in (0, 1_001):
        with refused("request.invalid"):
            engine.crons.list(limit=limit)


@pytest.mark.req("SEQ-TIM-3")
def test_the_verbs_can_be_awaited(engine):
    async def story():
        cron = await engine.aio.crons.create("nightly", "0 * * * *")
        await engine.aio.crons.disable(cron.id)
        return await engine.aio.crons.list()

    (cron,) = asyncio.run(story())
    assert cron.enabled is False


# the engine's own --------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-3")
def test_the_engines_own_instances_are_listed_only_when_asked_for(engine):
    cron = engine.crons.create("long", "0 * * * *")
    engine.advance(HOUR)
    assert [each.name for each in engine.inspect.instances().items] == ["long"]
    assert [each.name for each in engine.inspect.instances(tenant="default").items] == ["long"]
    own = engine.inspect.instances(Page(namespace="detent")).items
    assert [(each.id, each.name) for each in own] == [(cron.instance, "detent.cron")]
    assert engine.inspect.instances(Page(namespace="detent"), tenant="acme").items == ()
    with refused("fork.refused"):
        engine.fork(cron.instance, seq=1)


@pytest.mark.req("SEQ-TIM-3")
def test_nobody_else_may_use_the_engines_names(engine):
    stolen = sequence("detent.cron", step("work", "noop"))
    near = sequence("detentions", step("work", "noop"))
    for call in (
        lambda: engine.start(stolen),
        lambda: engine.deploy(stolen),
        lambda: engine.start(NIGHTLY, namespace="detent"),
        lambda: engine.start_many(NIGHTLY, [1], namespace="detent"),
        lambda: engine.deploy(NIGHTLY, namespace="detent"),
        lambda: engine.crons.create(stolen, "0 * * * *"),
        lambda: engine.crons.create(NIGHTLY, "0 * * * *", namespace="detent"),
    ):
        with refused("request.invalid"):
            call()
    assert engine.start(near)
    assert engine.start(NIGHTLY, namespace="detents")


def test_a_schedule_alone_keeps_nobody_busy(engine):
    """Time moves on for what a user waits for, and schedules fire on the way."""
    cron = engine.crons.create("nightly", "0 * * * *")
    engine.run_until_idle()
    assert times(engine, cron) == []
    engine.start(sequence("sleeper", wait("w", duration=3 * HOUR_MS)))
    engine.run_until_idle()
    assert len(times(engine, cron)) == 3
    with refused("request.timeout"):
        engine.wait_for(engine.start(LONG))


# stand-stills ------------------------------------------------------------------------------------


def sleep_through(path, span_ms):
    """Let the store's time go on while nobody runs it."""
    with opened(path, write=True) as connection:
        connection.execute("UPDATE partition SET tick = tick + ?", (span_ms // 100,))


@pytest.mark.req("SEQ-TIM-3", "CORE-REC-1")
@pytest.mark.parametrize(
    ("options", "hours", "skipped"),
    [
        ({}, [1, 25], 23),
        ({"missed": "none"}, [1, 26], 24),
        ({"missed": "all", "missed_limit": 2}, [1, 24, 25], 22),
        ({"missed": "all", "missed_limit": 24}, list(range(1, 26)), 0),
    ],
)
def test_what_was_missed_while_nothing_ran_follows_the_policy(tmp_path, options, hours, skipped):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        cron = engine.crons.create(NIGHTLY, "0 * * * *", **options)
        engine.advance(HOUR + dt.timedelta(minutes=30))
    sleep_through(path, DAY_MS)
    with virtual(path) as engine:
        engine.advance(0)
        if options.get("missed") == "none":
            engine.advance(HOUR)
        started = [each.id for each in children(engine, cron)]
        ids = [
            derived_id("default", "cron", f"{cron.id}:{cron.created_ms + hour * HOUR_MS}")
            for hour in hours
        ]
        assert started == ids
        assert engine.crons.show(cron.id).skipped_fires == skipped
        assert engine.replay(cron.instance).identical


@pytest.mark.req("SEQ-TIM-3")
def test_what_passed_while_a_schedule_was_disabled_is_never_made_up_for(tmp_path):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        cron = engine.crons.create(NIGHTLY, "0 * * * *", missed="all", enabled=False)
    sleep_through(path, DAY_MS)
    with virtual(path) as engine:
        engine.crons.enable(cron.id)
        engine.advance(HOUR)
        assert times(engine, cron) == [cron.created_ms + DAY_MS + HOUR_MS]
        assert engine.crons.show(cron.id).skipped_fires == 0


@pytest.mark.req("SEQ-TIM-3", "CORE-REC-1")
def test_another_engine_goes_on_with_a_schedule_and_no_fire_happens_twice(tmp_path):
    path = tmp_path / "store.db"
    with virtual(path) as engine:
        cron = engine.crons.create(NIGHTLY, "0 * * * *")
    for _ in range(4):
        with virtual(path, seed="another") as engine:
            engine.advance(dt.timedelta(minutes=50))
            found = times(engine, cron)
    assert found == [cron.created_ms + hour * HOUR_MS for hour in (1, 2, 3)]
