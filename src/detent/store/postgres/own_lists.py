"""What events and deliveries are found by: written with a turn, read as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.ports.own import EventRow
from detent.ports.store import InstanceRow
from detent.store.postgres.statements import Rows
from detent.store.postgres.views import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detent.ports.own import DeliveryQuery, DeliveryRow
    from detent.store.postgres.session import Session
    from detent.store.postgres.statements import Statement

_UPSERT_EVENTS = Rows(
    """
INSERT INTO event(id, tenant, status, at_ms, correlator) SELECT * FROM $rows
ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, status = excluded.status,
    at_ms = excluded.at_ms, correlator = excluded.correlator
""",
    "id text, tenant text, status text, at_ms int, correlator text",
)
_DELETE_EVENTS = Rows(
    "DELETE FROM event USING $rows WHERE event.id = new.id AND event.correlator = new.correlator",
    "id text, correlator text",
)
_UPSERT_DELIVERIES = Rows(
    """
INSERT INTO delivery(n, tenant, url, event_type, delivered, error_class)
SELECT i.n, new.tenant, new.url, new.event_type, new.delivered, new.error_class
FROM $rows JOIN instance i ON i.id = new.instance
ON CONFLICT (n) DO UPDATE SET delivered = excluded.delivered, error_class = excluded.error_class
""",
    "instance text, tenant text, url text, event_type text, delivered bool, error_class text",
)
_EVENT = ", ".join(EventRow._fields)
_FACETS = ("url", "event_type", "delivered", "error_class")


# writing -----------------------------------------------------------------------------------------


def write_lists(
    events: Sequence[EventRow], deliveries: Sequence[DeliveryRow]
) -> Iterator[Statement]:
    """Write what a turn has changed; its instances are there already."""
    if events:
        yield from _event_rows(events)
    if deliveries:
        yield _UPSERT_DELIVERIES.of(_merged(deliveries))


def _event_rows(events: Sequence[EventRow]) -> Iterator[Statement]:
    """A statement may touch a row once, so what one event became several times is resolved here."""
    kept: dict[str, EventRow] = {}
    gone: dict[str, list[str]] = {}
    for event in events:
        if event.status:
            kept[event.id] = event
            gone.pop(event.id, None)  # written over, whatever was removed before
        else:
            gone.setdefault(event.id, []).append(event.correlator)
    if kept:
        yield _UPSERT_EVENTS.of(list(kept.values()))
    if gone:
        pairs = [(id, correlator) for id, correlators in gone.items() for correlator in correlators]
        yield _DELETE_EVENTS.of(pairs)


def _merged(deliveries: Sequence[DeliveryRow]) -> list[DeliveryRow]:
    """Each delivery once: as it was first told of, with how it ended last."""
    merged: dict[str, DeliveryRow] = {}
    for row in deliveries:
        first = merged.get(row.instance, row)
        merged[row.instance] = first._replace(delivered=row.delivered, error_class=row.error_class)
    return list(merged.values())


# reading -----------------------------------------------------------------------------------------


def events(session: Session, tenant: str, status: str, limit: int) -> list[EventRow]:
    """The newest events of a tenant; of one instant by their ids."""
    where = "AND status = $3" if status else ""
    sql = f"""SELECT {_EVENT} FROM event WHERE tenant = $1 {where}
        ORDER BY at_ms DESC, id LIMIT $2"""
    values = (tenant, limit, *([status] if status else ()))
    return [EventRow._make(row) for row in session.rows(sql, values)]


def event(session: Session, id: str) -> EventRow | None:
    """One event."""
    found = session.row(f"SELECT {_EVENT} FROM event WHERE id = $1", (id,))
    return None if found is None else EventRow._make(found)


def deliveries(session: Session, query: DeliveryQuery) -> list[InstanceRow]:
    """The newest deliveries that pass a filter; every index of theirs ends in the number."""
    wanted: dict[str, Any] = {name: getattr(query, name) for name in _FACETS}
    asked = {name: value for name, value in wanted.items() if value is not None}
    if query.tenant:
        asked["tenant"] = query.tenant
    where = " AND ".join(f"{name} = ${at}" for at, name in enumerate(asked, 1)) or "true"
    sql = f"""{COLUMNS} WHERE n IN (
            SELECT n FROM delivery WHERE {where} ORDER BY n DESC LIMIT ${len(asked) + 1}
        ) ORDER BY n DESC"""
    return [InstanceRow._make(row) for row in session.rows(sql, (*asked.values(), query.limit))]
