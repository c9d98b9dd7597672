"""Events from outside: told to the correlator of their key, listed and shown.

An event's id derives from tenant, name and the producer's own id, and is the id it is submitted
under: so the same event told twice, by whomever, is taken once, whatever its correlation key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from detent.definition.system import EVENTS
from detent.expression.redaction import redacted
from detent.kernel.correlation import Correlation, Event, read_correlation
from detent.kernel.listening import correlator_id, correlator_start, event_id
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.model.inputs import EventArrived, encode_input
from detent.model.link import Submission
from detent.model.payload import encode_payload
from detent.service.arguments import invalid, shown, storable
from detent.service.catalogue import definition_row
from detent.service.reading import check_tenant, read_snapshot

if TYPE_CHECKING:
    from detent.model.decision import Verdict
    from detent.ports.own import EventRow
    from detent.ports.store import InstanceRow, Store

STATUSES = ("pending", "consumed", "expired")
_FIELDS = {
    "tenant_id": limits.NAME_CHARS,
    "event_name": limits.NAME_CHARS,
    "producer_event_id": limits.KEY_CHARS,
    "correlation_key": limits.KEY_CHARS,
}


class EventRequest(Struct, frozen=True, kw_only=True):
    """An event as a producer tells it, checked."""

    tenant: str
    event_name: str
    producer_event_id: str
    correlation_key: str
    payload: Any = None

    @property
    def id(self) -> str:
        """The same event told twice has the same id."""
        return event_id(self.tenant, self.event_name, self.producer_event_id)

    @property
    def correlator(self) -> str:
        """The instance that takes it."""
        return correlator_id(self.tenant, self.correlation_key)


class EventOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an event; on the wire `duplicate` is 200, else it is 201."""

    event_id: str
    duplicate: bool
    satisfied: bool
    matched_wait: str | None = None


class EventView(Struct, frozen=True, kw_only=True):
    """An event as it stands; its payload without what looks like a secret."""

    id: str
    tenant_id: str
    event_name: str
    producer_event_id: str
    correlation_key: str
    payload: Any
    status: str
    consumed_by: str | None  # the wait it went to
    instance_id: str | None  # whose wait that is
    received_ms: int


# telling -----------------------------------------------------------------------------------------


def read_event(raw: Any, tenant: str | None) -> EventRequest:
    """An event out of what came; `tenant` is the caller's, None for the operator."""
    if not isinstance(raw, Mapping):
        raise RequestError("event.invalid", f"an event must be an object; got {shown(raw)}")
    given = {**raw, "tenant_id": raw.get("tenant_id") or tenant}
    for name, most in _FIELDS.items():
        value: Any = given.get(name)
        if not storable(value) or not value.strip() or len(value) > most:
            expected = f"text of 1 to {most} characters that is not blank"
            raise RequestError("event.invalid", f"{name} must be {expected}; got {shown(value)}")
    if tenant is not None and given["tenant_id"] != tenant:
        raise RequestError(
            "request.forbidden", f"the event is of tenant {shown(given['tenant_id'])}, not yours"
        )
    encode_payload(raw.get("payload"), where="payload", limit=limits.EVENT_BYTES)
    return EventRequest(
        tenant=given["tenant_id"],
        event_name=given["event_name"],
        producer_event_id=given["producer_event_id"],
        correlation_key=given["correlation_key"],
        payload=raw.get("payload"),
    )


def read_events(raw: Any, tenant: str | None) -> list[EventRequest]:
    """The events of a batch, all of them checked before the first is told."""
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise RequestError("event.invalid", f"events must be a list; got {shown(raw)}")
    if not 0 < len(raw) <= limits.EVENT_BATCH:
        raise RequestError(
            "event.invalid", f"a batch holds 1 to {limits.EVENT_BATCH} events; got {len(raw)}"
        )
    return [read_event(each, tenant) for each in raw]


def correlator_missing(store: Store, event: EventRequest) -> bool:
    """Whether the correlator of an event's key must be started before the event is told."""
    return store.instance(event.correlator) is None


def keep_correlator(store: Store, tenant: str, now_ms: int) -> None:
    """Store the definition that a tenant's correlators run; twice is as good as once."""
    store.put_definition(definition_row(EVENTS, (tenant, SYSTEM), now_ms))


def correlator_submission(event: EventRequest, seed: str, ack: int = 0) -> Submission:
    """Start the correlator of an event's key; one that is there stays as it is."""
    started, birth = correlator_start(event.tenant, event.correlation_key, EVENTS.hash, seed)
    return Submission(birth.id, encode_input(started), ack=ack, id=started.id, birth=birth)


def event_submission(event: EventRequest, call: str, ack: int = 0) -> Submission:
    """Tell an event to its correlator, which is there; `call` is fresh for each telling."""
    payload = Raw(encode_payload(event.payload, where="payload", limit=limits.EVENT_BYTES))
    told = EventArrived(
        event_id=event.id,
        event_name=event.event_name,
        producer_event_id=event.producer_event_id,
        payload=payload,
        call=call,
        id=event.id,
    )
    return Submission(event.correlator, encode_input(told), ack=ack, id=event.id, ask=True)


def outcome_of(verdict: Verdict, call: str) -> EventOutcome:
    """What became of an event; the verdict of an earlier telling makes this one a duplicate."""
    said = verdict.result
    return EventOutcome(
        event_id=said["event_id"],
        duplicate=said["duplicate"] or said["call"] != call,
        satisfied=said["satisfied"],
        matched_wait=said["matched_wait"],
    )


# reading -----------------------------------------------------------------------------------------


def list_events(
    store: Store, tenant: str, status: str | None = None, limit: int = 100
) -> list[EventView]:
    """The newest events of a tenant; each of them is kept for 14 days."""
    check_tenant(tenant)
    if status is not None and status not in STATUSES:
        raise invalid("status", f"one of {', '.join(STATUSES)}", status)
    if type(limit) is not int or not 0 < limit <= limits.EVENTS_LISTED:
        raise invalid("limit", f"a whole number from 1 to {limits.EVENTS_LISTED}", limit)
    kept: dict[str, Correlation | None] = {}
    found: list[EventView] = []
    for row in store.events(tenant, status or "", limit):
        if row.correlator not in kept:
            kept[row.correlator] = _correlation(store, row)
        correlation = kept[row.correlator]
        event = None if correlation is None else correlation.known(row.id)
        if correlation is not None and event is not None:
            found.append(_view(tenant, correlation, event))
    return found


def show_event(store: Store, id: str, tenant: str | None) -> EventView:
    """One event; `event.not_found` where this tenant has none of that id."""
    check_tenant(tenant)
    row = store.event(id) if storable(id) else None
    if row is not None and tenant in (None, row.tenant):
        correlation = _correlation(store, row)
        event = None if correlation is None else correlation.known(row.id)
        if correlation is not None and event is not None:
            return _view(row.tenant, correlation, event)
    raise unknown_event(id)


def unknown_event(id: object) -> RequestError:
    """The error for an id that no event has."""
    return RequestError("event.not_found", f"there is no event {shown(id)}", id=str(id)[:80])


def _correlation(store: Store, row: EventRow) -> Correlation | None:
    """What the correlator of an event keeps."""
    found = store.instance(row.correlator)
    return None if found is None else _kept(store, found)


def _kept(store: Store, row: InstanceRow) -> Correlation | None:
    snapshot = read_snapshot(store, row)
    return None if snapshot is None or not snapshot.kv else read_correlation(snapshot.kv)


def _view(tenant: str, correlation: Correlation, event: Event) -> EventView:
    return EventView(
        id=event.id,
        tenant_id=tenant,
        event_name=event.name,
        producer_event_id=event.producer,
        correlation_key=correlation.key,
        payload=redacted(event.payload),
        status=event.status,
        consumed_by=event.wait or None,
        instance_id=event.instance or None,
        received_ms=event.at,
    )
