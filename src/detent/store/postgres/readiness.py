"""What a turn reads: which instances are due, which have open effects, and their snapshots.

The due index begins with tenant and priority: each pair has a stretch of its own, and the backlog
of one tenant is never in the way of another's. Whatever is asked for many is one statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.kernel.chain import GENESIS
from detent.model.ids import SYSTEM
from detent.ports.due import DuePage, Ready, Stretch
from detent.ports.store import Loaded
from detent.store.postgres.statements import Rows, keys
from detent.store.postgres.values import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.due import DueQuery
    from detent.store.postgres.session import Session

Here = Column | None  # the partitions looked at; None for all there are

# One step down the index leads from a stretch to the next one.
_STRETCHES = """
WITH RECURSIVE first AS (
    (SELECT tenant, prio FROM instance WHERE due IS NOT NULL ORDER BY tenant, prio LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.prio FROM first CROSS JOIN LATERAL (
        SELECT tenant, prio FROM instance
        WHERE due IS NOT NULL AND (tenant, prio) > (first.tenant, first.prio)
        ORDER BY tenant, prio LIMIT 1) AS next)
SELECT tenant, prio, (
    SELECT due FROM instance AS here
    WHERE here.due IS NOT NULL AND here.tenant = first.tenant AND here.prio = first.prio
        AND ($1::bigint[] IS NULL OR here.p = ANY($1))
    ORDER BY here.due LIMIT 1)
FROM first
"""
# Of each stretch what is due, one row more than was asked for, and the first that is not due yet.
_DUE = Rows(
    """
SELECT new.at, found.n, found.id, found.p, found.tenant, found.prio, found.due
FROM $rows CROSS JOIN LATERAL (
    (SELECT n, id, p, tenant, prio, due FROM instance
    WHERE due IS NOT NULL AND tenant = new.tenant AND prio = new.prio
        AND (due, id) > (new.due, new.id) AND due <= $1
        AND ($2::bigint[] IS NULL OR p = ANY($2))
    ORDER BY due, id LIMIT new.most + 1)
    UNION ALL
    (SELECT n, id, p, tenant, prio, due FROM instance
    WHERE due IS NOT NULL AND tenant = new.tenant AND prio = new.prio
        AND (due, id) > (new.due, new.id) AND due > $1
        AND ($2::bigint[] IS NULL OR p = ANY($2))
    ORDER BY due, id LIMIT 1)) AS found
ORDER BY new.at, found.due, found.id
""",
    "at int, tenant text, prio int, due int, id text, most int",
)
_ANY_DUE = f"""
SELECT 1 FROM instance
WHERE due IS NOT NULL AND ns <> '{SYSTEM}' AND ($1::bigint[] IS NULL OR p = ANY($1)) LIMIT 1
"""
_BUSY = """
SELECT n FROM instance
WHERE busy AND n > $2 AND ($1::bigint[] IS NULL OR p = ANY($1)) ORDER BY n LIMIT $3
"""
_LOAD = """
SELECT i.n, i.id, i.p, i.tenant, i.salt, i.state, i.due, i.busy, i.prio, i.definition,
    s.version, s.body,
    (SELECT head FROM journal j WHERE j.inst = i.n ORDER BY j.seq DESC LIMIT 1)
FROM unnest($1) AS wanted(key) JOIN instance i ON i.{key} = wanted.key
LEFT JOIN snapshot s ON s.n = i.n
"""
_LOAD_IDS = _LOAD.format(key="id")
_LOAD_NUMBERS = _LOAD.format(key="n")


def within(partitions: Sequence[int], total: int) -> Here:
    """The partitions as a parameter; None when they are all of them."""
    wanted = sorted({int(p) for p in partitions})
    return None if wanted == list(range(total)) else keys(wanted, "int")


def stretches(session: Session, here: Here) -> list[Stretch]:
    """Every stretch with its earliest due tick, by tenant and priority."""
    rows = session.rows(_STRETCHES, (here,), keep=True)
    return sorted(Stretch._make(row) for row in rows if row[2] is not None)


def due(session: Session, here: Here, tick: int, queries: Sequence[DueQuery]) -> list[DuePage]:
    """What is due of each stretch asked for, by due tick and id."""
    if not queries:
        return []
    asked = [(at, q.tenant, q.priority, *q.after, q.limit) for at, q in enumerate(queries)]
    pages: list[list[Ready]] = [[] for _ in queries]
    for row in session.rows(*_DUE.of(asked, tick, here), keep=True):
        pages[row[0]].append(Ready._make(row[1:]))
    return [_page(rows, query.limit, tick) for rows, query in zip(pages, queries, strict=True)]


def _page(rows: list[Ready], limit: int, tick: int) -> DuePage:
    ready = [row for row in rows if row.due <= tick]
    if len(ready) > limit:
        return DuePage(ready[:limit], None)
    return DuePage(ready, rows[-1].due if len(rows) > len(ready) else None)


def any_due(session: Session, here: Here) -> bool:
    """Whether an instance that is not one of the engine's own has a due tick."""
    return session.row(_ANY_DUE, (here,)) is not None


def busy(session: Session, here: Here, after: int, limit: int) -> list[int]:
    """Numbers of instances with open effects, by n."""
    return [row[0] for row in session.rows(_BUSY, (here, after, limit))]


def load(session: Session, ids: Sequence[str]) -> dict[str, Loaded]:
    """The instances that exist, by id."""
    if not ids:
        return {}
    found = session.rows(_LOAD_IDS, (keys(ids),), keep=True)
    return {row[1]: _loaded(row) for row in found}


def load_numbers(session: Session, numbers: Sequence[int]) -> list[Loaded]:
    """The instances that exist, in the order asked for."""
    if not numbers:
        return []
    rows = session.rows(_LOAD_NUMBERS, (keys(numbers, "int"),), keep=True)
    found = {row[0]: _loaded(row) for row in rows}
    return [found[n] for n in numbers if n in found]


def _loaded(row: tuple[Any, ...]) -> Loaded:
    n, id, p, tenant, salt, state, due, busy, prio, definition, version, body, head = row
    version, head = version or 0, head or GENESIS
    return Loaded(n, id, p, tenant, salt, state, due, busy, prio, definition, version, body, head)
