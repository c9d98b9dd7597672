"""Arrivals: left by anybody in any order, taken by the writer in the order of `n`.

A look is shared between the tenants that have some waiting, so that one who left thousands is not
in the way of another. Whose an arrival is says the row of its instance.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import msgspec

from detent.model.decision import Verdict
from detent.ports.store import Arrival
from detent.store.sqlite.births import Numbers, insert_missing
from detent.store.sqlite.statements import ManyKeys, ManyRows, change, rows_of, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.ports.store import NewArrival

_INSERT_ARRIVALS = ManyRows(
    "INSERT INTO arrival(id, p, inst, body, tenant) VALUES",
    "(?, ?, ?, ?, coalesce(?, (SELECT tenant FROM instance WHERE id = ?), ''))",
    "ON CONFLICT(id) DO NOTHING",
)
_SELECT_LEFT = "SELECT id FROM arrival WHERE n > ?"
# One step down the index leads from a tenant to the next.
_TENANTS = """
WITH RECURSIVE has(tenant) AS (
    SELECT min(tenant) FROM arrival INDEXED BY arrival_waiting
    WHERE body IS NOT NULL AND tenant >= ?
    UNION ALL
    SELECT (
        SELECT min(tenant) FROM arrival INDEXED BY arrival_waiting
        WHERE body IS NOT NULL AND tenant > has.tenant)
    FROM has WHERE has.tenant IS NOT NULL)
SELECT tenant FROM has WHERE tenant IS NOT NULL LIMIT ?
"""
_WAITING = """
SELECT n, id, p, inst, body, tenant FROM arrival INDEXED BY arrival_waiting
WHERE body IS NOT NULL AND tenant = ? AND n > ? $here ORDER BY n LIMIT ?
"""
# The first verdict stays: the same id asked again gets the same answer.
_TAKE_ARRIVALS = ManyRows(
    "INSERT INTO arrival(id, verdict, taken) VALUES",
    "(?, ?, ?)",
    """ON CONFLICT(id) DO UPDATE SET body = NULL, verdict = excluded.verdict,
    taken = excluded.taken WHERE taken IS NULL""",
)
_SELECT_VERDICTS = ManyKeys("SELECT id, verdict FROM arrival WHERE id IN ($keys)")
_FORGET = """
DELETE FROM arrival WHERE n IN (
    SELECT n FROM arrival INDEXED BY arrival_taken WHERE taken < ? ORDER BY taken LIMIT ?)
"""
_WAKES = ManyKeys(
    "SELECT DISTINCT o.wake FROM partition p JOIN owner o ON o.id = p.owner WHERE p.p IN ($keys)"
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Verdict).decode


def enqueue(
    connection: apsw.Connection, arrivals: Sequence[NewArrival], tick: int
) -> tuple[list[bool], list[str]]:
    """Leave arrivals and births in one transaction; whether each id was new, and whom to wake."""
    places = list(dict.fromkeys(arrival.p for arrival in arrivals))
    with transaction(connection):
        insert_missing(connection, arrivals, tick, Numbers(connection))
        left = dict.fromkeys(insert_arrivals(connection, arrivals), True)
        wakes = [row[0] for row in _WAKES.fetch(connection, places)]
    return [left.pop(arrival.id, False) for arrival in arrivals], wakes


def leave(connection: apsw.Connection, arrival: NewArrival) -> list[str]:
    """Leave one arrival inside a transaction; whom to wake when it is committed."""
    insert_arrivals(connection, (arrival,))
    return [row[0] for row in _WAKES.fetch(connection, (arrival.p,))]


def insert_arrivals(connection: apsw.Connection, arrivals: Sequence[NewArrival]) -> list[str]:
    """Insert or nothing, inside a transaction: the ids that were new.

    New rows are the last ones of the table, without a gap between them.
    """
    flat: list[Any] = []
    for arrival in arrivals:
        tenant = None if arrival.birth is None else arrival.birth.tenant
        flat += (arrival.id, arrival.p, arrival.instance, arrival.body, tenant, arrival.instance)
    left = _INSERT_ARRIVALS.run(connection, flat)
    if left == len(arrivals):
        return [arrival.id for arrival in arrivals]
    last = connection.last_insert_rowid() if left else 0
    return [row[0] for row in rows_of(connection, _SELECT_LEFT, (last - left,))] if left else []


def take_arrivals(connection: apsw.Connection, flat: list[Any]) -> None:
    """Turn arrivals into (id, verdict), inside a transaction; unknown ids are remembered too."""
    _TAKE_ARRIVALS.run(connection, flat)


def taken_rows(taken: Sequence[tuple[str, Verdict | None]], tick: int) -> list[Any]:
    """The rows of `take_arrivals`, encoded before the transaction begins."""
    flat: list[Any] = []
    for id, verdict in taken:
        flat += (id, None if verdict is None else _encode(verdict), tick)
    return flat


def arrivals(connection: apsw.Connection, here: str, limit: int, after: str) -> list[Arrival]:
    """What waits to be taken, shared between the tenants, of each in its order."""
    sql = _WAITING.replace("$here", here)
    found: dict[str, list[Arrival]] = {t: [] for t in _tenants(connection, limit, after)}
    hungry, left = list(found), limit
    while hungry and left:
        share = max(left // len(hungry), 1)
        served, hungry = hungry[:left], []
        for tenant in served:
            rows = found[tenant]
            more = rows_of(connection, sql, (tenant, rows[-1].n if rows else 0, share))
            rows += starmap(Arrival, more)
            left -= len(more)
            if len(more) == share:
                hungry.append(tenant)
    return [row for rows in found.values() for row in rows]


def _tenants(connection: apsw.Connection, limit: int, after: str) -> list[str]:
    """So many tenants with waiting arrivals, from the one after a name on and round again."""
    beyond = [row[0] for row in rows_of(connection, _TENANTS, (after, limit + 1))]
    last = [after] if after in beyond[:1] else []
    found = beyond[len(last) :]
    if len(found) < limit:
        before = (row[0] for row in rows_of(connection, _TENANTS, ("", limit)))
        found += [tenant for tenant in before if tenant < after]
    return [*found, *last][:limit]


def verdicts(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, Verdict | None]:
    """The ids that have been left before, with their verdicts once they are taken."""
    rows = _SELECT_VERDICTS.fetch(connection, ids)
    return {id: None if body is None else _decode(body) for id, body in rows}


def forget(connection: apsw.Connection, before_tick: int, limit: int) -> int:
    """Remove taken arrivals older than the tick, the oldest first."""
    with transaction(connection):
        return change(connection, _FORGET, (before_tick, limit))
