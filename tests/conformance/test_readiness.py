"""What a turn reads: due instances stretch by stretch, open effects for recovery, snapshots."""

from __future__ import annotations

import random

import pytest

from detent.ports.due import DuePage, DueQuery, Ready, Stretch
from tests.conformance.world import a_change

HERE = range(4)
START = (-1, "")


def waiting(world, *rows):
    """Commit instances of (id, tenant, priority, due, p)."""
    changes = [
        a_change(id, priority=priority, due=due, p=p, birth={"tenant": tenant})
        for id, tenant, priority, due, p in rows
    ]
    world.commit(*changes)


def due(store, tenant, priority, tick, *, after=START, limit=10, here=HERE):
    """The ids that are due of one stretch."""
    (page,) = store.due(here, tick, [DueQuery(tenant, priority, after, limit)])
    return [row.id for row in page.rows]


@pytest.mark.req("CORE-SCH-2")
def test_a_line_is_read_by_due_tick_then_id_and_says_when_more_is_due(world, store):
    rows = [(f"id-{i:03}", "acme", 1, i * 13 % 7, i % 4) for i in range(200)]
    random.Random(1).shuffle(rows)
    waiting(world, *rows)
    expected = sorted((row for row in rows if row[3] <= 4), key=lambda row: (row[3], row[0]))
    (page,) = store.due(HERE, 4, [DueQuery("acme", 1, START, 1_000)])
    assert [(row.id, row.due, row.p) for row in page.rows] == [
        (id, tick, p) for id, _, _, tick, p in expected
    ]
    first, _, _, tick, p = expected[0]
    assert page.rows[0] == Ready(world.numbers[first], first, p, "acme", 1, tick)
    assert page.next == 5
    for limit in (0, 1, 49, 51, 120):
        assert due(store, "acme", 1, 4, limit=limit) == [row[0] for row in expected[:limit]]


def test_a_line_is_read_on_from_where_it_was_left(world, store):
    rows = [(f"id-{i:02}", "acme", 1, i // 10, i % 4) for i in range(50)]
    waiting(world, *rows)
    seen, after = [], START
    while found := due(store, "acme", 1, 3, after=after, limit=7):
        seen += found
        number = int(found[-1][3:])
        after = (number // 10, found[-1])
    assert seen == [row[0] for row in rows[:40]]
    assert due(store, "acme", 1, 3, after=(2, "")) == [row[0] for row in rows[20:30]]
    assert due(store, "acme", 1, 3, after=(4, "")) == []


@pytest.mark.req("SEQ-LIM-5")
def test_no_line_is_in_the_way_of_another(world, store):
    crowd = [(f"a-{i:03}", "acme", 1, 1, i % 4) for i in range(300)]
    few = [("b-1", "beta", 1, 9, 0), ("b-2", "beta", 3, 9, 1), ("a-urgent", "acme", 3, 9, 2)]
    waiting(world, *crowd, *few)
    queries = [
        DueQuery("beta", 1, START, 2),
        DueQuery("acme", 1, START, 2),
        DueQuery("nobody", 1, START, 2),
        DueQuery("acme", 3, START, 2),
        DueQuery("beta", 3, START, 2),
    ]
    pages = store.due(HERE, 9, queries)
    assert [[row.id for row in page.rows] for page in pages] == [
        ["b-1"],
        ["a-000", "a-001"],
        [],
        ["a-urgent"],
        ["b-2"],
    ]
    assert store.due(HERE, 9, []) == []


def test_every_line_is_listed_once_with_its_earliest_due_tick(world, store):
    assert store.stretches(HERE) == []
    waiting(
        world,
        ("one", "beta", 3, 50, 0),
        ("two", "acme", 0, 20, 1),
        ("three", "acme", 0, 30, 2),
        ("four", "acme", 2, 10, 2),
        ("five", "", 1, 7, 3),
        ("six", "gamma", 1, None, 3),
    )
    assert store.stretches(HERE) == [
        Stretch("", 1, 7),
        Stretch("acme", 0, 20),
        Stretch("acme", 2, 10),
        Stretch("beta", 3, 50),
    ]
    world.commit(world.next_change("two", due=None), world.next_change("one", due=None))
    assert store.stretches(HERE) == [
        Stretch("", 1, 7),
        Stretch("acme", 0, 30),
        Stretch("acme", 2, 10),
    ]


def test_tenants_and_priorities_of_any_kind_have_lines_of_their_own(world, store):
    tenants = ["a", "A", "a b", "\u00e9", "zz", "a\U0001f600"]
    rows = [
        (f"{at}-{priority}", tenant, priority, 5, at % 4)
        for at, tenant in enumerate(tenants)
        for priority in (-5, 0, 1_000)
    ]
    waiting(world, *rows)
    assert sorted(store.stretches(HERE)) == sorted(Stretch(row[1], row[2], 5) for row in rows)
    for id, tenant, priority, _, _ in rows:
        assert due(store, tenant, priority, 5) == [id]


def test_an_instance_that_changes_its_priority_changes_its_line(world, store):
    waiting(world, ("one", "acme", 1, 10, 0))
    world.commit(world.next_change("one", priority=3))
    assert due(store, "acme", 1, 10) == []
    assert due(store, "acme", 3, 10) == ["one"]
    assert store.stretches(HERE) == [Stretch("acme", 3, 10)]


def test_nothing_is_due_before_its_tick(world, store):
    waiting(world, ("one", "acme", 1, 10, 0), ("two", "acme", 1, 11, 0))
    query = DueQuery("acme", 1, START, 10)
    assert store.due(HERE, 9, [query]) == [DuePage([], 10)]
    assert due(store, "acme", 1, 10) == ["one"]
    assert due(store, "acme", 1, 11) == ["one", "two"]
    assert [page.next for page in store.due(HERE, 10, [query])] == [11]
    assert [page.next for page in store.due(HERE, 11, [query])] == [None]


def test_a_page_that_is_not_full_tells_when_more_will_be_due(world, store):
    waiting(world, *[(f"id-{i}", "acme", 1, i, 0) for i in range(5)])
    found = [store.due(HERE, 2, [DueQuery("acme", 1, START, limit)])[0] for limit in (1, 3, 4)]
    assert [(len(page.rows), page.next) for page in found] == [(1, None), (3, 3), (3, 3)]
    assert store.due(HERE, 2, [DueQuery("acme", 1, (3, ""), 1)]) == [DuePage([], 3)]
    assert store.due(HERE, 2, [DueQuery("acme", 1, (9, ""), 1)]) == [DuePage([], None)]


def test_instances_without_a_due_tick_never_come(world, store):
    waiting(world, ("one", "acme", 1, None, 0), ("two", "acme", 1, 5, 0))
    world.commit(world.next_change("two", due=None))
    assert due(store, "acme", 1, 2**62) == []
    assert store.stretches(HERE) == []
    assert store.next_due(HERE) is None


def test_only_the_partitions_asked_for_are_looked_at(world, store):
    waiting(world, *[(f"id-{p}", "acme", 1, 10 + p, p) for p in HERE])
    assert due(store, "acme", 1, 100, here=[0, 2]) == ["id-0", "id-2"]
    assert [page.next for page in store.due([0, 2], 10, [DueQuery("acme", 1, START, 9)])] == [12]
    assert store.stretches([1, 3]) == [Stretch("acme", 1, 11)]
    assert store.next_due([1, 3]) == 11
    assert store.next_due(HERE) == 10
    assert store.next_due([]) is None
    assert store.stretches([]) == []
    assert due(store, "acme", 1, 100, here=[]) == []


def test_the_next_due_tick_is_the_earliest_of_all_lines(world, store):
    assert store.next_due(HERE) is None
    waiting(
        world, ("one", "acme", 3, 50, 0), ("two", "beta", 0, 20, 1), ("three", "acme", 1, 30, 2)
    )
    assert store.next_due(HERE) == 20


def test_a_due_tick_of_the_engines_own_keeps_nobody_busy(world, store):
    assert not store.any_due(HERE)
    world.commit(a_change("own", p=1, due=10, birth={"namespace": "detent"}))
    assert (store.next_due(HERE), store.any_due(HERE)) == (10, False)
    world.commit(a_change("one", p=2, due=20))
    assert store.any_due(HERE)
    assert not store.any_due([1])
    world.commit(world.next_change("one", due=None))
    assert not store.any_due(HERE)


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
    assert loaded.tenant == "acme"
    assert loaded.head == journal[-1].head != journal[0].head
    assert loaded.version == journal[-1].seq == 6


def test_many_are_loaded_at_once(world, store):
    ids = [f"id-{i:03}" for i in range(333)]
    world.commit(*[a_change(id) for id in ids])
    assert sorted(store.load(ids)) == ids
    numbers = [world.numbers[id] for id in reversed(ids)]
    assert [row.n for row in store.load_numbers(numbers)] == numbers
