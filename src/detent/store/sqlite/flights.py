"""Start marks and tombstones: one row per effect, and whoever comes second has lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.ports.store import Flight
from detent.store.sqlite.statements import ManyKeys, ManyRows, change, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

_INSERT_MARKS = ManyRows(
    "INSERT INTO flight(effect, dispatcher, dispatch, since) VALUES",
    "(?, ?, ?, ?)",
    "ON CONFLICT(effect) DO NOTHING RETURNING effect",
)
_SELECT_FLIGHTS = ManyKeys(
    "SELECT effect, dispatcher, dispatch, since FROM flight WHERE effect IN ($keys)"
)
_DELETE_FLIGHTS = ManyKeys("DELETE FROM flight WHERE effect IN ($keys)")
_FORGET_TOMBSTONES = """
DELETE FROM flight WHERE effect IN (
    SELECT effect FROM flight INDEXED BY flight_withdrawn
    WHERE dispatcher = '' AND since < ? ORDER BY since LIMIT ?)
"""


def mark(connection: apsw.Connection, marks: Sequence[Flight]) -> list[str]:
    """Start marks in a transaction of their own: the keys that were won."""
    with transaction(connection):
        return insert_marks(connection, marks)


def flights(connection: apsw.Connection, effects: Sequence[str]) -> dict[str, Flight]:
    """The marks and tombstones there are, by effect."""
    rows = _SELECT_FLIGHTS.fetch(connection, effects)
    return {row[0]: Flight._make(row) for row in rows}


def insert_marks(connection: apsw.Connection, marks: Sequence[Flight]) -> list[str]:
    """Insert or nothing, inside a transaction: the keys that were won."""
    flat: list[Any] = []
    for row in marks:
        flat += row
    return [row[0] for row in _INSERT_MARKS.fetch(connection, flat)]


def insert_tombstones(connection: apsw.Connection, effects: Sequence[str], tick: int) -> list[str]:
    """Withdraw effects, inside a transaction: the keys whose start mark was there before."""
    won = insert_marks(connection, [Flight(effect, "", 0, tick) for effect in effects])
    if len(won) == len(effects):
        return []
    there = flights(connection, effects)
    return [effect for effect in effects if there[effect].dispatcher]


def forget(connection: apsw.Connection, before_tick: int, limit: int) -> int:
    """Remove tombstones older than the tick, when no order for their effect can be out any more."""
    with transaction(connection):
        return change(connection, _FORGET_TOMBSTONES, (before_tick, limit))


def delete_flights(connection: apsw.Connection, effects: Sequence[str]) -> None:
    """Remove the rows of settled effects, inside a transaction."""
    _DELETE_FLIGHTS.fetch(connection, effects)
