"""Leases and fences: who may write, for how long, and what the loser is told."""

from __future__ import annotations

import pytest

from detent.kernel.chain import GENESIS
from detent.model.errors import StoreError
from detent.ports.store import Meta
from tests.conformance.adapters import NEW, PARTITIONS
from tests.conformance.world import LEASE_MS, World, a_change, an_owner, everything

ALL = range(PARTITIONS)


def test_what_a_store_is_created_with_can_be_read(store):
    meta = store.meta()
    assert meta == Meta(
        meta.schema, "the-store", NEW.epoch_ms, NEW.resolution_ms, "wall", PARTITIONS
    )
    assert meta.schema >= 1


def test_a_fresh_store_has_free_partitions_at_the_start_of_their_chains(store):
    assert [row.p for row in store.partitions()] == list(ALL)
    assert {(row.owner, row.turn, row.tick, row.root) for row in store.partitions()} == {
        ("", 0, 0, GENESIS)
    }
    assert store.owners() == []


def test_free_partitions_are_taken_with_a_new_epoch(store):
    before = {row.p: row.fence_epoch for row in store.partitions()}
    taken = store.acquire(an_owner(), [2, 1], now_ms=10, lease_until_ms=500)
    assert [row.p for row in taken] == [1, 2]
    assert {row.fence_epoch - before[row.p] for row in taken} == {1}
    assert {row.lease_until_ms for row in taken} == {500}
    assert [row.owner for row in store.partitions()] == ["", "owner-a", "owner-a", ""]
    assert store.owners() == [an_owner(lease_until_ms=500)]


def test_a_valid_lease_is_respected_and_its_owner_named(store):
    store.acquire(an_owner("owner-a"), ALL, now_ms=0, lease_until_ms=500)
    before = everything(store)
    with pytest.raises(StoreError) as refusal:
        store.acquire(an_owner("owner-b"), ALL, now_ms=499, lease_until_ms=900)
    assert refusal.value.code == "store.owned"
    assert (refusal.value.details["host"], refusal.value.details["pid"]) == (
        "host-of-owner-a",
        4711,
    )
    assert everything(store) == before


def test_an_expired_lease_is_taken_over_with_the_chain_intact(world, store):
    world.commit(a_change("one", p=1))
    before = store.partitions()
    taken = store.acquire(an_owner("owner-b"), ALL, now_ms=LEASE_MS + 200, lease_until_ms=99_999)
    assert [row.owner for row in taken] == ["owner-b"] * PARTITIONS
    for old, new in zip(before, taken, strict=True):
        assert new.fence_epoch == old.fence_epoch + 1
        assert (new.turn, new.tick, new.root) == (old.turn, old.tick, old.root)


def test_only_the_partitions_that_are_free_are_given(store):
    store.acquire(an_owner("owner-a"), [0, 1], now_ms=0, lease_until_ms=500)
    taken = store.acquire(an_owner("owner-b"), ALL, now_ms=100, lease_until_ms=900)
    assert [row.p for row in taken] == [2, 3]
    assert [row.owner for row in store.partitions()] == ["owner-a"] * 2 + ["owner-b"] * 2


def test_an_owner_may_acquire_again_and_fences_its_former_self(world, store):
    stale = world.turn([a_change("one")])
    again = World(store)
    with pytest.raises(StoreError, match="taken over"):
        store.commit(stale)
    again.commit(a_change("one"))
    assert store.instance("one") is not None


@pytest.mark.req("CORE-SCH-5")
def test_renewal_moves_lease_and_tick_and_not_the_turn(world, store):
    fences = [(p, head[0]) for p, head in world.heads.items()]
    assert store.renew(an_owner(lease_until_ms=77_000), fences, tick=321)
    for row in store.partitions():
        assert (row.lease_until_ms, row.tick, row.turn) == (77_000, 321, 0)
    assert store.owners()[0].lease_until_ms == 77_000
    world.commit(a_change("one"))


def test_renewal_never_moves_a_tick_backwards(world, store):
    world.commit(a_change("one", p=0), tick=900)
    assert store.renew(world.owner, [(0, world.heads[0][0])], tick=5)
    assert store.partitions()[0].tick == 900


def test_renewal_of_a_lost_partition_is_refused_whole(world, store):
    fences = [(p, head[0]) for p, head in world.heads.items()]
    store.acquire(an_owner("owner-b"), [3], now_ms=LEASE_MS + 1, lease_until_ms=99_999)
    before = everything(store)
    assert store.renew(an_owner(lease_until_ms=77_000), fences, tick=321) is False
    assert everything(store) == before


def test_release_gives_everything_up_at_once(world, store):
    stale = world.turn([a_change("one")])
    store.release("owner-a")
    assert {(row.owner, row.lease_until_ms) for row in store.partitions()} == {("", 0)}
    assert store.owners() == []
    with pytest.raises(StoreError) as refusal:
        store.commit(stale)
    assert refusal.value.code == "store.fenced"
    assert len(store.acquire(an_owner("owner-b"), ALL, now_ms=1, lease_until_ms=2)) == PARTITIONS


@pytest.mark.req("CORE-SCH-4")
def test_some_partitions_can_be_given_up_and_the_rest_kept(world, store):
    stale, kept = world.turn([a_change("one", p=3)]), world.turn([a_change("two", p=0)])
    store.release("owner-a", [2, 3])
    assert [row.owner for row in store.partitions()] == ["owner-a", "owner-a", "", ""]
    assert [owner.id for owner in store.owners()] == ["owner-a"]
    with pytest.raises(StoreError) as refusal:
        store.commit(stale)
    assert refusal.value.code == "store.fenced"
    assert store.instance("one") is None
    store.commit(kept)
    assert store.instance("two") is not None
    taken = store.acquire(an_owner("owner-b"), ALL, now_ms=1, lease_until_ms=9_000)
    assert [row.p for row in taken] == [2, 3]


def test_an_owner_can_make_itself_known_without_a_partition(world, store):
    before = store.partitions()
    assert store.acquire(an_owner("owner-b"), (), now_ms=1, lease_until_ms=9_000) == []
    assert [owner.id for owner in store.owners()] == ["owner-a", "owner-b"]
    assert store.renew(an_owner("owner-b", lease_until_ms=9_500), [], tick=5)
    assert store.owners()[1].lease_until_ms == 9_500
    assert store.partitions() == before


def test_release_by_a_stranger_changes_nothing(world, store):
    before = everything(store)
    store.release("owner-b")
    assert everything(store) == before


def test_a_commit_renews_the_lease_of_the_partitions_it_touches(world, store):
    world.commit(a_change("one", p=2), tick=400)
    leases = {row.p: row.lease_until_ms for row in store.partitions()}
    assert leases == {0: LEASE_MS, 1: LEASE_MS, 2: LEASE_MS + 400, 3: LEASE_MS}
    assert store.owners()[0].lease_until_ms == LEASE_MS + 400


def test_owners_that_are_gone_are_forgotten(store):
    store.acquire(an_owner("owner-a"), ALL, now_ms=0, lease_until_ms=500)
    store.acquire(an_owner("owner-b"), ALL, now_ms=600, lease_until_ms=900)
    store.acquire(an_owner("owner-c"), ALL, now_ms=60_499, lease_until_ms=60_500)
    assert "owner-a" in [owner.id for owner in store.owners()]  # its calls may be running
    store.acquire(an_owner("owner-c"), ALL, now_ms=60_500, lease_until_ms=61_000)
    assert "owner-a" not in [owner.id for owner in store.owners()]
    assert [row.owner for row in store.partitions()] == ["owner-c"] * PARTITIONS
