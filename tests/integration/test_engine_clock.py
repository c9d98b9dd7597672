"""The wall clock under an engine: jumps are held, time never goes back, waits are never early."""

from __future__ import annotations

import datetime as dt
import time

import pytest

import detent
from detent import sequence, step, wait
from detent.bootstrap.visitor import Visitor
from detent.runtime.settings import WriterSettings
from tests.acceptance.stage import DAY_MS, HOUR_MS, dump, opened, refused, rows, state

SOON = sequence("soon", wait("w", "100ms"), step("s", "noop"))
HOURLY = sequence("hourly", wait("w", "1h"), step("s", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def machine_clock_moves(path, ms):
    """As if the machine's clock had moved by so much while nobody had the store open."""
    with opened(path, write=True) as connection:
        connection.execute("UPDATE store SET epoch_ms = epoch_ms - ?", (ms,))


def last_tick(path):
    return max(tick for (tick,) in rows(path, "partition", "tick"))


@pytest.mark.req("CORE-CLK-4")
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_jump_of_more_than_seven_days_holds_the_engine_until_it_is_accepted(path, writer):
    with detent.Engine(path, writer=writer) as engine:
        instance = engine.start(HOURLY)
    machine_clock_moves(path, 7 * DAY_MS + HOUR_MS)
    with detent.Engine(path, writer=writer) as engine:
        before = dump(path)
        for call in (
            lambda: engine.start(SOON),
            lambda: engine.signal(instance, "go"),
            lambda: engine.cancel(instance),
        ):
            with refused("clock.jump") as refusal:
                call()
            assert "detent clock accept" in refusal.value.message
        assert state(engine, instance) == "waiting"
        assert dump(path)["journal"] == before["journal"]
        with Visitor(path) as operator:
            assert operator.accept_clock() >= 7 * DAY_MS
        assert engine.wait_for(instance) == "completed"
        assert engine.wait_for(engine.start(SOON)) == "completed"
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-CLK-4")
def test_a_machine_that_was_off_for_less_goes_on_and_fires_what_became_due_in_its_order(path):
    with detent.Engine(path) as engine:
        late = engine.start(sequence("late", wait("w", "2h"), step("s", "noop")))
        early = engine.start(sequence("early", wait("w", "1h"), step("s", "noop")))
        never = engine.start(sequence("never", wait("w", "8d"), step("s", "noop")))
    machine_clock_moves(path, 6 * DAY_MS)
    with detent.Engine(path) as engine:
        assert engine.wait_for(early) == engine.wait_for(late) == "completed"
        assert state(engine, never) == "waiting"
        order = [
            instance
            for (instance,) in rows(
                path,
                "journal JOIN instance ON inst = instance.n",
                "instance.id",
                "seq = 2 ORDER BY pos",
            )
        ]
        assert order == [early, late]


@pytest.mark.req("CORE-CLK-4", "CORE-CLK-3")
def test_a_clock_set_back_never_moves_the_tick_back_and_no_wait_ends_early(path):
    with detent.Engine(path) as engine:
        waiting = engine.start(HOURLY)
        now = engine.now()
    machine_clock_moves(path, -HOUR_MS)
    tick = last_tick(path)
    with detent.Engine(path) as engine:
        assert engine.now() >= now - dt.timedelta(milliseconds=100) + dt.timedelta(hours=1)
        assert engine.wait_for(engine.start(sequence("now", step("s", "noop")))) == "completed"
        later = engine.start(sequence("later", step("s", "noop")), at=dt.timedelta(minutes=30))
        assert last_tick(path) >= tick
        assert state(engine, waiting) == "waiting"
        assert state(engine, later) == "scheduled"
        due_ms = engine.explain(later).earliest_ms
        assert due_ms - engine.now().timestamp() * 1000 >= 30 * 60_000
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-CLK-1", "CORE-CLK-4")
def test_a_new_store_may_begin_at_an_epoch_long_ago(path):
    epoch_ms = time.time_ns() // 1_000_000 - 30 * DAY_MS
    with detent.Engine(path, epoch_ms=epoch_ms) as engine:
        assert engine.wait_for(engine.start(SOON)) == "completed"


@pytest.mark.req("CORE-CLK-6")
def test_a_stepped_clock_makes_one_tick_per_turn_whatever_the_wall_says(path):
    turns = WriterSettings(tick_interval_ms=5)
    with detent.Engine(path, clock="stepped", resolution_ms=1000, turns=turns) as engine:
        began = time.monotonic()
        instance = engine.start(sequence("minute", wait("w", "20s"), step("s", "noop")))
        assert engine.wait_for(instance) == "completed"
        assert time.monotonic() - began < 5
        tree = engine.inspect.tree(instance).nodes
        assert tree[0].completed - tree[0].started == 20
    machine_clock_moves(path, 30 * DAY_MS)
    with detent.Engine(path, turns=turns) as engine:
        assert engine.wait_for(engine.start(SOON)) == "completed"
    ticks = sorted({tick for (tick,) in rows(path, "turn", "tick")})
    assert ticks[-1] < 10_000
    with refused("store.settings"):
        detent.Engine(path, clock="wall")


@pytest.mark.req("CORE-CLK-1")
def test_resolution_epoch_mode_and_partitions_are_fixed_in_the_store(path):
    with detent.Engine(path, resolution_ms=50, partitions=4):
        pass
    ((epoch_ms, resolution_ms, clock, partitions),) = rows(
        path, "store", "epoch_ms, resolution_ms, clock, partitions"
    )
    assert (resolution_ms, clock, partitions) == (50, "wall", 4)
    assert epoch_ms % 50 == 0
    before = dump(path)
    for other in ({"resolution_ms": 100}, {"clock": "virtual"}, {"partitions": 16}):
        with refused("store.settings"):
            detent.Engine(path, **other)
    assert dump(path) == before


@pytest.mark.req("CORE-CLK-3")
def test_no_wait_ends_before_its_time_on_the_wall_but_for_one_tick(path):
    with detent.Engine(path, resolution_ms=20) as engine:
        began = time.monotonic()
        instance = engine.start(sequence("short", wait("w", "200ms")))
        assert engine.wait_for(instance) == "completed"
        assert time.monotonic() - began >= 0.180
        node = engine.inspect.tree(instance).nodes[0]
        assert node.completed - node.started >= 10
