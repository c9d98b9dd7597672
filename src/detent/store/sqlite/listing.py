"""Lists of instances, the newest first: each filter walks the index that fits it best.

Every index ends in the instance's number, so a walk down it is in order already. Several states or
definitions are one walk each, merged; no list sorts a tenant's instances.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from detent.model.ids import SYSTEM
from detent.ports.store import InstanceRow
from detent.store.sqlite.statements import ManyRows, row_of, rows_of
from detent.store.sqlite.views import COLUMNS, instance_row

if TYPE_CHECKING:
    import apsw

    from detent.model.decision import Birth
    from detent.ports.listing import ListQuery

INSERT_LABELS = ManyRows(
    "INSERT INTO label(tenant, name, value, n) VALUES", "(?, ?, ?, ?)", "ON CONFLICT DO NOTHING"
)
_START = "SELECT body FROM arrival WHERE id = ? AND body IS NOT NULL"
_LABELLED = "n IN (SELECT n FROM label WHERE tenant = ? AND name = ? AND value = ?)"
_STORED = (
    "EXISTS (SELECT 1 FROM definition d INDEXED BY definition_hash"
    " WHERE d.hash = instance.definition AND d.tenant = instance.tenant)"
)
_LABELLED_BY_ALL = "n IN (SELECT n FROM label WHERE name = ? AND value = ?)"


def label_rows(birth: Birth, n: int) -> list[Any]:
    """The labels of a new instance."""
    flat: list[Any] = []
    for name, value in birth.labels:
        flat += (birth.tenant, name, value, n)
    return flat


def recent_instances(connection: apsw.Connection, query: ListQuery) -> list[InstanceRow]:
    """The newest instances that pass the filter."""
    most = query.offset + query.limit
    walks: list[str] = []
    values: list[Any] = []
    for definition, state in product(query.definitions or ("",), query.states or ("",)):
        sql, bound = _walk(query, definition, state)
        walks.append(f"SELECT * FROM ({sql} ORDER BY n DESC LIMIT ?)")
        values += (*bound, most)
    numbers = " UNION ALL ".join(walks)
    sql = f"""{COLUMNS} WHERE n IN (SELECT n FROM ({numbers}) ORDER BY n DESC LIMIT ? OFFSET ?)
        ORDER BY n DESC"""
    found = rows_of(connection, sql, (*values, query.limit, query.offset))
    return [instance_row(row) for row in found]


def waiting_start(connection: apsw.Connection, instance: str) -> bytes | None:
    """The start of an instance that no writer has taken in yet."""
    row = row_of(connection, _START, (f"start:{instance}",))
    return None if row is None else bytes(row[0])


def _walk(query: ListQuery, definition: str, state: str) -> tuple[str, list[Any]]:
    """One walk: the numbers of a definition and state, whichever of these are asked for."""
    conditions = [f"ns <> '{SYSTEM}'"]
    values: list[Any] = []
    for column, value in (
        ("tenant", query.tenant),
        ("definition", definition),
        ("state", state),
        ("ns", query.namespace),
    ):
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    for name, value in query.labels:
        conditions.append(_LABELLED if query.tenant else _LABELLED_BY_ALL)
        values += (query.tenant, name, value) if query.tenant else (name, value)
    if query.before:
        conditions.append("n < ?")
        values.append(query.before)
    if query.stored:
        conditions.append(_STORED)
    index = _index(query, definition, state)
    return f"SELECT n FROM instance {index} WHERE {' AND '.join(conditions)}", values


def _index(query: ListQuery, definition: str, state: str) -> str:
    if query.labels:
        return "NOT INDEXED"  # by number, out of the few that carry the label
    if query.tenant and definition:
        return "INDEXED BY instance_definition"
    if query.tenant and state:
        return "INDEXED BY instance_state"
    if query.tenant and query.namespace:
        return "INDEXED BY instance_namespace"
    return "NOT INDEXED"
