"""The stores the suite runs on; an adapter of another database is one more class here."""

from __future__ import annotations

from contextlib import contextmanager

import apsw
import psycopg
import pytest

from detent.ports.opening import NewStore
from detent.store import postgres, sqlite
from detent.store.postgres.connecting import connector, read_address
from tests.cable import Cable
from tests.postgres_fixture import fresh_url

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

    said = "sqlite"  # where an error keeps the database's own words
    statements = 25  # a commit with every kind of row has more

    def __init__(self, directory, _request):
        self.path = directory / "store.db"
        self.opened = []

    def __call__(self):
        store = sqlite.open_store(self.path, create=NEW)
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

    def __init__(self, directory, request):
        super().__init__(directory, request)
        self.path = ":memory:"

    def __call__(self):
        if self.opened:
            pytest.skip("a store in memory has one connection")
        return super().__call__()


class Postgres:
    """A schema of a real server; every call of the factory is one more connection to it."""

    said = "postgres"
    statements = 20

    def __init__(self, _directory, request):
        self._server = request.getfixturevalue("postgres_server")
        self.url = fresh_url(self._server)
        self.opened = []

    def __call__(self):
        store = postgres.open_store(self.url, create=NEW)
        self.opened.append(store)
        return store

    def close(self):
        for store in self.opened:
            store.close()

    @contextmanager
    def failing(self, store, number):
        """As for a file; wake-ups do not count: they go behind the COMMIT and may be lost."""
        seen = []

        class Traced(psycopg.RawCursor):
            def execute(self, query, params=None, **more):
                if "pg_notify" not in query and query != "ROLLBACK":
                    seen.append(query)
                    if len(seen) == number:
                        query, params = REFUSE, None
                return super().execute(query, params, **more)

        store._session.connection().cursor_factory = Traced
        try:
            yield seen
        finally:
            store._session.connection().cursor_factory = psycopg.RawCursor

    @contextmanager
    def interrupted(self, store, steps):
        """Cut the connection after that many bytes of a transaction."""
        cable = Cable(self._server.directory, self._server.port)
        session, plain = store._session, store._session._connect
        session._connect = connector(read_address(cable.url(self.url)), read_only=False)
        session._connection.close()
        cable.limit = steps
        try:
            yield
        finally:
            session._connect = plain
            cable.close()
        assert cable.cuts


REFUSE = "DO $$ BEGIN RAISE EXCEPTION 'told to' USING ERRCODE = 'query_canceled'; END $$"
ADAPTERS = {"sqlite-file": SqliteFile, "sqlite-memory": SqliteMemory, "postgres": Postgres}
ADAPTER_ERRORS = (apsw.Error, psycopg.Error)
