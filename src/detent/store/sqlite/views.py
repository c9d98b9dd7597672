"""What people and proofs read: instances, journal, turns, seals, doubts, the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from detent.model.ids import SYSTEM
from detent.ports.store import DoubtRow, InstanceRow, JournalRow, Seal, TurnRow
from detent.store.sqlite.statements import row_of, rows_of

if TYPE_CHECKING:
    from detent.ports.store import Page

_STATES = ("scheduled", "running", "waiting", "paused", "completed", "failed", "cancelled")
COLUMNS = """
SELECT n, id, p, tenant, ns, definition, state, prio, due, busy, key, parent, created, updated, salt
FROM instance
"""
_COUNT_STATES = "SELECT state, count(*) FROM instance {where} GROUP BY state ORDER BY state"
# The literal lets SQLite use the partial index.
_OWN = f"INDEXED BY instance_own WHERE ns = '{SYSTEM}'"
_COUNT_OWN = f"SELECT state, count(*) FROM instance {_OWN} {{tenant}} GROUP BY state"
_JOURNAL = """
SELECT pos, inst, seq, turn, tick, snapshot_digest, digest, body, head FROM journal
"""
_TURNS = """
SELECT p, n, tick, wall_ms, heads, root FROM turn WHERE p = ? AND n > ? ORDER BY n LIMIT ?
"""
_SEALS = "SELECT n, tick, roots, digest, signature FROM seal WHERE n > ? ORDER BY n LIMIT ?"
_DOUBTS = """
SELECT d.effect, d.inst, coalesce(i.tenant, ''), d.state, d.next_try, d.since, d.reason
FROM doubt d LEFT JOIN instance i ON i.id = d.inst
WHERE (?1 = '' OR i.tenant = ?1) AND (?2 = '' OR d.inst = ?2)
ORDER BY d.since, d.effect LIMIT ?3
"""
_BUSY = InstanceRow._fields.index("busy")
_FIGURES = {
    "total_changes": "SELECT total_changes()",  # rows this connection has written
    "instances": "SELECT coalesce(max(n), 0) FROM instance",
    "busy": "SELECT count(*) FROM instance INDEXED BY instance_busy WHERE busy = 1",
    "journal_rows": "SELECT coalesce(max(pos), 0) FROM journal",
    "arrivals_waiting": "SELECT count(*) FROM arrival INDEXED BY arrival_waiting "
    "WHERE body IS NOT NULL",
    "flights": "SELECT count(*) FROM flight",
    "doubts": "SELECT count(*) FROM doubt",
    "page_bytes": "PRAGMA page_size",
    "pages": "PRAGMA page_count",
    "free_pages": "PRAGMA freelist_count",
}


def instance(connection: apsw.Connection, id: str) -> InstanceRow | None:
    """The listed columns of one instance."""
    row = row_of(connection, f"{COLUMNS} WHERE id = ?", (id,))
    return None if row is None else instance_row(row)


def instances(connection: apsw.Connection, page: Page) -> list[InstanceRow]:
    """The next instances after a number that pass the filter, by number."""
    values: list[Any] = [page.after]
    conditions = "n > ?"
    if page.without:
        conditions += " AND ns <> ?"
        values.append(page.without)
    if page.namespace == SYSTEM and not page.parent:
        return _own(connection, page)
    for column, value in (("ns", page.namespace), ("definition", page.definition)):
        if value:
            conditions += f" AND {column} = ?"
            values.append(value)
    if page.parent:
        conditions += " AND parent = ?"
        values.append(page.parent)
    if page.tenant and not page.parent:
        return _by_state(connection, page, conditions, values)
    if page.tenant:
        conditions += " AND tenant = ?"
        values.append(page.tenant)
    if page.states:
        conditions += f" AND state IN ({', '.join('?' * len(page.states))})"
        values += page.states
    sql = f"{COLUMNS} WHERE {conditions} ORDER BY n LIMIT ?"
    return [instance_row(row) for row in rows_of(connection, sql, (*values, page.limit))]


def _own(connection: apsw.Connection, page: Page) -> list[InstanceRow]:
    """The engine's own instances: so few that the rest of the filter needs no index."""
    sql = f"{COLUMNS} {_OWN} AND n > ?"
    values: list[Any] = [page.after]
    for column, value in (("tenant", page.tenant), ("definition", page.definition)):
        if value:
            sql += f" AND {column} = ?"
            values.append(value)
    if page.states:
        sql += f" AND state IN ({', '.join('?' * len(page.states))})"
        values += page.states
    found = rows_of(connection, f"{sql} ORDER BY n LIMIT ?", (*values, page.limit))
    return [instance_row(row) for row in found]


def _by_state(
    connection: apsw.Connection, page: Page, conditions: str, values: list[Any]
) -> list[InstanceRow]:
    """One walk down the index per state, each in the order of n, merged: no sort of a tenant."""
    part = f"""SELECT * FROM (SELECT n FROM instance INDEXED BY instance_state
        WHERE tenant = ? AND state = ? AND {conditions} ORDER BY n LIMIT ?)"""
    parts: list[str] = []
    bound: list[Any] = []
    for state in dict.fromkeys(page.states or _STATES):
        parts.append(part)
        bound += (page.tenant, state, *values, page.limit)
    sql = f"{COLUMNS} WHERE n IN ({' UNION ALL '.join(parts)}) ORDER BY n LIMIT ?"
    return [instance_row(row) for row in rows_of(connection, sql, (*bound, page.limit))]


def count_states(connection: apsw.Connection, tenant: str) -> dict[str, int]:
    """How many instances of a tenant, or of all, are in each state; the engine's own are not."""
    values = (tenant,) if tenant else ()
    sql = _COUNT_STATES.format(where="WHERE tenant = ?" if tenant else "")
    counts = dict(rows_of(connection, sql, values))
    own = _COUNT_OWN.format(tenant="AND tenant = ?" if tenant else "")
    for state, count in rows_of(connection, own, values):
        counts[state] -= count
    return {state: count for state, count in counts.items() if count}


def journal(connection: apsw.Connection, n: int, after_seq: int, limit: int) -> list[JournalRow]:
    """The journal of one instance after a seq."""
    sql = f"{_JOURNAL} WHERE inst = ? AND seq > ? ORDER BY seq LIMIT ?"
    return list(map(JournalRow._make, connection.execute(sql, (n, after_seq, limit))))


def journal_scan(connection: apsw.Connection, after_pos: int, limit: int) -> list[JournalRow]:
    """The journal of all instances after a position."""
    sql = f"{_JOURNAL} WHERE pos > ? ORDER BY pos LIMIT ?"
    return list(map(JournalRow._make, connection.execute(sql, (after_pos, limit))))


def turns(connection: apsw.Connection, p: int, after: int, limit: int) -> list[TurnRow]:
    """The turns of a partition after a number."""
    return [TurnRow._make(row) for row in rows_of(connection, _TURNS, (p, after, limit))]


def seals(connection: apsw.Connection, after: int, limit: int) -> list[Seal]:
    """The seals after a number."""
    return [Seal._make(row) for row in rows_of(connection, _SEALS, (after, limit))]


def doubts(
    connection: apsw.Connection, tenant: str, instance_id: str, limit: int
) -> list[DoubtRow]:
    """Effects in doubt, the oldest first; empty arguments do not filter."""
    rows = rows_of(connection, _DOUBTS, (tenant, instance_id, limit))
    return [DoubtRow._make(row) for row in rows]


def check(connection: apsw.Connection) -> list[str]:
    """Problems SQLite itself can see; empty when there are none."""
    try:
        rows = rows_of(connection, "PRAGMA integrity_check(100)")
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [str(error)]
    return [row[0] for row in rows if row[0] != "ok"]


def statistics(connection: apsw.Connection) -> dict[str, Any]:
    """Figures for people; none of them reads a large table."""
    return {name: row_of(connection, sql)[0] for name, sql in _FIGURES.items()}


def instance_row(row: Any) -> InstanceRow:
    """A stored row as the port gives it."""
    return InstanceRow._make((*row[:_BUSY], row[_BUSY] == 1, *row[_BUSY + 1 :]))
