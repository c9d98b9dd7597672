"""Start marks and tombstones: one row per effect, and whoever comes second has lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.ports.store import Flight
from detent.store.postgres.session import GUARD
from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_INSERT_MARKS = Rows(
    """
INSERT INTO flight(effect, dispatcher, dispatch, since) SELECT * FROM $rows
ON CONFLICT (effect) DO NOTHING RETURNING effect
""",
    "effect text, dispatcher text, dispatch int, since int",
)
_SELECT_FLIGHTS = """
SELECT f.effect, f.dispatcher, f.dispatch, f.since
FROM unnest($1) WITH ORDINALITY AS wanted(effect, at) JOIN flight f ON f.effect = wanted.effect
ORDER BY wanted.at
"""
# Joined, and not `= ANY`: so each key is looked for in its own part of the table only.
_DELETE_FLIGHTS = """
DELETE FROM flight USING unnest($1) AS gone(effect) WHERE flight.effect = gone.effect
"""
# A mark that is there: committed before, or by a transaction that the insert has waited for.
_NONE_MARKED = GUARD.format(
    rows="flight JOIN unnest($1) AS gone(effect) USING (effect) WHERE dispatcher <> ''", count="0"
)
_FORGET_TOMBSTONES = """
DELETE FROM flight WHERE effect IN (
    SELECT effect FROM flight WHERE dispatcher = '' AND since < $1 ORDER BY since LIMIT $2)
"""


def mark(session: Session, marks: Sequence[Flight]) -> list[str]:
    """Start marks in a transaction of their own: the keys that were won."""
    if not marks:
        return []
    return [row[0] for row in session.write(*insert_marks(marks), keep=True)]


def flights(session: Session, effects: Sequence[str]) -> dict[str, Flight]:
    """The marks and tombstones there are, by effect."""
    if not effects:
        return {}
    rows = session.rows(_SELECT_FLIGHTS, (keys(effects),), keep=True)
    return {row[0]: Flight._make(row) for row in rows}


def insert_marks(marks: Sequence[Flight]) -> Statement:
    """Insert or nothing; returns the keys that were won."""
    return _INSERT_MARKS.of(marks)


def insert_tombstones(effects: Sequence[str], tick: int) -> tuple[Statement, Statement]:
    """Withdraw effects; the second statement fails when one of them has a start mark."""
    rows = [Flight(effect, "", 0, tick) for effect in effects]
    return _INSERT_MARKS.of(rows), (_NONE_MARKED, [keys(effects)])


def delete_flights(effects: Sequence[str]) -> Statement:
    """Remove the rows of settled effects."""
    return _DELETE_FLIGHTS, [keys(effects)]


def forget(session: Session, before_tick: int, limit: int) -> int:
    """Remove tombstones older than the tick, when no order for their effect can be out any more."""
    return session.change(_FORGET_TOMBSTONES, (before_tick, limit))
