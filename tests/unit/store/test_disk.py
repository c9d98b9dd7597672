"""A disk that is full, a file that is busy, a process that is killed: nothing is half done."""

from __future__ import annotations

import sys

import apsw
import pytest

from detent.kernel.chain import GENESIS, root_of
from detent.model.errors import StoreError
from detent.store.sqlite import open_store
from detent.store.sqlite.statements import ManyKeys, ManyRows, wait_for_lock
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_arrival, everything
from tests.unit.store.processes import process, run, said

WRITE_PAST_THE_LIMIT = """
import resource, signal
from pathlib import Path

store = open_store(path, create=NEW)
world = World(store)
world.commit(a_change("one"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
written = Path(path + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (written + 5_000, resource.RLIM_INFINITY))
before = everything(store)
try:
    store.commit(world.turn([a_change("two", snapshot=b"s" * 100_000)]))
    say("written")
except Exception as error:
    say(error.code)
say(everything(store) == before)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
world.commit(a_change("two", snapshot=b"s" * 100_000))
say(store.check(), store.load(["two"])["two"].version)
"""
COMMIT_FOR_EVER = """
store = open_store(path, create=NEW)
world = World(store)
world.commit(*[a_change(f"instance-{i}", p=i % 4) for i in range(50)])
while True:
    world.commit(*[world.next_change(f"instance-{i}") for i in range(50)])
    say(world.heads[0][1])
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = open_store(path, create=NEW)
    yield store
    store.close()


@pytest.mark.req("CORE-REC-3")
def test_a_full_disk_is_told_and_nothing_changed(store):
    world = World(store)
    world.commit(a_change("one"))
    connection = store._connection
    connection.pragma("max_page_count", connection.pragma("page_count") + 2)
    before = everything(store)
    big = [a_change(f"big-{i}", snapshot=b"s" * 9_000) for i in range(10)]
    for _ in range(2):
        with pytest.raises(StoreError) as refusal:
            store.commit(world.turn(big))
        assert refusal.value.code == "store.full"
        assert everything(store) == before
    with pytest.raises(StoreError, match=r"store\.full"):
        store.enqueue([an_arrival("arrival-1", body=b"s" * 50_000)], 1)
    assert everything(store) == before
    connection.pragma("max_page_count", 1_000_000)
    world.commit(*big)
    assert store.load(["big-9"])["big-9"].body == b"s" * 9_000
    assert store.check() == []


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file size")
def test_a_write_the_system_does_not_take_is_told_as_a_full_disk(path):
    assert run(WRITE_PAST_THE_LIMIT, path).splitlines() == ["store.full", "True", "[] 1"]


def blocked_for(store, rounds):
    """Another connection holds the write lock until the store has asked that many times."""
    other = apsw.Connection(store._connection.filename)
    other.execute("BEGIN IMMEDIATE")
    asked = []

    def handler(_count):
        asked.append(1)
        if len(asked) == rounds:
            other.execute("ROLLBACK")
        return False

    store._connection.set_busy_handler(handler)
    return other


def test_waiting_for_the_write_lock_is_not_an_error(store):
    world = World(store)
    other = blocked_for(store, rounds=5)
    world.commit(a_change("one"))
    other.close()
    assert store.instance("one") is not None


def test_the_lock_is_looked_for_often_and_not_for_ever():
    assert wait_for_lock(0) is True
    assert wait_for_lock(5_999) is True
    assert wait_for_lock(6_000) is False


def test_a_write_lock_that_never_comes_is_told_and_nothing_changed(store):
    world = World(store)
    before = everything(store)
    other = blocked_for(store, rounds=1_000_000)
    with pytest.raises(StoreError) as refusal:
        store.commit(world.turn([a_change("one")]))
    assert refusal.value.code == "store.unavailable"
    assert "Busy" in refusal.value.details["sqlite"]
    other.execute("ROLLBACK")
    other.close()
    assert everything(store) == before
    world.commit(a_change("one"))


@pytest.mark.req("CORE-REC-1")
def test_a_writer_killed_at_work_has_lost_nothing_it_told(path):
    with process(COMMIT_FOR_EVER, path) as writer:
        for _ in range(20):
            told = int(said(writer))
        writer.kill()
        writer.wait()
    store = open_store(path, create=None)
    assert store.check() == []
    loaded = store.load([f"instance-{i}" for i in range(50)])
    versions = {row.version for row in loaded.values()}
    assert len(versions) == 1
    version = versions.pop()
    assert version >= told
    for row in loaded.values():
        journal = store.journal(row.n, 0, 10**6)
        assert [entry.seq for entry in journal] == list(range(1, version + 1))
        assert journal[-1].head == row.head
    for head in store.partitions():
        root = GENESIS
        for turn in store.turns(head.p, 0, 10**6):
            root = root_of(root, turn.p, turn.n, turn.tick, turn.heads)
            assert root == turn.root
        assert (head.turn, head.root) == (version, root)
    world = World(store, now_ms=1)
    world.commit(world.next_change("instance-0"))
    store.close()


def test_statements_over_rows_and_keys_take_any_number():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE thing(a INTEGER PRIMARY KEY, b TEXT) STRICT")
    insert = ManyRows("INSERT INTO thing(a, b) VALUES", "(?, ?)")
    back = ManyRows("INSERT INTO thing(a, b) VALUES", "(?, ?)", "RETURNING a")
    select = ManyKeys("SELECT a FROM thing WHERE a IN ($keys)")
    for count in (0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 200):
        connection.execute("DELETE FROM thing")
        rows = [value for a in range(count) for value in (a, f"row {a}")]
        assert insert.run(connection, rows) == count
        assert sorted(row[0] for row in select.fetch(connection, range(count))) == list(
            range(count)
        )
        connection.execute("DELETE FROM thing")
        assert [row[0] for row in back.fetch(connection, rows)] == list(range(count))
    connection.close()
