"""Opening a store: what is made, what is migrated, and what is refused with its reason."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from importlib import resources
from pathlib import Path

import apsw
import pytest

from detent.model.errors import StoreError
from detent.store.sqlite import open_store
from detent.store.sqlite.schema import APPLICATION_ID, migrate, migrations
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_arrival, everything
from tests.unit.store.processes import process, run, said

CREATE_AND_REPORT = """
try:
    open_store(path, create=NEW).close()
    say("made")
except Exception as error:
    say(getattr(error, "code", repr(error)))
"""

# A store in memory first: what it imports may lie where nobody cannot read.
BECOME_NOBODY = """
open_store(":memory:", create=NEW).close()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def refusal(path, **options):
    with pytest.raises(StoreError) as refused:
        open_store(path, **{"create": NEW, **options})
    assert str(path) in refused.value.message
    return refused.value.code


def a_store(path, commits=1):
    store = open_store(path, create=NEW)
    world = World(store)
    for number in range(commits):
        world.commit(a_change(f"instance-{number}", snapshot=b"s" * 2_000))
    store.close()


def test_a_new_store_has_the_newest_schema_and_is_ours(path):
    open_store(path, create=NEW).close()
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert raw.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    tables = raw.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
    lax = [name for name, strict in tables if not strict and not name.startswith("sqlite_")]
    raw.close()
    assert lax == []


def test_a_connection_is_durable_before_anything_else(path):
    store = open_store(path, create=NEW)
    pragmas = {
        name: store._connection.pragma(name)
        for name in ("synchronous", "foreign_keys", "journal_mode", "page_size")
    }
    store.close()
    assert pragmas == {
        "synchronous": 2,
        "foreign_keys": 0,
        "journal_mode": "wal",
        "page_size": 4_096,
    }


def test_opening_again_keeps_what_was_fixed(path):
    a_store(path)
    store = open_store(path, create=NEW._replace(store_id="other", partitions=9))
    meta = store.meta()
    assert (meta.store_id, meta.partitions) == ("the-store", NEW.partitions)
    assert len(store.partitions()) == NEW.partitions
    assert store.instance("instance-0") is not None
    store.close()


def test_an_empty_file_becomes_a_store_only_when_asked(path):
    path.touch()
    assert refusal(path, create=None) == "store.corrupt"
    assert path.stat().st_size == 0
    open_store(path, create=NEW).close()


def test_migrations_are_numbered_without_gaps():
    place = resources.files("detent.store.sqlite") / "migrations"
    names = sorted(file.name for file in place.iterdir() if file.name.endswith(".sql"))
    assert names == [f"{number:04}.sql" for number in range(1, len(migrations()) + 1)]
    assert names


def test_a_later_migration_is_applied_once_to_an_older_store(path):
    a_store(path)
    scripts = [*migrations(), "CREATE TABLE later(one TEXT) STRICT; INSERT INTO later VALUES ('x')"]
    connection = apsw.Connection(str(path))
    migrate(connection, scripts, NEW)  # as given to every opening; the store keeps its own row
    migrate(connection, scripts, None)
    assert connection.execute("SELECT one FROM later").fetchall() == [("x",)]
    assert connection.pragma("user_version") == len(scripts)
    assert connection.execute("SELECT count(*) FROM instance").get == 1
    connection.close()
    assert refusal(path) == "store.newer"


def test_a_migration_that_fails_leaves_the_store_as_it_was(path):
    a_store(path)
    connection = apsw.Connection(str(path))
    with pytest.raises(apsw.SQLError):
        migrate(connection, [*migrations(), "CREATE TABLE later(one TEXT); nonsense"], None)
    assert connection.pragma("user_version") == len(migrations())
    assert not connection.table_exists("main", "later")
    connection.close()
    open_store(path, create=None).close()


def test_a_store_of_a_newer_release_is_refused_and_not_touched(path):
    a_store(path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = path.read_bytes()
    assert refusal(path) == "store.newer"
    assert refusal(path, create=None, read_only=True) == "store.newer"
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_not_touched(path):
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE instance(id TEXT)")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    assert refusal(path) == "store.corrupt"
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_touched(path):
    path.write_bytes(b"This is a letter, and a long one.\n" * 500)
    before = path.read_bytes()
    assert refusal(path) == "store.corrupt"
    assert path.read_bytes() == before


def test_a_truncated_store_is_refused(path):
    a_store(path, commits=30)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(path) == "store.corrupt"


def test_a_store_that_lost_its_own_row_is_refused(path):
    a_store(path)
    raw = sqlite3.connect(path)
    raw.execute("DELETE FROM store")
    raw.commit()
    raw.close()
    assert refusal(path) == "store.corrupt"


def test_damage_inside_is_found_by_the_check(path):
    a_store(path, commits=160)
    body = bytearray(path.read_bytes())
    page = 4_096
    for number in range(len(body) // page * 2 // 3, len(body) // page):
        body[number * page : number * page + 64] = b"\xff" * 64
    path.write_bytes(body)
    store = open_store(path, create=None)
    problems = store.check()
    store.close()
    assert problems


def test_a_store_that_is_not_there_is_told(path):
    assert refusal(path, create=None) == "store.unavailable"
    assert not path.exists()
    assert refusal(path, read_only=True) == "store.unavailable"
    assert not path.exists()


def test_a_directory_that_is_not_there_or_is_a_file_is_told(path):
    path.touch()
    assert refusal(path.parent / "none" / "store.db") == "store.unavailable"
    assert refusal(path / "store.db") == "store.unavailable"
    assert refusal(path.parent) == "store.unavailable"


def test_a_directory_without_the_right_to_write_is_told():
    script = CREATE_AND_REPORT
    if os.geteuid() == 0:  # root may write everywhere, so the other process becomes nobody
        script = f"{BECOME_NOBODY}{script}"
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o777)
        if run(script, place / "open.db") != "made":
            pytest.skip("the temporary directory cannot be reached without root's rights")
        place.chmod(0o555)
        assert run(script, place / "closed.db") == "store.unavailable"
        assert not (place / "closed.db").exists()
        place.chmod(0o755)


def test_a_store_opened_for_reading_reads_and_does_not_write(path):
    a_store(path)
    writer = open_store(path, create=None)
    reader = open_store(path, create=None, read_only=True)
    before = everything(reader)
    for write in (
        lambda: reader.put_setting("a", "b"),
        lambda: reader.enqueue([an_arrival("arrival-1")], 1),
        lambda: World(reader),
    ):
        with pytest.raises(StoreError) as refused:
            write()
        assert refused.value.code == "store.unavailable"
    assert everything(reader) == before == everything(writer)
    World(writer).commit(a_change("more"))
    assert reader.instance("more") is not None
    reader.close()
    writer.close()


def test_several_processes_make_one_store(path):
    script = "sys.stdin.readline()\n" + CREATE_AND_REPORT
    with process(script, path) as one, process(script, path) as two, process(script, path) as three:
        for running in (one, two, three):
            running.stdin.write("go\n")
        for running in (one, two, three):
            running.stdin.flush()
        assert [said(running) for running in (one, two, three)] == ["made"] * 3
    store = open_store(path, create=None)
    assert len(store.partitions()) == NEW.partitions
    assert store.check() == []
    store.close()
