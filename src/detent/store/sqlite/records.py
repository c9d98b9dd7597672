"""The rows of the catalogue that are neither definitions nor settings: one table for all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.ports.records import Record
from detent.store.sqlite.statements import change, row_of, rows_of, transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.ports.records import RecordQuery

_WRITTEN = "kind, id, tenant, body, key, owner, created_ms, updated_ms"
_INSERT = f"""
INSERT INTO record({_WRITTEN}, rev) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING
"""
_SELECT = f"SELECT {_WRITTEN}, rev, n FROM record"
_OF_ID = f"{_SELECT} WHERE kind = ? AND id = ?"
_OF_KEY = f"{_SELECT} WHERE kind = ? AND tenant = ? AND key = ?"
_REPLACE = """
UPDATE OR IGNORE record SET key = ?, owner = ?, body = ?, updated_ms = ?, rev = rev + 1
WHERE kind = ? AND id = ? AND rev = ?
"""
_DELETE = "DELETE FROM record WHERE kind = ? AND id = ?"
# The limit is inside, so that a look costs no more than it whatever is too young to go.
_PRUNE = """
DELETE FROM record WHERE n IN (
    SELECT n FROM (
        SELECT n, created_ms FROM record WHERE kind = ?1 AND owner = ?2 AND n <= (
            SELECT n FROM record WHERE kind = ?1 AND owner = ?2 ORDER BY n DESC LIMIT 1 OFFSET ?3
        ) ORDER BY n LIMIT ?5
    ) WHERE ?4 IS NULL OR created_ms < ?4
)
"""


def insert_record(connection: apsw.Connection, record: Record) -> bool:
    """Insert; False when its id, or its key in the tenant, is taken."""
    with transaction(connection):
        return change(connection, _INSERT, record[:8]) > 0


def record(connection: apsw.Connection, kind: str, id: str) -> Record | None:
    """The record of an id."""
    return _record(row_of(connection, _OF_ID, (kind, id)))


def record_by_key(connection: apsw.Connection, kind: str, tenant: str, key: str) -> Record | None:
    """The record of a tenant's key."""
    return _record(row_of(connection, _OF_KEY, (kind, tenant, key)))


def records(connection: apsw.Connection, query: RecordQuery) -> list[Record]:
    """The next records in the order of making, or against it."""
    where, values = _filter(query)
    order = "DESC" if query.newest_first else "ASC"
    sql = f"{_SELECT} WHERE {where} ORDER BY n {order} LIMIT ?"
    return [Record._make(row) for row in rows_of(connection, sql, values)]


def count_records(connection: apsw.Connection, query: RecordQuery) -> int:
    """How many records a query would find; counting stops at its limit."""
    where, values = _filter(query)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM record WHERE {where} LIMIT ?)"
    return int(row_of(connection, sql, values)[0])


def _filter(query: RecordQuery) -> tuple[str, list[Any]]:
    where, values = "kind = ?", [query.kind]
    bound: list[Any] = values
    for column, value in (("tenant", query.tenant), ("owner", query.owner)):
        if value is not None:
            where += f" AND {column} = ?"
            bound.append(value)
    if query.after:
        where += " AND n < ?" if query.newest_first else " AND n > ?"
        bound.append(query.after)
    return where, [*bound, query.limit]


def replace_record(connection: apsw.Connection, record: Record) -> bool:
    """Write what one read before has become; False when it was written since, or is gone."""
    return replace_records(connection, [record]) > 0


def replace_records(connection: apsw.Connection, records: Sequence[Record]) -> int:
    """Write what some read before have become, in one transaction; how many were written."""
    with transaction(connection):
        return sum(change(connection, _REPLACE, _replacing(record)) for record in records)


def _replacing(record: Record) -> tuple[Any, ...]:
    values = (record.key, record.owner, record.body, record.updated_ms)
    return (*values, record.kind, record.id, record.rev)


def delete_record(connection: apsw.Connection, kind: str, id: str) -> bool:
    """Remove one; False when it is not there."""
    with transaction(connection):
        return change(connection, _DELETE, (kind, id)) > 0


def prune_records(
    connection: apsw.Connection,
    kind: str,
    owner: str,
    keep: int = 0,
    before_ms: int | None = None,
    limit: int = 1_000,
) -> int:
    """Remove the oldest of an owner's, all but the newest `keep`; how many went."""
    with transaction(connection):
        return change(connection, _PRUNE, (kind, owner, keep, before_ms, limit))


def _record(row: Any) -> Record | None:
    return None if row is None else Record._make(row)
