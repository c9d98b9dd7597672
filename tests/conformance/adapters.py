"""The stores the suite runs on; an adapter of another database is one more class here."""

from __future__ import annotations

from contextlib import contextmanager

import apsw
import pytest

from detent.store.sqlite import NewStore, open_store

PARTITIONS = 4
NEW = NewStore(
    epoch_ms=1_700_000_000_000,
    resolution_ms=100,
    clock="wall",
    partitions=PARTITIONS,
    store_id="the-store",
)


class SqliteFile:
    """A store file; every call of the factory is one more connection to it."""

    def __init__(self, directory):
        self.path = directory / "store.db"
        self.opened = []

    def __call__(self):
        store = open_store(self.path, create=NEW)
        self.opened.append(store)
        return store

    def close(self):
        for store in self.opened:
            store.close()

    @contextmanager
    def failing(self, store, number):
        """Let the statement of that number fail, counted from 1; yields the list of statements."""
        seen = []

        def trace(_cursor, sql, _values):
            seen.append(sql)
            return len(seen) != number

        store._connection.exec_trace = trace
        try:
            yield seen
        finally:
            store._connection.exec_trace = None

    @contextmanager
    def interrupted(self, store, steps):
        """Break off whatever statement runs after that many steps of the database's machine."""
        left = [1]

        def stop():
            left[0] -= 1
            return left[0] == 0

        store._connection.set_progress_handler(stop, steps)
        try:
            yield
        finally:
            store._connection.set_progress_handler(None)


class SqliteMemory(SqliteFile):
    """A store in memory, which has one connection."""

    def __init__(self, _directory):
        super().__init__(_directory)
        self.path = ":memory:"

    def __call__(self):
        if self.opened:
            pytest.skip("a store in memory has one connection")
        return super().__call__()


ADAPTERS = {"sqlite-file": SqliteFile, "sqlite-memory": SqliteMemory}
ADAPTER_ERRORS = (apsw.Error,)
