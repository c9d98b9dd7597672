"""A store that dies at a chosen write: before its transaction, inside it, or after COMMIT.

Every method of the port that writes is one *write*, counted from 1. `Crash` is no `Exception`, so
that no error handling of the engine can survive it, as none would survive a lost process; from then
on every call of the dead store raises it. What was committed stays in the connection, which the
test opens a new store over.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import apsw

from detent.store.sqlite import SqliteStore
from detent.store.sqlite.schema import read_meta

Moment = Literal["before", "during", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "during", "after")

WRITES = (
    "acquire",
    "commit",
    "delete_definition",
    "delete_record",
    "deprecate_definition",
    "enqueue",
    "forget",
    "insert_record",
    "mark",
    "prune_records",
    "put_definition",
    "put_setting",
    "release",
    "renew",
    "replace_record",
    "replace_records",
    "set_definition_status",
    "work.beat",
    "work.claim",
    "work.reclaim",
    "work.settle",
)


class Crash(BaseException):
    """The process is gone."""


class Fault(NamedTuple):
    """At which write to die, and when; `statement` is how far a broken transaction gets."""

    write: int
    moment: Moment
    statement: int = 0


class Write(NamedTuple):
    """One write as it was asked for."""

    number: int
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class FaultyStore:
    """The real SQLite store behind a door that may fall shut; `watch` is told of each write.

    `watch(write, moment)` is called right before and right after a write is done.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        fault: Fault | None = None,
        watch: Callable[[Write, Moment], None] | None = None,
    ) -> None:
        self.connection = connection
        self.writes = 0
        self.dead = False
        self.on_commit: Callable[[], None] | None = None
        self._fault = fault
        self._watch = watch
        self._store = SqliteStore(connection, read_meta(connection, "the store under test"), None)

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise Crash(name)
        if name == "work":
            return _Part(self, name)
        return self.method(name)

    def method(self, name: str) -> Any:
        """A method of the store, or of a part of it by `part.name`."""
        if self.dead:
            raise Crash(name)
        if name not in WRITES:
            return attrgetter(name)(self._store)
        return lambda *args, **kwargs: self._write(name, args, kwargs)

    def close(self) -> None:
        """Keep the connection: it is what survives."""

    def _write(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.writes += 1
        write = Write(self.writes, method, args, kwargs)
        fault = self._fault
        if fault is not None and fault.write != self.writes:
            fault = None
        if self._watch is not None:
            self._watch(write, "before")
        if fault is not None and fault.moment != "after":
            self._die_in(write, fault)
        answer = attrgetter(method)(self._store)(*args, **kwargs)
        if method == "commit" and self.on_commit is not None:
            self.on_commit()
        if self._watch is not None:
            self._watch(write, "after")
        if fault is not None:
            self.dead = True
            raise Crash(fault)
        return answer

    def _die_in(self, write: Write, fault: Fault) -> None:
        self.dead = True
        if fault.moment == "during":
            break_off(self.connection, self._store, write, fault.statement)
        raise Crash(fault)


class _Part:
    """A part of the store behind the same door."""

    def __init__(self, store: FaultyStore, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return self._store.method(f"{self._name}.{name}")


def break_off(
    connection: apsw.Connection, store: SqliteStore, write: Write, statement: int
) -> None:
    """Begin a write and lose it at one of its statements, at the latest in COMMIT itself."""
    left = statement

    def count(_cursor: Any, _sql: str, _bindings: Any) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash(write.method)
        return True

    def refuse() -> bool:
        raise Crash(write.method)

    connection.exec_trace = count
    connection.set_commit_hook(refuse)
    try:
        attrgetter(write.method)(store)(*write.args, **write.kwargs)
    except Crash:
        pass
    finally:
        connection.exec_trace = None
        connection.set_commit_hook(None)
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def image_of(connection: apsw.Connection) -> bytes:
    """The whole database as it stands."""
    return connection.serialize("main")


def opened(image: bytes) -> apsw.Connection:
    """A database in memory with the content of an image."""
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", image)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection
