"""Ticks, waits and virtual time (CORE-CLK)."""

from __future__ import annotations

import asyncio
import datetime as dt
import random
import time

import pytest

import detent
from detent import parallel, race, sequence, step, sub_sequence, try_catch, wait
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    dump,
    finished,
    opened,
    refused,
    rows,
    state,
    virtual,
)

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.mark.req("CORE-CLK-1")
@pytest.mark.parametrize("resolution_ms", [1, 7, 100, 1000, 60_000])
def test_logical_now_is_the_epoch_and_so_many_ticks(path, resolution_ms):
    with virtual(path, resolution_ms=resolution_ms) as engine:
        before = engine.now()
        tick = engine.advance(dt.timedelta(hours=1))
        ((epoch_ms,),) = rows(path, "store", "epoch_ms")
        assert epoch_ms % resolution_ms == 0
        assert engine.now().timestamp() * 1000 == epoch_ms + tick * resolution_ms
        assert engine.now() - before >= dt.timedelta(hours=1)


@pytest.mark.req("CORE-CLK-1", "CORE-CLK-6")
def test_a_new_store_ticks_by_the_wall_ten_times_a_second(path):
    with detent.Engine(path):
        assert rows(path, "store", "resolution_ms, clock") == [(100, "wall")]


@pytest.mark.req("CORE-CLK-3")
@pytest.mark.parametrize("resolution_ms", [1, 7, 100, 1000])
@pytest.mark.parametrize("duration_ms", [0, 1, 99, 100, 101, 999, 1001, 2500, DAY_MS, 90 * DAY_MS])
def test_a_wait_ends_at_the_first_tick_that_is_not_before_its_time(resolution_ms, duration_ms):
    with virtual(resolution_ms=resolution_ms) as engine:
        engine.advance(3 * resolution_ms)
        instance = engine.start(sequence("s", wait("w", duration_ms)))
        needed = -(-duration_ms // resolution_ms)
        if needed:
            assert engine.advance(to=3 + needed - 1) == 2 + needed
            assert state(engine, instance) == "waiting"
        engine.advance(to=3 + needed)
        assert state(engine, instance) == "completed"
        node = engine.inspect.tree(instance).nodes[0]
        assert (node.started, node.completed) == (3, 3 + needed)


@pytest.mark.req("CORE-CLK-3")
def test_a_wait_keeps_its_target_over_restarts_and_while_nobody_is_there(path):
    definition = sequence("s", wait("w", "3d"), step("after", "noop"))
    with virtual(path) as engine:
        instance = engine.start(definition)
        due = engine.explain(instance).earliest
    for _ in range(3):
        with virtual(path) as engine:
            assert engine.explain(instance).earliest == due
            engine.advance(HOUR_MS)
            assert state(engine, instance) == "waiting"
    with virtual(path) as engine:
        engine.advance(to=due)
        assert state(engine, instance) == "completed"


@pytest.mark.req("CORE-CLK-2")
def test_every_time_a_definition_sees_is_that_of_the_turn(path):
    definition = sequence(
        "s",
        wait("w", "36h"),
        step("told", "transform", params={"at": "{{ runtime.started_at }}"}),
        step("branch", "assert", params={"condition": "now() == now()"}),
    )
    with virtual(path) as engine:
        shown = finished(engine, definition)
        assert shown.summary.state == "completed"
        assert engine.replay(shown.summary.id).identical
        ticks = {entry.tick for entry in engine.inspect.audit(shown.summary.id)}
        assert ticks == {0, 36 * HOUR_MS // 100}


@pytest.mark.req("CORE-CLK-2", "CORE-AUD-1")
def test_wall_time_is_written_beside_the_chain_and_not_into_it(path):
    with virtual(path) as engine:
        finished(engine, sequence("s", step("a", "noop")))
    with opened(path, write=True) as connection:
        connection.execute("UPDATE turn SET wall_ms = wall_ms + 12345")
    with virtual(path) as engine:
        assert engine.inspect.verify().valid
    with opened(path, write=True) as connection:
        connection.execute("UPDATE turn SET tick = tick + 1")
    with virtual(path) as engine:
        assert not engine.inspect.verify().valid


@pytest.mark.req("CORE-CLK-5")
def test_ninety_days_pass_in_milliseconds():
    definition = sequence("plan", *[wait(f"day{n}", "1d") for n in range(90)])
    with virtual() as engine:
        began = time.process_time()  # others may use the machine too
        assert finished(engine, definition).summary.state == "completed"
        took = time.process_time() - began
        assert engine.now() == NOW + dt.timedelta(days=90)
    assert took < 0.15


@pytest.mark.req("CORE-CLK-5")
def test_virtual_time_stands_still_until_it_is_moved_and_then_goes_to_what_is_due():
    with virtual() as engine:
        instance = engine.start(sequence("s", wait("w", "1h"), wait("x", "1h")))
        assert engine.now() == NOW
        assert state(engine, instance) == "waiting"
        engine.advance(dt.timedelta(minutes=90))
        assert engine.now() == NOW + dt.timedelta(minutes=90)
        assert engine.explain(instance).waits[0].block == "x"
        assert engine.advance(to=NOW + dt.timedelta(hours=5)) == 5 * 36_000
        assert state(engine, instance) == "completed"
        assert engine.run_until_idle() == 5 * 36_000
        with refused("request.invalid"):
            engine.advance(to=NOW)


@pytest.mark.req("CORE-CLK-4", "CORE-CLK-5")
def test_virtual_time_does_not_go_back_when_a_store_is_opened_again(path):
    """Nothing was due meanwhile, so no turn has written the tick."""
    with virtual(path) as engine:
        engine.start(sequence("s", wait("w", "30d")))
        engine.advance(DAY_MS)
        now = engine.now()
    for _ in range(2):
        with virtual(path) as engine:
            assert engine.now() == now
            assert engine.inspect.verify().valid


@pytest.mark.req("CORE-CLK-5")
def test_waiting_for_a_state_moves_time_no_further_than_needed():
    with virtual() as engine:
        soon = engine.start(sequence("soon", wait("w", "1h"), wait("x", signal="go")))
        late = engine.start(sequence("late", wait("w", "1d")))
        assert engine.wait_for(late, "waiting") == "waiting"
        assert engine.now() == NOW
        assert engine.wait_for(late) == "completed"
        assert engine.now() == NOW + dt.timedelta(days=1)
        with refused("request.timeout"):
            engine.wait_for(soon)


@pytest.mark.req("CORE-CLK-5")
def test_time_does_not_move_while_a_call_is_under_way():
    seen = []

    @detent.handler
    async def slow(n: int, ctx: detent.HandlerContext):
        for _ in range(5 * n):
            await asyncio.sleep(0)
        seen.append((n, ctx.data["now"]))
        return {"n": n}

    with virtual(handlers=[slow]) as engine:
        branches = [
            [step(f"a{n}", slow, params={"n": n}), wait(f"w{n}", f"{n}h")] for n in range(1, 6)
        ]
        instance = engine.start(sequence("s", parallel("p", *branches)), {"now": 1})
        engine.run_until_idle()
        starts = {
            node.block: node.started
            for node in engine.inspect.tree(instance).nodes
            if node.block.startswith("w")
        }
        assert set(starts.values()) == {0}
        assert len(seen) == 5


@pytest.mark.req("CORE-CLK-6")
def test_a_running_clock_cannot_be_moved(path):
    with detent.Engine(path) as engine:
        for call in (engine.run_until_idle, lambda: engine.advance(1)):
            with refused("engine.running"):
                call()


def busy_world(path, seed, chance):
    """A population with calls, doubts, children, races, signals and retries; run to its end."""

    @detent.handler
    def plain(n: int, ctx: detent.HandlerContext):
        if ctx.attempt < n % 3:
            raise detent.Failed("not yet")
        return {f"plain{n}": ctx.key}

    @detent.handler
    async def waits(n: int):
        for _ in range(chance.randrange(5)):  # the order in which calls end is chance
            await asyncio.sleep(0)
        return {"n": n}

    @detent.handler(on_doubt="keyed")
    def keyed(n: int, ctx: detent.HandlerContext):
        if n % 2 and not tried.setdefault(ctx.key, False):
            tried[ctx.key] = True
            raise ConnectionError("lost")
        return {"k": n}

    tried = {}
    retry = detent.retry(4, initial_backoff="1s", jitter=300)
    child = sequence("child", step("c", "set_state", params={"key": "a", "value": 1}))
    definition = sequence(
        "world",
        parallel(
            "p",
            [step("a", plain, params={"n": "{{ data.n }}"}, retry=retry)],
            [step("b", waits, params={"n": "{{ data.n }}"}), sub_sequence("sub", "child")],
            [race("r", wait("r1", "2h"), [wait("r2", signal="go")])],
        ),
        try_catch("t", do=step("f", "fail"), catch=step("k", keyed, params={"n": "{{ data.n }}"})),
        step("rand", "transform", params={"id": "{{ instance_id }}"}),
    )
    with virtual(path, [plain, waits, keyed], seed=seed) as engine:
        engine.deploy(child)
        made = [engine.start(definition, {"n": n}, key=f"key-{n}") for n in range(12)]
        made += engine.start_many(definition, [{"n": n} for n in range(12, 20)])
        for instance in made[::3]:
            engine.signal(instance, "go", {"x": 1})
        engine.advance(HOUR_MS)
        engine.cancel(made[1])
        engine.run_until_idle()
        assert {state(engine, instance) for instance in made} == {"completed", "cancelled"}
        assert engine.inspect.verify().valid
    return dump(path)


@pytest.mark.req("CORE-CLK-5", "CORE-SCH-2")
def test_equal_seeds_give_equal_bytes_and_another_seed_gives_others(tmp_path):
    same = busy_world(tmp_path / "a.db", "seed", random.Random(1))
    again = busy_world(tmp_path / "b.db", "seed", random.Random(2))
    other = busy_world(tmp_path / "c.db", "other", random.Random(1))
    for store in (same, again, other):
        store.pop("store")  # its id is drawn when the file is made
    assert same.keys() == again.keys()
    for table in same:
        assert same[table] == again[table], table
    assert same["journal"] != other["journal"]
