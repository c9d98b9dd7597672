"""What a turn reads: which instances are due, which have open effects, and their snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.kernel.chain import GENESIS
from detent.ports.store import Loaded, Ready
from detent.store.sqlite.statements import ManyKeys, row_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

# Priorities are few; each is found by one step down the index, and read in its order.
_HIGHEST_PRIORITY = "SELECT max(prio) FROM instance INDEXED BY instance_due WHERE due IS NOT NULL"
_LOWER_PRIORITY = f"{_HIGHEST_PRIORITY} AND prio < ?"
_DUE = """
SELECT n, id, p, prio, due FROM instance INDEXED BY instance_due
WHERE due IS NOT NULL AND prio = ? AND due <= ? $here ORDER BY due, id LIMIT ?
"""
_NEXT_DUE = """
SELECT due FROM instance INDEXED BY instance_due
WHERE due IS NOT NULL AND prio = ? $here ORDER BY due LIMIT 1
"""
_BUSY = """
SELECT n FROM instance INDEXED BY instance_busy
WHERE busy = 1 AND n > ? $here ORDER BY n LIMIT ?
"""
_LOAD = """
SELECT i.n, i.id, i.p, i.salt, i.state, i.due, i.busy, i.prio, i.definition, s.version, s.body,
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


def due(connection: apsw.Connection, here: str, tick: int, limit: int) -> list[Ready]:
    """Due instances by priority descending, due, id; reads what it returns, and ties."""
    ready: list[Ready] = []
    sql = _DUE.replace("$here", here)
    priority = row_of(connection, _HIGHEST_PRIORITY)[0]
    while priority is not None and len(ready) < limit:
        values = (priority, tick, limit - len(ready))
        ready += map(Ready._make, rows_of(connection, sql, values))
        priority = row_of(connection, _LOWER_PRIORITY, (priority,))[0]
    return ready


def next_due(connection: apsw.Connection, here: str) -> int | None:
    """The earliest due tick of all waiting instances."""
    found: list[int] = []
    sql = _NEXT_DUE.replace("$here", here)
    priority = row_of(connection, _HIGHEST_PRIORITY)[0]
    while priority is not None:
        found += [row[0] for row in rows_of(connection, sql, (priority,))]
        priority = row_of(connection, _LOWER_PRIORITY, (priority,))[0]
    return min(found, default=None)


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
    n, id, p, salt, state, due, busy, prio, definition, version, body, head = row
    return Loaded(
        n, id, p, salt, state, due, busy == 1, prio, definition, version or 0, body, head or GENESIS
    )
