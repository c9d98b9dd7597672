"""Checkpoints: the WAL stays short while the writer works, and no row is lost by it."""

from __future__ import annotations

import pytest

from detent.store.sqlite import open_store
from detent.store.sqlite.checkpoint import Checkpointer, copy_wal, open_copier
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, everything

PAGE = 4_096


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = open_store(path, create=NEW)
    yield store
    store.close()


def test_a_copier_copies_what_is_committed_while_the_writer_is_open(store, path):
    world = World(store)
    world.commit(*[a_change(f"id-{i}", snapshot=b"s" * 3_000) for i in range(50)])
    size = path.stat().st_size
    copier = open_copier(str(path))
    assert copy_wal(copier) > 40
    copier.close()
    assert path.stat().st_size > size + 40 * PAGE
    world.commit(world.next_change("id-1"))


def test_the_wal_stays_short_under_steady_commits(store, path):
    world = World(store)
    store._checkpointer.close()
    store._checkpointer = Checkpointer(store._connection, limit=60)
    world.commit(*[a_change(f"id-{i}", p=i % 4) for i in range(40)])
    for _ in range(150):
        world.commit(*[world.next_change(f"id-{i}") for i in range(40)])
        # Let the thread do its part, so that the length does not depend on the machine.
        while store._checkpointer._phase == 1:
            store.setting("none")
    pages = path.with_name("store.db-wal").stat().st_size / PAGE
    assert pages < 200
    assert store.check() == []
    assert {row.version for row in store.load([f"id-{i}" for i in range(40)]).values()} == {151}


def test_a_checkpoint_on_demand_empties_the_wal(store, path):
    world = World(store)
    world.commit(a_change("one"))
    before = everything(store)
    store.checkpoint()
    assert path.with_name("store.db-wal").stat().st_size == 0
    assert everything(store) == before


def test_closing_the_last_connection_leaves_one_file_and_the_lock(store, path):
    World(store).commit(a_change("one"))
    store.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["store.db", "store.db.lock"]
