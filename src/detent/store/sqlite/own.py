"""Lists of the engine's own instances of one kind, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.ids import SYSTEM
from detent.ports.store import InstanceRow
from detent.store.sqlite.statements import rows_of

if TYPE_CHECKING:
    import apsw

    from detent.ports.own import OwnQuery

_STATES = ("scheduled", "running", "waiting", "paused", "completed", "failed", "cancelled")
COLUMNS = ", ".join(
    "ns" if name == "namespace" else "prio" if name == "priority" else name
    for name in InstanceRow._fields
)
_LAST = (1 << 63) - 1


def own_instances(connection: apsw.Connection, query: OwnQuery) -> list[InstanceRow]:
    """One walk down the index per state, each against the order of n, merged."""
    # The literal lets SQLite use the partial index.
    index = "instance_own_tenant" if query.tenant else "instance_own_kind"
    walk = f"""SELECT * FROM (SELECT n FROM instance INDEXED BY {index}
        WHERE ns = '{SYSTEM}' AND definition = ? AND state = ? AND n < ? {{tenant}}
        ORDER BY n DESC LIMIT ?)"""
    walk = walk.format(tenant="AND tenant = ?" if query.tenant else "")
    tenant = (query.tenant,) if query.tenant else ()
    walks: list[str] = []
    values: list[Any] = []
    for state in dict.fromkeys(query.states or _STATES):
        walks.append(walk)
        values += (query.definition, state, query.before or _LAST, *tenant, query.limit)
    sql = f"""SELECT {COLUMNS} FROM instance
        WHERE n IN ({" UNION ALL ".join(walks)}) ORDER BY n DESC LIMIT ?"""
    found = [InstanceRow._make(row) for row in rows_of(connection, sql, (*values, query.limit))]
    return [row._replace(busy=bool(row.busy)) for row in found]
