"""The rows of the catalogue that are neither definitions nor settings: one table for all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.errors import UniqueViolation

from detent.ports.records import Record
from detent.store.postgres.failures import Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.records import RecordQuery
    from detent.store.postgres.session import Session

_WRITTEN = "kind, id, tenant, body, key, owner, created_ms, updated_ms"
_INSERT = f"""
INSERT INTO record({_WRITTEN}, rev) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
ON CONFLICT DO NOTHING
"""
_SELECT = f"SELECT {_WRITTEN}, rev, n FROM record"
_OF_ID = f"{_SELECT} WHERE kind = $1 AND id = $2"
_OF_KEY = f"{_SELECT} WHERE kind = $1 AND tenant = $2 AND key = $3"
_REPLACE = """
UPDATE record SET key = $4, owner = $5, body = $6, updated_ms = $7, rev = rev + 1
WHERE kind = $1 AND id = $2 AND rev = $3
"""
_DELETE = "DELETE FROM record WHERE kind = $1 AND id = $2"
# The limit is inside, so that a look costs no more than it whatever is too young to go.
_PRUNE = """
DELETE FROM record WHERE n IN (
    SELECT n FROM (
        SELECT n, created_ms FROM record WHERE kind = $1 AND owner = $2 AND n <= (
            SELECT n FROM record WHERE kind = $1 AND owner = $2 ORDER BY n DESC LIMIT 1 OFFSET $3
        ) ORDER BY n LIMIT $5
    ) AS oldest WHERE $4::bigint IS NULL OR created_ms < $4
)
"""


def insert_record(session: Session, record: Record) -> bool:
    """Insert; False when its id, or its key in the tenant, is taken."""
    return session.change(_INSERT, record[:8]) > 0


def record(session: Session, kind: str, id: str) -> Record | None:
    """The record of an id."""
    return _record(session.row(_OF_ID, (kind, id)))


def record_by_key(session: Session, kind: str, tenant: str, key: str) -> Record | None:
    """The record of a tenant's key."""
    return _record(session.row(_OF_KEY, (kind, tenant, key)))


def records(session: Session, query: RecordQuery) -> list[Record]:
    """The next records in the order of making, or against it."""
    where, values = _filter(query)
    order = "DESC" if query.newest_first else "ASC"
    sql = f"{_SELECT} WHERE {where} ORDER BY n {order} LIMIT ${len(values)}"
    return [Record._make(row) for row in session.rows(sql, values)]


def count_records(session: Session, query: RecordQuery) -> int:
    """How many records a query would find; counting stops at its limit."""
    where, values = _filter(query)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM record WHERE {where} LIMIT ${len(values)}) AS found"
    return int(session.row(sql, values)[0])


def _filter(query: RecordQuery) -> tuple[str, list[Any]]:
    """A condition and its values, the limit last."""
    where, values = "kind = $1", [query.kind]
    bound: list[Any] = values
    for column, value in (("tenant", query.tenant), ("owner", query.owner)):
        if value is not None:
            bound.append(value)
            where += f" AND {column} = ${len(bound)}"
    if query.after:
        bound.append(query.after)
        where += f" AND n {'<' if query.newest_first else '>'} ${len(bound)}"
    return where, [*bound, query.limit]


def replace_record(session: Session, record: Record) -> bool:
    """Write what one read before has become; False when it was written since, or is gone."""
    return replace_records(session, [record]) > 0


def replace_records(session: Session, records: Sequence[Record]) -> int:
    """Write what some read before have become, in one transaction; how many were written."""
    statements = [(_REPLACE, _replacing(record)) for record in records]
    while statements:
        try:
            return sum(cursor.rowcount for cursor in session.transact(statements))
        except Failed as failed:
            if not isinstance(failed.error, UniqueViolation) or failed.at < 0:
                raise
            del statements[failed.at]  # its new key is taken; the others are written without it
    return 0


def _replacing(record: Record) -> tuple[Any, ...]:
    values = (record.key, record.owner, record.body, record.updated_ms)
    return (record.kind, record.id, record.rev, *values)


def delete_record(session: Session, kind: str, id: str) -> bool:
    """Remove one; False when it is not there."""
    return session.change(_DELETE, (kind, id)) > 0


def prune_records(
    session: Session,
    kind: str,
    owner: str,
    keep: int = 0,
    before_ms: int | None = None,
    limit: int = 1_000,
) -> int:
    """Remove the oldest of an owner's, all but the newest `keep`; how many went."""
    return session.change(_PRUNE, (kind, owner, keep, before_ms, limit))


def _record(row: Any) -> Record | None:
    return None if row is None else Record._make(row)
