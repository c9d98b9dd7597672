"""The fence: a writer that was overtaken changes nothing, and learns whether it committed."""

from __future__ import annotations

import pytest

from detent.model.errors import InvariantViolation, StoreError
from tests.conformance.world import LEASE_MS, World, a_change, an_arrival, an_owner, everything

LATER_MS = LEASE_MS + 10_000


def refused(store, commit):
    with pytest.raises(StoreError) as refusal:
        store.commit(commit)
    return refusal.value


@pytest.mark.req("CORE-SCH-4", "CORE-SCH-5")
def test_a_stale_writer_changes_nothing_after_a_takeover(world, store):
    world.commit(a_change("one", p=1))
    stale = world.turn([world.next_change("one"), a_change("two", p=2)], taken=[("id-1", None)])
    World(store, an_owner("owner-b"), now_ms=LATER_MS, lease_until_ms=2 * LATER_MS)
    before = everything(store)
    refusal = refused(store, stale)
    assert refusal.code == "store.fenced"
    assert refusal.details["partitions"] == [1, 2]
    assert everything(store) == before


@pytest.mark.req("CORE-SCH-5")
def test_a_stale_writer_on_a_connection_of_its_own_changes_nothing(store_factory):
    first = store_factory()
    old = World(first)
    old.commit(a_change("one"))
    stale = old.turn([old.next_change("one")])
    first.release("owner-a")
    second = store_factory()
    new = World(second, an_owner("owner-b"), now_ms=1)
    new.commit(new.next_change("one", body=b"of the new writer"))
    before = everything(second)
    assert refused(first, stale).code == "store.fenced"
    assert everything(second) == before
    new.commit(new.next_change("one"))


def test_one_lost_partition_fails_the_whole_commit_and_is_named(world, store):
    commit = world.turn([a_change("one", p=0), a_change("two", p=3)])
    store.acquire(an_owner("owner-b"), [3], now_ms=LATER_MS, lease_until_ms=2 * LATER_MS)
    before = everything(store)
    refusal = refused(store, commit)
    assert (refusal.code, refusal.details["partitions"]) == ("store.fenced", [3])
    assert refusal.details["stored"][0]["owner"] == "owner-b"
    assert everything(store) == before
    world.commit(a_change("one", p=0))


def test_the_same_commit_twice_is_fenced_and_the_head_tells_that_it_happened(world, store):
    """After a lost answer: the turn read back is the one written, with the root of that commit."""
    commit = world.turn([a_change("one")])
    assert store.partitions()[0].turn == commit.partitions[0].turn
    store.commit(commit)
    before = everything(store)
    assert refused(store, commit).code == "store.fenced"
    assert everything(store) == before
    head = store.partitions()[0]
    assert (head.turn, head.root) == (commit.partitions[0].turn + 1, commit.partitions[0].root)


def test_a_turn_number_ahead_of_the_store_is_fenced(world, store):
    commit = world.turn([a_change("one")])
    ahead = commit._replace(partitions=[commit.partitions[0]._replace(turn=1)])
    before = everything(store)
    assert refused(store, ahead).code == "store.fenced"
    assert everything(store) == before


def test_a_partition_that_does_not_exist_is_fenced(world, store):
    commit = world.turn([a_change("one")])
    row = commit.partitions[0]._replace(p=999)
    assert refused(store, commit._replace(partitions=[row], changes=())).code == "store.fenced"


def test_nothing_is_written_outside_the_fenced_partitions(world, store):
    before = everything(store)
    commit = world.turn([a_change("one", p=0)])
    with pytest.raises(InvariantViolation):
        store.commit(commit._replace(changes=[a_change("one", p=1)]))
    with pytest.raises(InvariantViolation):
        store.commit(commit._replace(changes=(), partitions=()))
    assert everything(store) == before


def test_a_turn_may_touch_a_partition_without_changing_an_instance(world, store):
    store.enqueue([an_arrival("arrival-1")], 1)
    world.commit(touching=[0, 2], taken=[("arrival-1", None)])
    assert [row.turn for row in store.partitions()] == [1, 0, 1, 0]
    assert store.turns(2, 0, 10)[0].heads == b""
    assert store.arrivals([0], 10) == []
