"""What people and proofs read: instances, journal, turns, seals, doubts, the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from detent.model.ids import SYSTEM
from detent.ports.store import DoubtRow, InstanceRow, JournalRow, Seal, TurnRow
from detent.store.postgres.statements import keys

if TYPE_CHECKING:
    from detent.ports.store import Page
    from detent.store.postgres.session import Session

STATES = ("scheduled", "running", "waiting", "paused", "completed", "failed", "cancelled")
COLUMNS = """
SELECT n, id, p, tenant, ns, definition, state, prio, due, busy, key, parent, created, updated, salt
FROM instance
"""
_COUNT_STATES = f"""
SELECT state, count(*) FROM instance WHERE ns <> '{SYSTEM}' AND ($1 = '' OR tenant = $1)
GROUP BY state ORDER BY state
"""
_JOURNAL = """
SELECT pos, inst, seq, turn, tick, snapshot_digest, digest, body, head FROM journal
"""
_TURNS = """
SELECT p, n, tick, wall_ms, heads, root FROM turn WHERE p = $1 AND n > $2 ORDER BY n LIMIT $3
"""
_SEALS = "SELECT n, tick, roots, digest, signature FROM seal WHERE n > $1 ORDER BY n LIMIT $2"
_DOUBTS = """
SELECT d.effect, d.inst, coalesce(i.tenant, ''), d.state, d.next_try, d.since, d.reason
FROM doubt d LEFT JOIN instance i ON i.id = d.inst
WHERE ($1 = '' OR i.tenant = $1) AND ($2 = '' OR d.inst = $2)
ORDER BY d.since, d.effect LIMIT $3
"""
_FIGURES = """
SELECT (SELECT coalesce(max(n), 0) FROM instance) AS instances,
    (SELECT count(*) FROM instance WHERE busy) AS busy,
    (SELECT coalesce(max(pos), 0) FROM journal) AS journal_rows,
    (SELECT count(*) FROM arrival WHERE body IS NOT NULL) AS arrivals_waiting,
    (SELECT count(*) FROM flight) AS flights,
    (SELECT count(*) FROM doubt) AS doubts,
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'S')) AS bytes,
    'PostgreSQL ' || current_setting('server_version') AS server,
    current_setting('fsync')::bool AND current_setting('full_page_writes')::bool AS durable
"""
_FIGURE_NAMES = re.findall(r" AS (\w+)", _FIGURES)
# Indexes that a failed REINDEX has left, and pages that did not match their checksum.
_INVALID = """
SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = current_schema()::regnamespace AND NOT indisvalid ORDER BY 1
"""
_CHECKSUMS = "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
_COUNT_PARTITIONS = """
SELECT (SELECT count(*) FROM partition), (SELECT partitions FROM store)
"""


def instance(session: Session, id: str) -> InstanceRow | None:
    """The listed columns of one instance."""
    row = session.row(f"{COLUMNS} WHERE id = $1", (id,), keep=True)
    return None if row is None else InstanceRow._make(row)


def instances(session: Session, page: Page) -> list[InstanceRow]:
    """The next instances after a number that pass the filter, by number."""
    conditions, values = _conditions(page)
    if page.tenant and not page.parent and page.namespace != SYSTEM:
        return _by_state(session, page, conditions, values)
    if page.namespace == SYSTEM:
        conditions += f" AND ns = '{SYSTEM}'"  # names the partial index
    if page.tenant:
        values.append(page.tenant)
        conditions += f" AND tenant = ${len(values)}"
    if page.states:
        values.append(keys(page.states))
        conditions += f" AND state = ANY(${len(values)})"
    sql = f"{COLUMNS} WHERE {conditions} ORDER BY n LIMIT ${len(values) + 1}"
    return [InstanceRow._make(row) for row in session.rows(sql, (*values, page.limit))]


def _conditions(page: Page) -> tuple[str, list[Any]]:
    """What any list filters by, and its values."""
    conditions, values = "n > $1", [page.after]
    bound: list[Any] = values
    for column, sign, value in (
        ("ns", "<>", page.without),
        ("ns", "=", page.namespace),
        ("definition", "=", page.definition),
        ("parent", "=", page.parent),
    ):
        if value:
            bound.append(value)
            conditions += f" AND {column} {sign} ${len(bound)}"
    return conditions, bound


def _by_state(
    session: Session, page: Page, conditions: str, values: list[Any]
) -> list[InstanceRow]:
    """One walk down the index per state, each in the order of n, merged: no sort of a tenant."""
    count = len(values)
    sql = f"""
SELECT found.* FROM unnest(${count + 1}) AS wanted(state) CROSS JOIN LATERAL (
    {COLUMNS} WHERE tenant = ${count + 2} AND instance.state = wanted.state AND {conditions}
    ORDER BY n LIMIT ${count + 3}) AS found
ORDER BY found.n LIMIT ${count + 3}
"""
    states = keys(list(dict.fromkeys(page.states or STATES)))
    found = session.rows(sql, (*values, states, page.tenant, page.limit))
    return [InstanceRow._make(row) for row in found]


def count_states(session: Session, tenant: str) -> dict[str, int]:
    """How many instances of a tenant, or of all, are in each state; the engine's own are not."""
    return dict(session.rows(_COUNT_STATES, (tenant,)))


def journal(session: Session, n: int, after_seq: int, limit: int) -> list[JournalRow]:
    """The journal of one instance after a seq."""
    sql = f"{_JOURNAL} WHERE inst = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    return list(map(JournalRow._make, session.rows(sql, (n, after_seq, limit))))


def journal_scan(session: Session, after_pos: int, limit: int) -> list[JournalRow]:
    """The journal of all instances after a position."""
    sql = f"{_JOURNAL} WHERE pos > $1 ORDER BY pos LIMIT $2"
    return list(map(JournalRow._make, session.rows(sql, (after_pos, limit))))


def turns(session: Session, p: int, after: int, limit: int) -> list[TurnRow]:
    """The turns of a partition after a number."""
    return [TurnRow._make(row) for row in session.rows(_TURNS, (p, after, limit))]


def seals(session: Session, after: int, limit: int) -> list[Seal]:
    """The seals after a number."""
    return [Seal._make(row) for row in session.rows(_SEALS, (after, limit))]


def doubts(session: Session, tenant: str, instance_id: str, limit: int) -> list[DoubtRow]:
    """Effects in doubt, the oldest first; empty arguments do not filter."""
    rows = session.rows(_DOUBTS, (tenant, instance_id, limit))
    return [DoubtRow._make(row) for row in rows]


def check(session: Session) -> list[str]:
    """Problems PostgreSQL itself can see without reading every page; empty when there are none."""
    problems = [f"the index {name} is not valid" for (name,) in session.rows(_INVALID)]
    failures = session.row(_CHECKSUMS)
    if failures is not None and failures[0]:
        problems.append(f"{failures[0]} pages did not match their checksum")
    counted, wanted = session.row(_COUNT_PARTITIONS)
    if counted != wanted:
        problems.append(f"there are {counted} rows in the table partition, not {wanted}")
    return problems


def statistics(session: Session) -> dict[str, Any]:
    """Figures for people, and how many rows this connection has written."""
    figures = dict(zip(_FIGURE_NAMES, session.row(_FIGURES), strict=True))
    return {"total_changes": session.changes, **figures}
