"""The OS lock: one owner per file, named to others, and gone the moment its process is."""

from __future__ import annotations

import os
import sys

import pytest

from detent.model.errors import StoreError
from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_owner
from tests.unit.store.processes import process, run, said

FAR_MS = 10**12
OWN = """
store = open_store(path, create=NEW)
owner = an_owner("other")._replace(pid=os.getpid(), host="there")
world = World(store, owner, lease_until_ms=10**12)
world.commit(a_change("theirs"))
"""
OWN_AND_WAIT = OWN + "say('owned')\nsys.stdin.readline()\n"
OWN_FORK_AND_DIE = (
    OWN
    + """
child = os.fork()
if child == 0:
    sys.stdin.readline()
    os._exit(0)
say("owned")
os.kill(os.getpid(), 9)
"""
)
ACQUIRE_AND_REPORT = """
try:
    World(open_store(path, create=None), an_owner("third"), now_ms=5)
    say("owned")
except Exception as error:
    say(error.code)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def test_a_store_owned_by_another_process_is_refused_by_name(path):
    with process(OWN_AND_WAIT, path) as other:
        assert said(other) == "owned"
        store = open_store(path, create=None)
        with pytest.raises(StoreError) as refusal:
            World(store, now_ms=2 * FAR_MS)  # even with its lease expired: it still exists
        assert refusal.value.code == "store.owned"
        assert refusal.value.details == {"owner": "other", "host": "there", "pid": other.pid}
        assert f"process {other.pid} on there" in refusal.value.message
        assert [row.owner for row in store.partitions()] == ["other"] * NEW.partitions
        store.close()


@pytest.mark.req("CORE-REC-1")
def test_a_killed_owner_is_taken_over_at_once_though_its_lease_runs(path):
    with process(OWN_AND_WAIT, path) as other:
        assert said(other) == "owned"
        other.kill()
        other.wait()
        store = open_store(path, create=None)
        assert store.owners()[0].lease_until_ms == FAR_MS
        world = World(store, now_ms=5)
        assert [owner.id for owner in store.owners()] == ["owner-a"]
        world.commit(world.next_change("theirs"))
        store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_child_of_a_dead_owner_does_not_hold_the_lock(path):
    with process(OWN_FORK_AND_DIE, path) as other:
        assert said(other) == "owned"
        other.wait()
        assert run(ACQUIRE_AND_REPORT, path) == "owned"
        other.stdin.close()


def test_two_stores_of_one_process_exclude_each_other(path):
    first, second = open_store(path, create=NEW), open_store(path, create=None)
    World(first)
    with pytest.raises(StoreError, match=r"store\.owned"):
        World(second, an_owner("owner-b"), now_ms=FAR_MS)
    first.close()
    World(second, an_owner("owner-b"), now_ms=1).commit(a_change("one"))
    second.close()


def test_release_frees_the_lock_and_the_store_can_own_again(path):
    first, second = open_store(path, create=NEW), open_store(path, create=None)
    World(first)
    first.release("owner-a")
    World(second, an_owner("owner-b"), now_ms=1)
    with pytest.raises(StoreError, match=r"store\.owned"):
        World(first)
    second.release("owner-b")
    World(first, now_ms=2).commit(a_change("one"))
    first.close()
    second.close()


def test_the_lock_stays_while_another_owner_of_the_store_has_partitions(path):
    first, second = open_store(path, create=NEW), open_store(path, create=None)
    first.acquire(an_owner("owner-a"), [0], 0, 100)
    first.acquire(an_owner("owner-b"), [1], 0, 100)
    first.release("owner-a")
    with pytest.raises(StoreError, match=r"store\.owned"):
        second.acquire(an_owner("owner-c"), [0], 1, 100)
    first.release("owner-b")
    second.acquire(an_owner("owner-c"), [0], 1, 100)
    first.close()
    second.close()


def test_a_store_that_only_reads_and_sends_takes_no_lock(path):
    with process(OWN_AND_WAIT, path) as other:
        assert said(other) == "owned"
        store = open_store(path, create=None)
        store.put_setting("a", "b")
        assert store.instance("theirs") is not None
        store.close()


def test_a_lock_file_that_cannot_be_made_is_told(path):
    store = open_store(path, create=NEW)
    os.mkdir(f"{path}.lock")  # noqa: PTH102
    with pytest.raises(StoreError, match=r"store\.unavailable"):
        World(store)
    assert [row.owner for row in store.partitions()] == [""] * NEW.partitions
    store.close()


def test_a_failed_acquire_gives_the_lock_back(path):
    first, second = open_store(path, create=NEW), open_store(path, create=None)
    with pytest.raises(StoreError, match=r"store\.owned"):
        first.acquire(an_owner(), [99], 0, 100)
    World(second)
    first.close()
    second.close()


def test_a_store_in_memory_has_no_lock():
    first, second = open_store(":memory:", create=NEW), open_store(":memory:", create=NEW)
    World(first).commit(a_change("one"))
    World(second).commit(a_change("one"))
    first.close()
    second.close()
