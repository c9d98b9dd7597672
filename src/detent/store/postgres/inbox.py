"""Arrivals: left by anybody in any order, taken by the writer in the order of `n`.

A look is shared between the tenants that have some waiting, so that one who left thousands is not
in the way of another. Whose an arrival is says the row of its instance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.model.decision import Verdict
from detent.ports.store import Arrival
from detent.store.postgres.births import insert_missing
from detent.store.postgres.failures import Doubtful
from detent.store.postgres.statements import Rows, keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.store import NewArrival
    from detent.store.postgres.readiness import Here
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_INSERT_ARRIVALS = Rows(
    """
INSERT INTO arrival(id, p, inst, body, tenant)
SELECT id, p, inst, body,
    coalesce(new.tenant, (SELECT i.tenant FROM instance i WHERE i.id = new.inst), '')
FROM $rows ON CONFLICT (id) DO NOTHING RETURNING id
""",
    "id text, p int, inst text, body bytes, tenant text",
)
# One step down the index leads from a tenant to the next; then so many of each.
_FIRST_LOOK = """
WITH RECURSIVE has AS (
    SELECT min(tenant) AS tenant, 1 AS at FROM arrival WHERE body IS NOT NULL AND tenant > $1
    UNION ALL
    SELECT (SELECT min(tenant) FROM arrival WHERE body IS NOT NULL AND tenant > has.tenant), at + 1
    FROM has WHERE has.tenant IS NOT NULL AND at <= $2),
again AS (
    SELECT min(tenant) AS tenant, 1 AS at FROM arrival WHERE body IS NOT NULL
    UNION ALL
    SELECT (SELECT min(tenant) FROM arrival WHERE body IS NOT NULL AND tenant > again.tenant),
        at + 1
    FROM again WHERE again.tenant < $1 AND at <= $2),
line AS (
    SELECT tenant, row_number() OVER (ORDER BY turn, at) AS at FROM (
        SELECT tenant, 0 AS turn, at FROM has WHERE tenant IS NOT NULL
        UNION ALL
        SELECT tenant, 1, at FROM again WHERE tenant <= $1) AS both_rounds
    ORDER BY turn, at LIMIT $2)
SELECT line.at, line.tenant, found.n, found.id, found.p, found.inst, found.body FROM line
LEFT JOIN LATERAL (
    SELECT n, id, p, inst, body FROM arrival
    WHERE body IS NOT NULL AND tenant = line.tenant AND ($3::bigint[] IS NULL OR p = ANY($3))
    ORDER BY n LIMIT greatest($2 / (SELECT count(*) FROM line), 1)) AS found ON true
ORDER BY line.at, found.n
"""
_MORE = Rows(
    """
SELECT new.tenant, found.n, found.id, found.p, found.inst, found.body
FROM $rows CROSS JOIN LATERAL (
    SELECT n, id, p, inst, body FROM arrival
    WHERE body IS NOT NULL AND tenant = new.tenant AND n > new.after
        AND ($1::bigint[] IS NULL OR p = ANY($1))
    ORDER BY n LIMIT $2) AS found
ORDER BY new.at, found.n
""",
    "at int, tenant text, after int",
)
# The first verdict stays: the same id asked again gets the same answer.
_TAKE_ARRIVALS = Rows(
    """
INSERT INTO arrival(id, verdict, taken) SELECT id, verdict, $1 FROM $rows
ON CONFLICT (id) DO UPDATE SET body = NULL, verdict = excluded.verdict, taken = excluded.taken
WHERE arrival.taken IS NULL
""",
    "id text, verdict bytes",
)
_SELECT_VERDICTS = """
SELECT a.id, a.verdict FROM unnest($1) AS wanted(id) JOIN arrival a ON a.id = wanted.id
"""
_FORGET = """
DELETE FROM arrival WHERE id IN (
    SELECT id FROM arrival WHERE taken < $1 ORDER BY taken LIMIT $2)
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Verdict).decode


def enqueue(
    session: Session, arrivals: Sequence[NewArrival], tick: int, after: Sequence[Statement]
) -> list[bool]:
    """Leave arrivals and births in one transaction; whether each id was new.

    When nobody knows whether they were left they are left again: the same ids are there once.
    """
    if not arrivals:
        return []
    born = insert_missing(arrivals, tick)
    statements = [insert_arrivals(arrivals)]
    if born is not None:
        statements.insert(0, born)
    try:
        cursors = session.transact(statements, after)
    except Doubtful:
        cursors = session.transact(statements, after)
    left = {row[0]: True for row in cursors[-1]}
    return [left.pop(arrival.id, False) for arrival in arrivals]


def insert_arrivals(arrivals: Sequence[NewArrival]) -> Statement:
    """Insert or nothing; returns the ids that were new."""
    return _INSERT_ARRIVALS.of(
        [
            (
                arrival.id,
                arrival.p,
                arrival.instance,
                arrival.body,
                None if arrival.birth is None else arrival.birth.tenant,
            )
            for arrival in arrivals
        ]
    )


def take_arrivals(taken: Sequence[tuple[str, Verdict | None]], tick: int) -> Statement:
    """Turn arrivals into (id, verdict); unknown ids are remembered too."""
    first: dict[str, bytes | None] = {}
    for id, verdict in taken:
        first.setdefault(id, None if verdict is None else _encode(verdict))
    return _TAKE_ARRIVALS.of(list(first.items()), tick)


def arrivals(session: Session, here: Here, limit: int, after: str) -> list[Arrival]:
    """What waits to be taken, shared between the tenants, of each in its order."""
    found: dict[str, list[Arrival]] = {}
    for _at, tenant, *row in session.rows(_FIRST_LOOK, (after, limit, here), keep=True):
        rows = found.setdefault(tenant, [])
        if row[0] is not None:
            rows.append(_arrival(tenant, row))
    if not found:
        return []
    share = max(limit // len(found), 1)
    hungry = [tenant for tenant, rows in found.items() if len(rows) == share]
    left = limit - sum(map(len, found.values()))
    while hungry and left:
        share = max(left // len(hungry), 1)
        served = hungry[:left]
        counts = dict.fromkeys(served, 0)
        asked = [(at, tenant, found[tenant][-1].n) for at, tenant in enumerate(served)]
        for tenant, *row in session.rows(*_MORE.of(asked, here, share), keep=True):
            found[tenant].append(_arrival(tenant, row))
            counts[tenant] += 1
        left -= sum(counts.values())
        hungry = [tenant for tenant, count in counts.items() if count == share]
    return [row for rows in found.values() for row in rows]


def _arrival(tenant: str, row: Sequence[Any]) -> Arrival:
    n, id, p, instance, body = row
    return Arrival(n, id, p, instance, body, tenant)


def verdicts(session: Session, ids: Sequence[str]) -> dict[str, Verdict | None]:
    """The ids that have been left before, with their verdicts once they are taken."""
    if not ids:
        return {}
    rows = session.rows(_SELECT_VERDICTS, (keys(ids),), keep=True)
    return {id: None if body is None else _decode(body) for id, body in rows}


def forget(session: Session, before_tick: int, limit: int) -> int:
    """Remove taken arrivals older than the tick, the oldest first."""
    return session.change(_FORGET, (before_tick, limit))
