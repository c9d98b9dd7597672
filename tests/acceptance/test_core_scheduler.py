"""Turns: order, bounds, one commit, one writer (CORE-SCH)."""

from __future__ import annotations

import time

import pytest

import detent
from detent import loop, parallel, sequence, step, sub_sequence, wait
from detent.model import limits
from detent.runtime.settings import WriterSettings
from tests.acceptance.stage import (
    HOUR_MS,
    actions,
    dump,
    finished,
    opened,
    refused,
    rows,
    state,
    virtual,
)

HOURLY = sequence("hourly", wait("w", "1h"), step("s", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def second_rows(path):
    """The ids of instances in the order in which their second turn was decided."""
    joined = "journal JOIN instance ON inst = instance.n"
    return [id for (id,) in rows(path, joined, "instance.id", "seq = 2 ORDER BY pos")]


@pytest.mark.req("CORE-SCH-1")
def test_all_instances_of_a_turn_in_all_partitions_are_decided_in_one_commit(path):
    commits = []

    def committed():
        commits.append(1)
        return 0

    with virtual(path) as engine:
        engine._parts._store._connection.set_commit_hook(committed)
        made = engine.start_many(HOURLY, range(300))
        commits.clear()
        engine.advance(0)
        assert len(commits) == 1
        assert {state(engine, id) for id in made} == {"waiting"}
        engine.advance(HOUR_MS)
        assert len(commits) == 2
        assert {state(engine, id) for id in made} == {"completed"}
    assert len({p for (p,) in rows(path, "instance", "p")}) == 16


@pytest.mark.req("CORE-SCH-1", "CORE-EFF-1")
def test_a_call_begins_after_the_commit_that_decided_it(path):
    seen = []

    @detent.handler
    def work(ctx: detent.HandlerContext):
        planned = rows(path, "journal", "body")
        seen.append(any(ctx.key.encode() in body for (body,) in planned))

    with virtual(path, [work]) as engine:
        assert finished(engine, sequence("s", step("a", work))).summary.state == "completed"
    assert seen == [True]


@pytest.mark.req("CORE-SCH-1")
def test_steps_that_only_compute_share_a_turn_and_acting_ones_take_one_each():
    @detent.handler
    def act():
        return {}

    with virtual(handlers=[act]) as engine:
        computed = finished(engine, sequence("c", *[step(f"s{n}", "noop") for n in range(5)]))
        acted = finished(engine, sequence("a", *[step(f"s{n}", act) for n in range(5)]))
        assert computed.snapshot_version == 1
        assert acted.snapshot_version == 6
        for shown in (computed, acted):
            entered = actions(engine, shown.summary.id, "step.entered", "step.executed")
            assert entered == ["step.entered", "step.executed"] * 5


@pytest.mark.req("CORE-SCH-1")
def test_each_branch_acts_at_most_once_per_turn():
    @detent.handler
    def act():
        return {}

    branches = [[step(f"{b}{n}", act) for n in range(3)] for b in "xyz"]
    with virtual(handlers=[act]) as engine:
        shown = finished(engine, sequence("s", parallel("p", *branches)))
        planned = engine.inspect.audit(shown.summary.id, action="effect.planned")
        turns = [entry.seq for entry in planned]
        assert turns == [1] * 3 + [2] * 3 + [3] * 3


@pytest.mark.req("CORE-SCH-1")
def test_an_engine_with_nothing_due_uses_no_time(path):
    with detent.Engine(path) as engine:
        engine.start_many(HOURLY, range(500))
        instance = engine.start(sequence("s", wait("w", "700ms")))
        engine.wait_for(instance, "waiting")
        used = time.process_time()
        assert engine.wait_for(instance) == "completed"
        assert time.process_time() - used < 0.2


@pytest.mark.req("CORE-SCH-2", "SEQ-2")
def test_what_is_due_moves_by_priority_then_due_tick_then_id(path):
    with virtual(path, partitions=1) as engine:
        made = []
        for hours in (3, 1, 2):
            definition = sequence(f"d{hours}", wait("w", f"{hours}h"), step("s", "noop"))
            for priority in ("Low", "Critical", "Normal", "High") * 3:
                id = engine.start(definition, priority=priority)
                made.append((priority, hours, id))
    with opened(path, write=True) as connection:
        # the machine was off for four hours
        connection.execute("UPDATE partition SET tick = ?", (4 * HOUR_MS // 100,))
    with virtual(path) as engine:
        engine.advance(0)
        assert all(state(engine, id) == "completed" for _, _, id in made)
    rank = {"Critical": 0, "High": 1, "Normal": 2, "Low": 3}
    order = second_rows(path)
    place = {id: (rank[priority], hours, id) for priority, hours, id in made}
    # every eighth place is kept for the lower priorities, so that they always move
    straight = [place[id] for at, id in enumerate(order) if at % 8 != 7]
    assert straight == sorted(straight)
    assert len(order) == len(made)


@pytest.mark.req("CORE-SCH-2")
def test_within_an_instance_inputs_come_in_their_order_and_before_the_wait_of_their_tick():
    definition = sequence("s", wait("w", "1h", signal="go"), step("after", "noop"))
    with virtual() as engine:
        instance = engine.start(definition)
        engine.advance(HOUR_MS - 100)
        engine.signal(instance, "update_context", {"n": 1})
        engine.signal(instance, "update_context", {"n": 2})
        engine.signal(instance, "go", "in time")
        engine.run_until_idle()
        assert engine.inspect.show(instance).outputs["w"] == "in time"
        assert engine.inspect.show(instance).data == {"n": 2}


@pytest.mark.req("CORE-SCH-3")
def test_a_turn_is_bounded_and_what_is_left_over_comes_first(path):
    turns = WriterSettings(max_instances_per_turn=10)
    with virtual(path, partitions=1, turns=turns) as engine:
        made = engine.start_many(HOURLY, range(95))
        engine.run_until_idle()
        assert {state(engine, id) for id in made} == {"completed"}
    sizes = {}
    for (turn,) in rows(path, "journal", "turn"):
        sizes[turn] = sizes.get(turn, 0) + 1
    assert max(sizes.values()) == 10
    assert len(sizes) == 20
    assert second_rows(path) == sorted(made)


@pytest.mark.req("CORE-SCH-3")
def test_an_instance_that_computes_for_ever_yields_and_the_others_move(path):
    endless = sequence(
        "endless", loop("l", "true", step("s", "noop"), max_iterations=5 * limits.MOVES_PER_TURN)
    )
    with virtual(path, partitions=1) as engine:
        long = engine.start(endless, priority="Critical")
        short = engine.start(HOURLY, priority="Low")
        engine.run_until_idle()
        assert state(engine, long) == state(engine, short) == "completed"
        assert engine.inspect.show(long).snapshot_version >= 5
        first = engine.inspect.audit(short)[0]
    order = [
        id
        for (id,) in rows(
            path, "journal JOIN instance ON inst = instance.n", "instance.id", "1 ORDER BY pos"
        )
    ]
    assert order.index(short) < len(order) - 1 - order[::-1].index(long)
    assert first.tick == 0


@pytest.mark.req("CORE-SCH-3")
def test_low_priority_moves_under_a_steady_stream_of_critical_work(path):
    """One of every eight places is the lower priorities': the wait is bounded by that."""
    busy = sequence("busy", loop("l", "true", step("s", "noop"), max_iterations=8_000))
    turns = WriterSettings(max_instances_per_turn=4)
    with virtual(path, partitions=1, turns=turns) as engine:
        busy_ones = engine.start_many(busy, range(8), priority="Critical")
        low = engine.start_many(HOURLY, range(3), priority="Low")
        engine.advance(0)
    joined = "journal JOIN instance ON inst = instance.n"
    first = dict(rows(path, joined, "instance.id, min(pos)", "1 GROUP BY inst"))
    last = dict(rows(path, joined, "instance.id, max(pos)", "1 GROUP BY inst"))
    moved = sorted(first[id] for id in low)
    assert all(pos <= 8 * (older + 2) for older, pos in enumerate(moved))
    assert moved[-1] < min(last[id] for id in busy_ones)


@pytest.mark.req("CORE-SCH-4")
def test_a_second_engine_on_a_store_is_refused_and_told_who_owns_it(path):
    with detent.Engine(path) as engine:
        instance = engine.start(HOURLY)
        before = dump(path)
        for writer in ("thread", "process"):
            with refused("store.owned") as refusal:
                detent.Engine(path, writer=writer)
            assert refusal.value.details["pid"]
            assert str(refusal.value.details["pid"]) in refusal.value.message
            assert refusal.value.details["host"] in refusal.value.message
        assert dump(path) == before
        engine.cancel(instance)
    with detent.Engine(path) as engine:
        assert state(engine, instance) == "cancelled"


@pytest.mark.req("CORE-SCH-4")
def test_an_instance_has_the_same_partition_in_every_store(tmp_path):
    places = []
    for name in ("a.db", "b.db"):
        with virtual(tmp_path / name, seed=name) as engine:
            for n in range(40):
                engine.start(HOURLY, key=f"k{n}")
        places.append(sorted(rows(tmp_path / name, "instance", "id, p")))
    assert places[0] == places[1]
    assert len({p for _, p in places[0]}) > 8


@pytest.mark.req("CORE-SCH-4", "SEQ-BLK-6")
def test_children_in_other_partitions_are_born_with_their_parent_s_commit(path):
    child = sequence("child", step("c", "transform", params={"x": 1}))
    parent = sequence("parent", *[sub_sequence(f"s{n}", "child") for n in range(12)])
    with virtual(path) as engine:
        engine.deploy(child)
        instance = engine.start(parent)
        engine.run_until_idle()
        assert state(engine, instance) == "completed"
        assert engine.inspect.verify().valid
    assert len({p for (p,) in rows(path, "instance", "p")}) > 4


@pytest.mark.req("CORE-SCH-5")
@pytest.mark.parametrize("call", ["start", "signal"])
def test_a_writer_that_was_overtaken_cannot_commit(path, call):
    """Another process raises the fence, as a new owner does; the old one must not write again."""
    with detent.Engine(path) as engine:
        instance = engine.start(HOURLY)
        with opened(path, write=True) as connection:
            connection.execute(
                "UPDATE partition SET fence_epoch = fence_epoch + 1, owner = 'another',"
                " lease_until = 9000000000000"
            )
            connection.execute("INSERT INTO owner VALUES ('another', 'far', 1, 9000000000000, '')")
        before = dump(path)
        with refused("store.fenced"):
            engine.start(HOURLY) if call == "start" else engine.signal(instance, "go")
        after = dump(path)
        for table in ("instance", "snapshot", "journal", "turn", "partition", "arrival"):
            assert after[table] == before[table], table


@pytest.mark.req("CORE-SCH-6")
def test_the_settings_have_the_names_and_defaults_of_the_requirement():
    defaults = WriterSettings()
    assert defaults.tick_interval_ms == 1000
    assert defaults.max_instances_per_turn == 500
    assert defaults.lease_ttl_ms == 30_000
    assert defaults.lease_retry_ms == 1000
    assert defaults.lease_margin_ms == 2000
    assert defaults.turn_budget_ms == 20
    assert defaults.dedupe_window_ms == 7 * 24 * HOUR_MS
    assert defaults.stale_instance_threshold_secs == 300
    assert limits.PARTITIONS == 16
    with detent.Engine() as engine:
        assert engine._parts.meta.partitions == 16
