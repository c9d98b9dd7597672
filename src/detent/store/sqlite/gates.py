"""The rows of tenants' gates: numbers and tickets by key, and when each must be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.ports.store import GateDue, GateRow
from detent.store.sqlite.statements import ManyRows, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

_PUT = ManyRows(
    "INSERT INTO gate_row(tenant, kind, key, at, body) VALUES",
    "(?, ?, ?, ?, ?)",
    "ON CONFLICT(tenant, kind, key, at) DO UPDATE SET body = excluded.body",
)
_DROP = ManyRows(
    "WITH gone(tenant, kind, key, at) AS (VALUES",
    "(?, ?, ?, ?)",
    ") DELETE FROM gate_row WHERE (tenant, kind, key, at) IN (SELECT * FROM gone)",
)
_PUT_DUE = ManyRows(
    "INSERT INTO gate(tenant, p, due) VALUES",
    "(?, ?, ?)",
    "ON CONFLICT(tenant) DO UPDATE SET due = excluded.due",
)
_ROWS = "SELECT tenant, kind, key, at, body FROM gate_row WHERE tenant = ?"
_BREAKERS = (
    "SELECT tenant, kind, key, at, body FROM gate_row WHERE kind = 'breaker' "
    "AND (tenant, key) > (?, ?) $whose"
    "ORDER BY tenant, key LIMIT ?"
)
_DUES = "SELECT tenant, p, due FROM gate WHERE due IS NOT NULL $here ORDER BY tenant"


def write_gates(
    connection: apsw.Connection, rows: Sequence[GateRow], dues: Sequence[GateDue]
) -> None:
    """Put and drop the rows a turn changed."""
    put: list[Any] = []
    drop: list[Any] = []
    for row in rows:
        if row.body is None:
            drop += row[:4]
        else:
            put += row
    _PUT.run(connection, put)
    _DROP.run(connection, drop)
    due: list[Any] = []
    for each in dues:
        due += each
    _PUT_DUE.run(connection, due)


def gate_rows(connection: apsw.Connection, tenant: str) -> list[GateRow]:
    """Everything stored of a tenant's gate."""
    return [GateRow._make(row) for row in rows_of(connection, _ROWS, (tenant,))]


def breaker_rows(
    connection: apsw.Connection, tenant: str | None, limit: int, after: tuple[str, str]
) -> list[GateRow]:
    """Breakers of a tenant, or of all."""
    query = _BREAKERS.replace("$whose", "" if tenant is None else "AND tenant = ? ")
    whose = () if tenant is None else (tenant,)
    return [GateRow._make(row) for row in rows_of(connection, query, (*after, *whose, limit))]


def gate_dues(connection: apsw.Connection, here: str) -> list[GateDue]:
    """The gates with a due tick, by tenant."""
    return [GateDue._make(row) for row in rows_of(connection, _DUES.replace("$here", here))]
