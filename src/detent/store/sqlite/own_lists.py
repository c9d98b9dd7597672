"""What events and deliveries are found by: written with a turn, read as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.ports.own import EventRow
from detent.ports.store import InstanceRow
from detent.store.sqlite.own import COLUMNS
from detent.store.sqlite.statements import row_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from detent.ports.own import DeliveryQuery, DeliveryRow

_UPSERT_EVENT = """
INSERT INTO event(id, tenant, status, at_ms, correlator) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET tenant = excluded.tenant, status = excluded.status,
    at_ms = excluded.at_ms, correlator = excluded.correlator
"""
_DELETE_EVENT = "DELETE FROM event WHERE id = ? AND correlator = ?"
_UPSERT_DELIVERY = """
INSERT INTO delivery(n, tenant, url, event_type, delivered, error_class)
SELECT n, ?, ?, ?, ?, ? FROM instance WHERE id = ?
ON CONFLICT DO UPDATE SET delivered = excluded.delivered, error_class = excluded.error_class
"""
_EVENT = ", ".join(EventRow._fields)
_BY_STATUS = {"": "event_at", "AND status = ?": "event_status"}
# The first that is asked for decides which index is walked; the others are looked at on the way.
_FACETS = ("url", "error_class", "event_type", "delivered")


# writing -----------------------------------------------------------------------------------------


def write_lists(
    connection: apsw.Connection, events: Sequence[EventRow], deliveries: Sequence[DeliveryRow]
) -> None:
    """Write what a turn has changed, inside its transaction; its instances are there already."""
    for event in events:
        if event.status:
            connection.execute(_UPSERT_EVENT, event)
        else:
            connection.execute(_DELETE_EVENT, (event.id, event.correlator))
    for row in deliveries:
        connection.execute(_UPSERT_DELIVERY, (*row[1:], row.instance))


# reading -----------------------------------------------------------------------------------------


def events(connection: apsw.Connection, tenant: str, status: str, limit: int) -> list[EventRow]:
    """The newest events of a tenant; of one instant by their ids."""
    where = "AND status = ?" if status else ""
    sql = f"""SELECT {_EVENT} FROM event INDEXED BY {_BY_STATUS[where]}
        WHERE tenant = ? {where} ORDER BY at_ms DESC, id LIMIT ?"""
    values = (tenant, *([status] if status else ()), limit)
    return [EventRow._make(row) for row in rows_of(connection, sql, values)]


def event(connection: apsw.Connection, id: str) -> EventRow | None:
    """One event."""
    found = row_of(connection, f"SELECT {_EVENT} FROM event WHERE id = ?", (id,))
    return None if found is None else EventRow._make(found)


def deliveries(connection: apsw.Connection, query: DeliveryQuery) -> list[InstanceRow]:
    """The newest deliveries that pass a filter."""
    asked = [(name, getattr(query, name)) for name in _FACETS if getattr(query, name) is not None]
    first = asked[0][0] if asked else ""
    if query.tenant:
        asked.insert(0, ("tenant", query.tenant))
    index = "_".join(filter(None, ("delivery", "tenant" if query.tenant else "", first)))
    by = f"INDEXED BY {index}" if asked else ""
    where = " AND ".join(f"{name} = ?" for name, _ in asked) or "n > 0"
    sql = f"""SELECT {COLUMNS} FROM instance WHERE n IN (
            SELECT n FROM delivery {by} WHERE {where} ORDER BY n DESC LIMIT ?
        ) ORDER BY n DESC"""
    values: list[Any] = [value for _, value in asked]
    found = rows_of(connection, sql, (*values, query.limit))
    return [row._replace(busy=bool(row.busy)) for row in map(InstanceRow._make, found)]
