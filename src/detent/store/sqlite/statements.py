"""Transactions, and statements over many rows at once.

apsw gives up the GIL once per row that it steps, and takes it back against every other thread of
the process; with one statement per 256 rows that happens 256 times less often. Row counts are cut
into powers of two, so that a few prepared texts serve every count.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import apsw

from detent.store.sqlite.failures import refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS_AT_ONCE = 256
# SQLite's own busy timeout sleeps up to 100 ms between two looks, and a writer beside two busy
# senders was seen to wait for seconds; looking every 0.1 ms, 99 of 100 waits are under 3 ms.
_SHORT_WAIT_S, _SHORT_WAITS = 0.000_1, 1_000
_LONG_WAIT_S, _ALL_WAITS = 0.001, 6_000
# Waiting for the write lock is not an error; a minute without it means that somebody hangs in a
# transaction, and then the operator must know.
_BUSY_ROUNDS = 12


def wait_for_lock(waits: int) -> bool:
    """SQLite's busy handler: wait a moment and look again, for about 5 seconds."""
    time.sleep(_SHORT_WAIT_S if waits < _SHORT_WAITS else _LONG_WAIT_S)
    return waits < _ALL_WAITS


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """All or nothing: whatever is raised inside, the connection is left outside a transaction."""
    _begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        _roll_back(connection)
        if isinstance(error, (TypeError, ValueError, OverflowError)):
            raise refused(error) from error
        raise


def _begin(connection: apsw.Connection) -> None:
    for round_ in range(1, _BUSY_ROUNDS + 1):
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            if round_ == _BUSY_ROUNDS:
                raise
        else:
            return


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        # What SQLite could not even roll back it rolls back when the file is read next.
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


def rows_of(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """All rows; the statement is finished, so that it holds no read lock."""
    return connection.execute(sql, values).fetchall()


def row_of(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> Any:
    """The first row, or None."""
    rows = rows_of(connection, sql, values)
    return rows[0] if rows else None


def change(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> int:
    """Run one statement and return how many rows it changed."""
    connection.execute(sql, values)
    return connection.changes()


class ManyRows:
    """A statement around a VALUES list, run over any number of rows."""

    __slots__ = ("_texts", "_width")

    def __init__(self, before: str, row: str, after: str = "") -> None:
        self._width = row.count("?")
        sizes = (1 << bits for bits in range(ROWS_AT_ONCE.bit_length()))
        self._texts = [f"{before} {', '.join([row] * size)} {after}" for size in sizes]

    def run(self, connection: apsw.Connection, flat: list[Any]) -> int:
        """Execute over the rows laid end to end in `flat`; the number of rows changed."""
        changed = 0
        if not flat:
            return changed
        for text, values in self._parts(flat):
            connection.execute(text, values)
            changed += connection.changes()
        return changed

    def fetch(self, connection: apsw.Connection, flat: list[Any]) -> list[Any]:
        """As `run`, for statements that return rows."""
        rows: list[Any] = []
        for text, values in self._parts(flat):
            rows += connection.execute(text, values).fetchall()
        return rows

    def _parts(self, flat: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        at, left = 0, len(flat) // self._width
        while left:
            bits = min(left, ROWS_AT_ONCE).bit_length() - 1  # of the largest power of two in it
            end = at + (self._width << bits)
            yield self._texts[bits], flat[at:end]
            at, left = end, left - (1 << bits)


class ManyKeys:
    """A query with `IN ($keys)`, run over any number of keys."""

    __slots__ = ("_sql", "_texts")

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._texts: dict[int, str] = {}

    def fetch(self, connection: apsw.Connection, keys: Sequence[Any]) -> list[Any]:
        """The rows for all keys; each part is filled up with its last key to a power of two."""
        rows: list[Any] = []
        for at in range(0, len(keys), ROWS_AT_ONCE):
            part = list(keys[at : at + ROWS_AT_ONCE])
            size = 1 << (len(part) - 1).bit_length()
            part += part[-1:] * (size - len(part))
            rows += connection.execute(self._text(size), part).fetchall()
        return rows

    def _text(self, size: int) -> str:
        text = self._texts.get(size)
        if text is None:
            text = self._texts[size] = self._sql.replace("$keys", ", ".join("?" * size))
        return text
