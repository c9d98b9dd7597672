"""What a turn reads: due instances in turn order, open effects for recovery, snapshots."""

from __future__ import annotations

import random

import pytest

from detent.ports.store import Ready
from tests.conformance.world import a_change

HERE = range(4)


def waiting(world, *rows):
    """Commit instances of (id, priority, due, p)."""
    world.commit(*[a_change(id, priority=prio, due=due, p=p) for id, prio, due, p in rows])


@pytest.mark.req("CORE-SCH-2")
def test_the_order_is_priority_then_due_tick_then_id(world, store):
    rows = [(f"id-{i:03}", i % 4, i * 13 % 7, i % 4) for i in range(200)]
    random.Random(1).shuffle(rows)
    waiting(world, *rows)
    expected = sorted(rows, key=lambda row: (-row[1], row[2], row[0]))
    found = store.due(HERE, 10, 1_000)
    assert [(row.id, row.priority, row.due, row.p) for row in found] == expected
    assert found[0] == Ready(
        world.numbers[expected[0][0]], expected[0][0], expected[0][3], 3, expected[0][2]
    )
    for limit in (0, 1, 49, 51, 120):
        assert [row.id for row in store.due(HERE, 10, limit)] == [
            row[0] for row in expected[:limit]
        ]


def test_priorities_outside_the_usual_range_keep_their_order(world, store):
    waiting(world, ("low", -5, 1, 0), ("high", 1_000, 9, 0), ("normal", 1, 1, 0))
    assert [row.id for row in store.due(HERE, 10, 10)] == ["high", "normal", "low"]


def test_nothing_is_due_before_its_tick(world, store):
    waiting(world, ("one", 1, 10, 0), ("two", 3, 11, 0))
    assert store.due(HERE, 9, 10) == []
    assert [row.id for row in store.due(HERE, 10, 10)] == ["one"]
    assert [row.id for row in store.due(HERE, 11, 10)] == ["two", "one"]


def test_instances_without_a_due_tick_never_come(world, store):
    waiting(world, ("one", 1, None, 0), ("two", 1, 5, 0))
    world.commit(world.next_change("two", due=None))
    assert store.due(HERE, 2**62, 10) == []
    assert store.next_due(HERE) is None


def test_only_the_partitions_asked_for_are_looked_at(world, store):
    waiting(world, *[(f"id-{p}", p, 10 + p, p) for p in HERE])
    assert [row.id for row in store.due([0, 2], 100, 10)] == ["id-2", "id-0"]
    assert store.next_due([1, 3]) == 11
    assert store.next_due(HERE) == 10
    assert store.next_due([]) is None
    assert store.due([], 100, 10) == []


def test_the_next_due_tick_is_the_earliest_of_all_priorities(world, store):
    assert store.next_due(HERE) is None
    waiting(world, ("one", 3, 50, 0), ("two", 0, 20, 1), ("three", 1, 30, 2))
    assert store.next_due(HERE) == 20


def test_instances_with_open_effects_are_found_by_number(world, store):
    ids = [f"id-{i}" for i in range(12)]
    world.commit(*[a_change(id, p=i % 4, busy=i % 2 == 0) for i, id in enumerate(ids)])
    busy = [world.numbers[id] for id in ids[::2]]
    assert store.busy(HERE, 0, 100) == busy
    assert store.busy(HERE, 0, 2) == busy[:2]
    assert store.busy(HERE, busy[1], 2) == busy[2:4]
    assert store.busy([0], 0, 100) == busy[::2]
    world.commit(world.next_change(ids[0], busy=False), world.next_change(ids[1], busy=True))
    assert store.busy(HERE, 0, 100) == [world.numbers[ids[1]], *busy[1:]]


def test_loading_gives_what_exists_and_passes_over_the_rest(world, store):
    world.commit(a_change("one"), a_change("two"))
    assert sorted(store.load(["two", "none", "one", "two"])) == ["one", "two"]
    assert store.load([]) == {}
    numbers = [world.numbers["two"], 999, world.numbers["one"]]
    assert [row.id for row in store.load_numbers(numbers)] == ["two", "one"]
    assert store.load_numbers([]) == []


def test_the_head_loaded_is_the_newest_of_the_chain(world, store):
    world.commit(a_change("one"), a_change("two"))
    for _ in range(5):
        world.commit(world.next_change("one"))
    journal = store.journal(world.numbers["one"], 0, 100)
    loaded = store.load(["one"])["one"]
    assert loaded.head == journal[-1].head != journal[0].head
    assert loaded.version == journal[-1].seq == 6


def test_many_are_loaded_at_once(world, store):
    ids = [f"id-{i:03}" for i in range(333)]
    world.commit(*[a_change(id) for id in ids])
    assert sorted(store.load(ids)) == ids
    numbers = [world.numbers[id] for id in reversed(ids)]
    assert [row.n for row in store.load_numbers(numbers)] == numbers
