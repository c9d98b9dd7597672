"""What a turn reads: which instances are due, which have open effects, and their snapshots.

The due index begins with tenant and priority: each pair has a stretch of its own, and the backlog
of one tenant is never in the way of another's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.kernel.chain import GENESIS
from detent.model.ids import SYSTEM
from detent.ports.due import DuePage, Ready, Stretch
from detent.ports.store import Loaded
from detent.store.sqlite.statements import ManyKeys, row_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.ports.due import DueQuery

# One step down the index leads from the first row of a stretch to the first row of the next one:
# the tenant's next priority, or else the next tenant.
_STRETCHES = """
WITH RECURSIVE first(n, tenant, prio) AS (
    SELECT * FROM (
        SELECT n, tenant, prio FROM instance INDEXED BY instance_due
        WHERE due IS NOT NULL ORDER BY tenant, prio LIMIT 1)
    UNION ALL
    SELECT next.n, next.tenant, next.prio FROM first JOIN instance next ON next.n = coalesce(
        (SELECT n FROM instance INDEXED BY instance_due
        WHERE due IS NOT NULL AND tenant = first.tenant AND prio > first.prio
        ORDER BY prio LIMIT 1),
        (SELECT n FROM instance INDEXED BY instance_due
        WHERE due IS NOT NULL AND tenant > first.tenant ORDER BY tenant, prio LIMIT 1)))
SELECT tenant, prio, (
    SELECT due FROM instance here INDEXED BY instance_due
    WHERE due IS NOT NULL AND here.tenant = first.tenant AND here.prio = first.prio $here
    ORDER BY due LIMIT 1)
FROM first
"""
_DUE = """
SELECT n, id, p, tenant, prio, due FROM instance INDEXED BY instance_due
WHERE due IS NOT NULL AND tenant = ? AND prio = ? AND (due, id) > (?, ?) $here
ORDER BY due, id LIMIT ?
"""
_ANY_DUE = f"""
SELECT 1 FROM instance INDEXED BY instance_due
WHERE due IS NOT NULL AND ns <> '{SYSTEM}' $here LIMIT 1
"""
_BUSY = """
SELECT n FROM instance INDEXED BY instance_busy
WHERE busy = 1 AND n > ? $here ORDER BY n LIMIT ?
"""
_LOAD = """
SELECT i.n, i.id, i.p, i.tenant, i.salt, i.state, i.due, i.busy, i.prio, i.definition,
    s.version, s.body,
    (SELECT head FROM journal j WHERE j.inst = i.n ORDER BY j.seq DESC LIMIT 1)
FROM instance i LEFT JOIN snapshot s ON s.n = i.n
"""
_LOAD_IDS = ManyKeys(f"{_LOAD} WHERE i.id IN ($keys)")
_LOAD_NUMBERS = ManyKeys(f"{_LOAD} WHERE i.n IN ($keys)")


def within(partitions: Sequence[int], total: int) -> str:
    """The condition that a row lies in one of the partitions; none when they are all of them."""
    wanted = sorted({int(p) for p in partitions})
    if wanted == list(range(total)):
        return ""
    # No row is in partition -1; an empty list could not be answered from the index.
    return f"AND p IN ({', '.join(map(str, wanted or [-1]))})"


def stretches(connection: apsw.Connection, here: str) -> list[Stretch]:
    """Every stretch with its earliest due tick, by tenant and priority."""
    rows = rows_of(connection, _STRETCHES.replace("$here", here))
    return sorted(Stretch._make(row) for row in rows if row[2] is not None)


def due(
    connection: apsw.Connection, here: str, tick: int, queries: Sequence[DueQuery]
) -> list[DuePage]:
    """What is due of each stretch asked for, by due tick and id; reads what it returns."""
    sql = _DUE.replace("$here", here)
    return [_page(connection, sql, tick, query) for query in queries]


def _page(connection: apsw.Connection, sql: str, tick: int, query: DueQuery) -> DuePage:
    """Rows are stepped to only until one is not due, so one statement tells when that will be."""
    tenant, priority, after, limit = query
    cursor = connection.execute(sql, (tenant, priority, *after, limit + 1))
    rows: list[Ready] = []
    later = None
    for row in cursor:
        if row[5] > tick:
            later = row[5]
            break
        if len(rows) == limit:
            break
        rows.append(Ready._make(row))
    cursor.close()  # it holds no read lock
    return DuePage(rows, later)


def any_due(connection: apsw.Connection, here: str) -> bool:
    """Whether an instance that is not one of the engine's own has a due tick."""
    return row_of(connection, _ANY_DUE.replace("$here", here)) is not None


def busy(connection: apsw.Connection, here: str, after: int, limit: int) -> list[int]:
    """Numbers of instances with open effects, by n."""
    return [row[0] for row in rows_of(connection, _BUSY.replace("$here", here), (after, limit))]


def load(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, Loaded]:
    """The instances that exist, by id."""
    return {row[1]: _loaded(row) for row in _LOAD_IDS.fetch(connection, ids)}


def load_numbers(connection: apsw.Connection, numbers: Sequence[int]) -> list[Loaded]:
    """The instances that exist, in the order asked for."""
    found = {row[0]: _loaded(row) for row in _LOAD_NUMBERS.fetch(connection, numbers)}
    return [found[n] for n in numbers if n in found]


def _loaded(row: tuple[Any, ...]) -> Loaded:
    n, id, p, tenant, salt, state, due, busy, prio, definition, version, body, head = row
    version, head = version or 0, head or GENESIS
    return Loaded(
        n, id, p, tenant, salt, state, due, busy == 1, prio, definition, version, body, head
    )
