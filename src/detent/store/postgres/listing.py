"""Lists of instances, the newest first: each filter walks the index that fits it best.

Every index ends in the instance's number, so a walk down it is in order already. Several states or
definitions are one walk each, merged; no list sorts a tenant's instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.ids import SYSTEM
from detent.ports.store import InstanceRow
from detent.store.postgres.statements import keys
from detent.store.postgres.views import COLUMNS, STATES

if TYPE_CHECKING:
    from detent.ports.listing import ListQuery
    from detent.ports.own import OwnQuery
    from detent.store.postgres.session import Session

_STORED = """EXISTS (SELECT 1 FROM definition d
        WHERE d.hash = instance.definition AND d.tenant = instance.tenant)"""
_START = "SELECT body FROM arrival WHERE id = $1 AND body IS NOT NULL"


class _Values:
    """Values of a statement, each with the name it is bound by."""

    def __init__(self) -> None:
        self.bound: list[Any] = []

    def add(self, value: Any) -> str:
        """Bind one more."""
        self.bound.append(value)
        return f"${len(self.bound)}"


def recent_instances(session: Session, query: ListQuery) -> list[InstanceRow]:
    """The newest instances that pass the filter."""
    values = _Values()
    walks: list[str] = []
    conditions = [f"ns <> '{SYSTEM}'"]
    for column, some in (("definition", query.definitions), ("state", query.states)):
        if some:
            walks.append(f"unnest({values.add(keys(some))}) AS {column}s({column})")
            conditions.append(f"instance.{column} = {column}s.{column}")
    for column, value in (("tenant", query.tenant), ("ns", query.namespace)):
        if value:
            conditions.append(f"instance.{column} = {values.add(value)}")
    if query.before:
        conditions.append(f"n < {values.add(query.before)}")
    if query.stored:
        conditions.append(_STORED)
    for name, value in query.labels:
        conditions.append(_labelled(query, name, value, values))
    walks.append("(VALUES (1)) AS one(walk)")
    most = values.add(query.offset + query.limit)
    sql = f"""
SELECT found.* FROM {" CROSS JOIN ".join(walks)} CROSS JOIN LATERAL (
    {COLUMNS} WHERE {" AND ".join(conditions)} ORDER BY n DESC LIMIT {most}) AS found
ORDER BY found.n DESC LIMIT {values.add(query.limit)} OFFSET {values.add(query.offset)}
"""
    return [InstanceRow._make(row) for row in session.rows(sql, values.bound)]


def own_instances(session: Session, query: OwnQuery) -> list[InstanceRow]:
    """One walk down the index per state, each against the order of n, merged."""
    values = _Values()
    states = values.add(keys(list(dict.fromkeys(query.states or STATES))))
    conditions = f"ns = '{SYSTEM}' AND definition = {values.add(query.definition)}"
    if query.tenant:
        conditions += f" AND tenant = {values.add(query.tenant)}"
    if query.before:
        conditions += f" AND n < {values.add(query.before)}"
    limit = values.add(query.limit)
    sql = f"""
SELECT found.* FROM unnest({states}) AS wanted(state) CROSS JOIN LATERAL (
    {COLUMNS} WHERE {conditions} AND instance.state = wanted.state
    ORDER BY n DESC LIMIT {limit}) AS found
ORDER BY found.n DESC LIMIT {limit}
"""
    return [InstanceRow._make(row) for row in session.rows(sql, values.bound)]


def waiting_start(session: Session, instance: str) -> bytes | None:
    """The start of an instance that no writer has taken in yet."""
    row = session.row(_START, (f"start:{instance}",))
    return None if row is None else bytes(row[0])


def _labelled(query: ListQuery, name: str, value: str, values: _Values) -> str:
    """The condition that an instance carries a label; of all tenants where none is named."""
    whose = f"label.tenant = {values.add(query.tenant)} AND " if query.tenant else ""
    return f"""n IN (SELECT label.n FROM label
        WHERE {whose}label.name = {values.add(name)} AND label.value = {values.add(value)})"""
