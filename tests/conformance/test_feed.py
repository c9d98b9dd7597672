"""The change feed: a tenant's moves in the order of their commits, at a cost of what is read."""

from __future__ import annotations

import pytest

from detent.ports.feed import FeedQuery
from tests.conformance.world import a_change


def moved(id, tenant="acme", namespace="sales", **more):
    birth = {"tenant": tenant, "namespace": namespace}
    return a_change(id, birth=birth, moved=tenant, body=b'{"of":"%b"}' % id.encode(), **more)


def read(store, tenant="acme", after=None, limit=100):
    return store.feed(FeedQuery(tenant, after or {}, limit))


def ids(page):
    return [row.instance for row in page.rows]


def test_rows_that_moved_come_in_the_order_of_their_commits(world, store):
    world.commit(moved("a", p=3), moved("b", p=1), tick=9)
    world.commit(moved("c", p=2), tick=4)  # another clock: what is committed later comes later
    page = read(store)
    assert sorted(ids(page)[:2]) == ["a", "b"]
    assert ids(page)[2:] == ["c"]
    assert [row.body for row in page.rows if row.instance == "c"] == [b'{"of":"c"}']
    assert {row.seq for row in page.rows} == {1}
    assert page.more is False


def test_rows_without_a_move_and_those_of_others_are_not_in_it(world, store):
    world.commit(moved("a"), a_change("still"), moved("theirs", tenant="other"))
    world.commit(moved("own", namespace="detent"))
    world.commit(world.next_change("a"))
    assert ids(read(store)) == ["a"]
    assert ids(read(store, "other")) == ["theirs"]
    assert ids(read(store, "nobody")) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_meet_and_reach_everything_once(world, store, limit):
    for i in range(7):
        world.commit(moved(f"id-{i}", p=i % 4), a_change(f"still-{i}", p=i % 4))
    seen, after, more = [], {}, True
    while more:
        page = read(store, after=after, limit=limit)
        seen += ids(page)
        assert len(page.rows) <= limit
        after, more = page.at, page.more
    assert sorted(seen) == [f"id-{i}" for i in range(7)]
    assert len(set(seen)) == 7
    world.commit(moved("late"))
    assert ids(read(store, after=after)) == ["late"]


def test_a_page_that_holds_only_the_engines_own_still_gets_on(world, store):
    world.commit(*[moved(f"own-{i}", namespace="detent") for i in range(4)])
    world.commit(moved("mine"))
    first = read(store, limit=2)
    assert (ids(first), first.more) == ([], True)
    second = read(store, after=first.at, limit=2)
    assert (ids(second), second.more) == ([], True)
    assert ids(read(store, after=second.at, limit=2)) == ["mine"]


def test_the_newest_position_of_every_lane_is_known(world, store):
    before = store.feed_ends()
    assert set(before.values()) == {0}
    world.commit(moved("a", p=0), moved("b", p=1))
    ends = store.feed_ends()
    assert set(ends) == set(before)
    assert ids(read(store, after=ends)) == []
    world.commit(moved("c", p=1))
    assert ids(read(store, after=ends)) == ["c"]
