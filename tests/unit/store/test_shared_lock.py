"""An OS lock taken by one connection and shared with the writers of the same engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from detent.model.errors import StoreError
from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_owner
from tests.unit.store.processes import PRELUDE, ROOT

ADOPT = """
store = open_store(path, create=None, lock_descriptor=int(sys.argv[2]))
World(store, an_owner("engine"), lease_until_ms=10**12).commit(a_change(sys.argv[3]))
say("owned")
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def writer(path, descriptor, change):
    """A process that writes under a lock it was given."""
    child = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + ADOPT, str(path), str(descriptor), change],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    assert child.stdout.readline().strip() == "owned"
    return child


def refused(path):
    other = open_store(path, create=None)
    with pytest.raises(StoreError) as refusal:
        World(other, an_owner("other"), now_ms=2 * 10**12)
    other.close()
    return refusal.value.code


@pytest.mark.req("CORE-SCH-4")
def test_a_dead_writer_does_not_free_the_lock_that_its_engine_holds(path):
    engine = open_store(path, create=NEW)
    descriptor = engine.hold_lock()
    assert engine.hold_lock() == descriptor
    for change in ("one", "two"):  # the second follows the first, under the same name
        with writer(path, descriptor, change) as child:
            child.send_signal(signal.SIGKILL)
        assert refused(path) == "store.owned"
        assert {row.owner for row in engine.partitions()} == {"engine"}
    engine.close()
    free = open_store(path, create=None)
    World(free, an_owner("other"), now_ms=5)
    free.close()


@pytest.mark.req("CORE-SCH-4")
def test_the_lock_is_held_until_the_writer_is_gone_too(path):
    engine = open_store(path, create=NEW)
    with writer(path, engine.hold_lock(), "one") as child:
        engine.close()
        assert refused(path) == "store.owned"
        child.stdin.close()
    free = open_store(path, create=None)
    World(free, an_owner("other"), now_ms=5)
    free.close()


def test_whoever_adopts_a_lock_voids_the_leases_of_others_and_keeps_its_own(path):
    dead = open_store(path, create=NEW)
    World(dead, an_owner("dead"), lease_until_ms=10**12)
    dead.close()  # its lease was not given up
    engine = open_store(path, create=None)
    for n in range(2):
        store = open_store(path, create=None, lock_descriptor=os.dup(engine.hold_lock()))
        store.acquire(an_owner("engine"), [0, 1], now_ms=1, lease_until_ms=10**12)
        assert [row.owner for row in store.partitions()] == ["engine", "engine", "", ""]
        assert [owner.id for owner in store.owners()] == ["engine"]
        World(store, an_owner("engine"), now_ms=2).commit(a_change(f"x-{n}"))
        store.release("engine")
        store.close()
        assert refused(path) == "store.owned"
    engine.close()


def test_a_store_that_cannot_be_opened_lets_go_of_the_lock_it_was_given(path, tmp_path):
    engine = open_store(path, create=NEW)
    given = os.dup(engine.hold_lock())
    with pytest.raises(StoreError):
        open_store(tmp_path / "nowhere" / "s.db", create=None, lock_descriptor=given)
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(given)
    engine.close()


def test_a_store_in_memory_has_no_lock_to_share():
    store = open_store(":memory:", create=NEW)
    assert store.hold_lock() == -1
    store.close()
