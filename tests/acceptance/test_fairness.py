"""Fairness between tenants: nobody's backlog is another one's delay (SEQ-LIM-5, CORE-SCH-3)."""

from __future__ import annotations

from collections import Counter

import pytest

from detent import loop, sequence, step, wait
from detent.model.limits import INSTANCES_PER_TURN, TENANT_QUANTUM
from detent.runtime.ready import LOWER_SLOT
from detent.runtime.settings import WriterSettings
from tests.acceptance.stage import HOUR_MS, opened, rows, state, virtual

HOURLY = sequence("hourly", wait("w", "1h"), step("s", "noop"))
BATCH = 10_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def turns_of(path, seq):
    """Per turn, how many instances of each tenant made their step of that number."""
    joined = "journal JOIN instance ON inst = instance.n"
    counted = {}
    for turn, tenant in rows(path, joined, "turn, tenant", f"seq = {seq} ORDER BY pos"):
        counted.setdefault(turn, Counter())[tenant] += 1
    return list(counted.values())


def sleeping_past_due(path, **amounts):
    """A store whose instances all fell due while nobody was there."""
    with virtual(path, partitions=1) as engine:
        for tenant, amount in amounts.items():
            engine.start_many(HOURLY, range(amount), tenant=tenant)
        engine.advance(0)
    fall_due(path)


def fall_due(path):
    """Two hours pass while the machine is off."""
    with opened(path, write=True) as connection:
        connection.execute("UPDATE partition SET tick = ?", (2 * HOUR_MS // 100,))


@pytest.mark.req("SEQ-LIM-5", "CORE-SCH-3")
def test_ten_instances_move_at_once_beside_twenty_thousand_of_another_tenant(path):
    with virtual(path, partitions=1) as engine:
        for _ in range(2):
            engine.start_many(HOURLY, range(BATCH), tenant="acme")
        few = engine.start_many(HOURLY, range(10), tenant="beta")
        engine.advance(HOUR_MS)
        assert {state(engine, id) for id in few} == {"completed"}
    turns = turns_of(path, 2)
    assert turns[0]["beta"] == 10
    assert turns[0]["acme"] == INSTANCES_PER_TURN - 10
    assert sum(turns, Counter()) == {"acme": 2 * BATCH, "beta": 10}
    assert len(turns) == -(-(2 * BATCH + 10) // INSTANCES_PER_TURN)


@pytest.mark.req("SEQ-LIM-5")
def test_tenants_with_work_waiting_move_alike_within_one_quantum(path):
    amounts = {"acme": 1_500, "beta": 1_200, "cyan": 900}
    sleeping_past_due(path, **amounts)
    with virtual(path) as engine:
        engine.run_until_idle()
    moved = Counter()
    for turn in turns_of(path, 2):
        waiting = [tenant for tenant in amounts if moved[tenant] < amounts[tenant]]
        moved += turn
        still = [moved[tenant] for tenant in waiting if moved[tenant] < amounts[tenant]]
        assert not still or max(still) - min(still) <= TENANT_QUANTUM
    assert moved == amounts


@pytest.mark.req("SEQ-LIM-5")
def test_a_tenant_that_comes_while_another_s_backlog_drains_is_served_in_the_next_turn(path):
    sleeping_past_due(path, acme=3_000)
    with virtual(path) as engine:
        first = engine.start(HOURLY, tenant="beta")
        second = engine.start(HOURLY, tenant="beta")
        assert state(engine, first) == state(engine, second) == "waiting"
        moved = rows(path, "journal", "count(*)", "seq = 2")[0][0]
        assert 0 < moved <= 2 * INSTANCES_PER_TURN
        engine.run_until_idle()
    assert sum(turns_of(path, 2), Counter()) == {"acme": 3_000, "beta": 2}


@pytest.mark.req("SEQ-LIM-5")
def test_a_batch_of_starts_of_one_tenant_does_not_hold_up_another_s(path):
    short = sequence("short", step("s", "noop"))
    with virtual(path, partitions=1) as engine:
        engine.start_many(short, range(5_000), tenant="acme")
        few = engine.start_many(short, range(10), tenant="beta")
        engine.advance(0)
        assert {state(engine, id) for id in few} == {"completed"}
    turns = turns_of(path, 1)
    assert turns[0]["beta"] == 10
    assert sum(turns, Counter()) == {"acme": 5_000, "beta": 10}
    assert len(turns) == 11


@pytest.mark.req("SEQ-LIM-5", "CORE-SCH-3")
def test_a_tenant_s_low_priority_moves_under_another_s_steady_critical_work(path):
    """One of every eight places is the lower priorities', and tenants share these too."""
    busy = sequence(
        "busy", wait("w", "1h"), loop("l", "true", step("s", "noop"), max_iterations=20_000)
    )
    with virtual(path, partitions=1) as engine:
        engine.start_many(busy, range(8), priority="Critical", tenant="acme")
        engine.start_many(HOURLY, range(40), priority="Low", tenant="acme")
        engine.start_many(HOURLY, range(3), priority="Low", tenant="beta")
        engine.advance(0)
    fall_due(path)
    turns = WriterSettings(max_instances_per_turn=4)
    with virtual(path, turns=turns) as engine:
        engine.run_until_idle()
    joined = "journal JOIN instance ON inst = instance.n"
    order = rows(path, joined, "tenant, prio", "seq > 1 ORDER BY pos")
    places = [at for at, row in enumerate(order) if row == ("beta", 0)]
    assert len(places) == 3
    for older, place in enumerate(places):
        assert place < 2 * LOWER_SLOT * (older + 1 + TENANT_QUANTUM)
    assert order[-1] == ("acme", 3)


@pytest.mark.req("SEQ-LIM-5", "CORE-SCH-2")
def test_the_same_tenants_and_instances_give_the_same_turns(tmp_path):
    found = []
    for name in ("one.db", "two.db"):
        sleeping_past_due(tmp_path / name, acme=700, beta=600, cyan=30)
        with virtual(tmp_path / name) as engine:
            engine.run_until_idle()
        found.append(rows(tmp_path / name, "turn", "n, tick, root", "1 ORDER BY n"))
    assert found[0] == found[1]
