"""Stores of earlier releases: opened, upgraded, and nothing in them lost.

`released/0001.sql` was written out of a store that the first release had made: waiting instances of
two tenants, one that has ended, and a start that nobody had taken yet.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import detent
from detent.model.errors import StoreError
from detent.model.ids import derived_id
from detent.ports.definitions import DefinitionQuery
from detent.ports.due import Stretch
from detent.ports.records import Record, RecordQuery
from detent.store.sqlite import open_store
from detent.store.sqlite.schema import APPLICATION_ID, migrate, migrations

RELEASED = Path(__file__).parent / "released"
RECORDED = ("0001.sql",)


@pytest.fixture(params=RECORDED)
def path(request, tmp_path):
    """A store file as that release left it."""
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.execute((RELEASED / request.param).read_text(encoding="utf-8"))
    connection.close()
    return path


def tables(connection):
    """The columns and rows of every table."""
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    return {name: (columns_of(connection, name), rows_of(connection, name)) for name in names}


def columns_of(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def rows_of(connection, table, columns="*"):
    return sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)


def schema_of(connection):
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def test_the_first_migration_is_what_was_released(path):
    recorded = apsw.Connection(str(path))
    made = apsw.Connection(":memory:")
    made.execute(migrations()[0])
    assert recorded.pragma("application_id") == APPLICATION_ID
    assert recorded.pragma("user_version") == 1
    assert schema_of(made) == schema_of(recorded)
    recorded.close()


def test_a_store_of_an_earlier_release_is_upgraded_with_all_its_rows(path):
    raw = apsw.Connection(str(path))
    before = tables(raw)
    raw.close()
    store = open_store(path, create=None)
    assert store.meta().schema == len(migrations())
    for name, (columns, rows) in before.items():
        assert rows_of(store._connection, name, ", ".join(columns)) == rows, name
    assert store.check() == []
    store.close()
    newest = apsw.Connection(":memory:")
    for script in migrations():
        newest.execute(script)
    upgraded = apsw.Connection(str(path))
    assert sorted(schema_of(upgraded)) == sorted(schema_of(newest))
    upgraded.close()


def test_what_waits_in_an_upgraded_store_is_found_by_its_tenant(path):
    store = open_store(path, create=None)
    assert store.stretches(range(2)) == [
        Stretch("acme", 1, 36_000),
        Stretch("acme", 2, 36_000),
        Stretch("beta", 1, 36_000),
    ]
    assert [row.tenant for row in store.arrivals(range(2), 10)] == ["cyan"]
    store.close()


def test_the_instances_of_an_earlier_release_go_on_where_they_stood(path):
    with detent.Engine(path, clock="virtual", seed="later") as engine:
        assert engine.inspect.verify().valid
        engine.run_until_idle()
        assert engine.inspect.verify().valid
    connection = apsw.Connection(str(path))
    assert rows_of(connection, "instance", "tenant, state") == [
        ("acme", "completed"),
        ("acme", "completed"),
        ("beta", "completed"),
        ("beta", "completed"),
        ("cyan", "completed"),
        ("default", "completed"),
    ]
    connection.close()


def test_the_definitions_of_an_earlier_release_are_found_by_the_ids_they_have_since(path):
    store = open_store(path, create=None)
    rows = store.find_definitions(DefinitionQuery())
    assert [(row.tenant, row.name) for row in rows] == [
        ("acme", "hourly"),
        ("beta", "asked"),
        ("beta", "hourly"),
        ("cyan", "hourly"),
        ("default", "done"),
    ]
    for row in rows:
        key = f"{row.namespace}/{row.name}/{row.version}"
        assert row.id == derived_id(row.tenant, "definition", key)
        assert row.status == "production"
        assert store.definition_by_id(row.id) == row
    store.close()
    again = open_store(path, create=None)
    assert again.find_definitions(DefinitionQuery()) == rows
    again.close()


def test_an_upgraded_store_has_no_records_and_takes_some(path):
    store = open_store(path, create=None)
    assert store.records(RecordQuery("session")) == []
    assert store.insert_record(Record("session", "s-1", "acme", b"{}")) is True
    assert store.record("session", "s-1").n == 1
    store.close()


def test_a_reader_does_not_upgrade_and_says_what_to_do(path):
    before = path.read_bytes()
    with pytest.raises(StoreError) as refused:
        open_store(path, create=None, read_only=True)
    assert refused.value.code == "store.unavailable"
    assert "open it once for writing" in refused.value.message
    assert path.read_bytes() == before


def test_an_upgrade_that_fails_leaves_the_store_of_the_earlier_release(path):
    connection = apsw.Connection(str(path))
    before = schema_of(connection)
    with pytest.raises(apsw.SQLError):
        migrate(connection, [*migrations(), "nonsense"], None)
    assert connection.pragma("user_version") == 1
    assert schema_of(connection) == before
    connection.close()
    open_store(path, create=None).close()
