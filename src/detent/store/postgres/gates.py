"""The rows of tenants' gates: numbers and tickets by key, and when each must be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.ports.store import GateDue, GateRow
from detent.store.postgres.statements import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detent.store.postgres.readiness import Here
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_PUT = Rows(
    """
INSERT INTO gate_row(tenant, kind, key, at, body) SELECT * FROM $rows
ON CONFLICT (tenant, kind, key, at) DO UPDATE SET body = excluded.body
""",
    "tenant text, kind text, key text, at int, body bytes",
)
_DROP = Rows(
    """
DELETE FROM gate_row USING $rows WHERE gate_row.tenant = new.tenant
    AND gate_row.kind = new.kind AND gate_row.key = new.key AND gate_row.at = new.at
""",
    "tenant text, kind text, key text, at int",
)
_PUT_DUE = Rows(
    """
INSERT INTO gate(tenant, p, due) SELECT * FROM $rows
ON CONFLICT (tenant) DO UPDATE SET due = excluded.due
""",
    "tenant text, p int, due int",
)
_ROWS = "SELECT tenant, kind, key, at, body FROM gate_row WHERE tenant = $1"
_BREAKERS = """
SELECT tenant, kind, key, at, body FROM gate_row WHERE kind = 'breaker'
    AND (tenant, key) > ($1, $2) AND ($3::text IS NULL OR tenant = $3)
ORDER BY tenant, key LIMIT $4
"""
_DUES = """
SELECT tenant, p, due FROM gate
WHERE due IS NOT NULL AND ($1::bigint[] IS NULL OR p = ANY($1)) ORDER BY tenant
"""


def write_gates(rows: Sequence[GateRow], dues: Sequence[GateDue]) -> Iterator[Statement]:
    """Put and drop the rows a turn changed; of one written twice the last counts."""
    put = {row[:4]: row for row in rows if row.body is not None}
    drop = [row[:4] for row in rows if row.body is None]
    if put:
        yield _PUT.of(list(put.values()))
    if drop:
        yield _DROP.of(drop)
    if dues:
        yield _PUT_DUE.of(list({each.tenant: each for each in dues}.values()))


def gate_rows(session: Session, tenant: str) -> list[GateRow]:
    """Everything stored of a tenant's gate."""
    return [GateRow._make(row) for row in session.rows(_ROWS, (tenant,), keep=True)]


def breaker_rows(
    session: Session, tenant: str | None, limit: int, after: tuple[str, str]
) -> list[GateRow]:
    """Breakers of a tenant, or of all."""
    rows = session.rows(_BREAKERS, (*after, tenant, limit))
    return [GateRow._make(row) for row in rows]


def gate_dues(session: Session, here: Here) -> list[GateDue]:
    """The gates with a due tick, by tenant."""
    return [GateDue._make(row) for row in session.rows(_DUES, (here,), keep=True)]
