"""A full disk, a file that is no store, a damaged one: told by code, and nothing is lost."""

from __future__ import annotations

import resource
import shutil
import threading
from contextlib import suppress

import apsw
import pytest

import detent
from detent import sequence, step, wait
from tests.acceptance.stage import digest, opened, refused, state, virtual

DOOR = sequence("door", wait("w", signal="go"), step("after", "noop"))
LARGE = {"text": "x" * 100_000}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def shrink_disk(engine, path):
    """From now on the writer's process cannot make any file larger."""
    size = max(file.stat().st_size for file in path.parent.iterdir())
    pid = engine._parts._link.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 4_096, resource.RLIM_INFINITY))


def grow_disk(engine):
    pid = engine._parts._link.pid
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)


@pytest.mark.req("CORE-REC-3")
def test_on_a_full_disk_callers_are_refused_outcomes_are_held_and_it_goes_on_with_room(path):
    called, release = [], threading.Event()

    @detent.handler
    def slow():
        called.append(1)
        release.wait(20)
        return {"text": "y" * 100_000}

    with detent.Engine(path, handlers=[slow], writer="process") as engine:
        busy = engine.start(sequence("busy", step("s", slow), step("after", "noop")))
        standing = engine.start(DOOR)
        while not called:
            pass
        shrink_disk(engine, path)
        for _ in range(3):
            with refused("store.full") as refusal:
                engine.start(DOOR, LARGE)
            assert "full" in refusal.value.message
        with refused("store.full"):
            engine.signal(standing, "go", LARGE)
        release.set()  # the outcome comes while there is no room
        with refused("store.full"):
            engine.start(DOOR, LARGE)
        assert state(engine, busy) == "running"
        assert state(engine, standing) == "waiting"
        assert len(engine.inspect.instances().items) == 2
        grow_disk(engine)
        assert engine.wait_for(busy) == "completed"
        assert len(called) == 1
        assert engine.inspect.show(busy).outputs["s"] == {"text": "y" * 100_000}
        engine.signal(standing, "go", LARGE)
        assert engine.wait_for(standing) == "completed"
        assert engine.inspect.verify().valid


@pytest.mark.req("CORE-REC-3")
def test_a_full_store_refuses_and_changes_nothing_and_an_effect_is_not_called_meanwhile(path):
    called = []

    @detent.handler
    def act():
        called.append(1)

    with virtual(path, [act]) as engine:
        engine.deploy(DOOR)
        instance = engine.start(sequence("s", wait("w", signal="go"), step("a", act)))
        connection = engine._parts._store._connection
        connection.pragma("max_page_count", connection.pragma("page_count") + 1)
        before = digest(path)
        with refused("store.full"):
            engine.signal(instance, "go", LARGE)
        with refused("store.full"):
            engine.start(DOOR, LARGE)
        with refused("store.full"):
            engine.start_many(DOOR, [LARGE] * 3)
        assert digest(path) == before
        assert called == []
        connection.pragma("max_page_count", 1_000_000)
        while state(engine, instance) == "waiting":
            with suppress(detent.StoreError):  # it tries again after a pause
                engine.signal(instance, "go", LARGE)
        assert engine.wait_for(instance) == "completed"
        assert called == [1]


def foreign(path):
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE t(x)")
        connection.execute("INSERT INTO t VALUES (42)")
    connection.close()


def text(path):
    path.write_text("This is a letter, not a database. " * 500)


def newer(path):
    with virtual(path):
        pass
    with opened(path, write=True) as connection:
        connection.pragma("user_version", 99)


def torn(path):
    with virtual(path) as engine:
        engine.start_many(DOOR, range(200))
        engine.advance(0)
    body = bytearray(path.read_bytes())
    for at in range(4_096, len(body), 4_096):
        body[at : at + 2_000] = b"\xde\xad" * 1_000
    path.write_bytes(bytes(body))


def headless(path):
    with virtual(path):
        pass
    path.write_bytes(b"\x00" * 100 + path.read_bytes()[100:])


FILES = {
    "store.corrupt": (foreign, text, torn, headless),
    "store.newer": (newer,),
}


@pytest.mark.req("CORE-REC-3")
@pytest.mark.parametrize(
    ("code", "make"),
    [(code, make) for code, makers in FILES.items() for make in makers],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_file_that_is_not_a_whole_store_of_ours_is_refused_and_left_as_it_is(path, code, make):
    make(path)
    before = path.read_bytes()
    with refused(code) as refusal:
        detent.Engine(path)
    assert str(path) in refusal.value.message
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_written_is_refused(path):
    with virtual(path):
        pass
    for place in (path / "below.db", path.parent, path.parent / "nowhere" / "x.db"):
        with refused("store.unavailable"):
            detent.Engine(place)


@pytest.mark.req("CORE-REC-3")
def test_one_damaged_snapshot_is_quarantined_and_the_others_go_on(path):
    with virtual(path) as engine:
        broken, whole = engine.start(DOOR), engine.start(DOOR)
    with opened(path, write=True) as connection:
        connection.execute(
            "UPDATE snapshot SET body = ? WHERE n = (SELECT n FROM instance WHERE id = ?)",
            (b'{"not": "a snapshot"', broken),
        )
    with virtual(path) as engine:
        with pytest.raises(detent.DetentError):
            engine.command(broken, "cancel")
        engine.signal(whole, "go")
        assert engine.wait_for(whole) == "completed"
        (listed,) = [each for each in engine.inspect.instances().items if each.id == broken]
        assert listed.state == "paused"
        assert engine.wait_for(engine.start(sequence("n", step("s", "noop")))) == "completed"


def test_a_copy_taken_while_the_engine_runs_is_refused_or_whole(path, tmp_path):
    """A copy without its write-ahead log is an older, whole store; never a broken one."""
    with detent.Engine(path) as engine:
        made = [engine.start(DOOR) for _ in range(50)]
        copy = tmp_path / "copy.db"
        shutil.copy(path, copy)
        assert len(engine.inspect.instances().items) == len(made)
    with detent.Engine(copy) as engine:
        assert engine.inspect.verify().valid
