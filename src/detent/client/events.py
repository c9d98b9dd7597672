"""`client.events`: events of producers, told to the steps that wait for them, over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from detent.client.talking import Talk
from detent.client.verb import D, Surface, one, verb
from detent.model import limits
from detent.model.payload import encode_payload
from detent.service import events
from detent.service.arguments import listed
from detent.service.events import EventOutcome, EventRequest, EventView, unknown_event


class Outcomes(Struct, frozen=True):
    """What became of each event of a batch."""

    outcomes: list[EventOutcome]


class Events(Surface[D]):
    """Events by tenant and correlation key; one told twice counts once."""

    @verb
    def send(
        self,
        event_name: str,
        correlation_key: str,
        producer_event_id: str,
        payload: Any = None,
        *,
        tenant: str | None = None,
    ) -> Talk[EventOutcome]:
        """Tell an event; what became of it once that is durable.

        `producer_event_id` is the producer's own: the same one of a name is the same event.
        """
        whose = self._whose(tenant)
        told = {
            "tenant_id": whose,
            "event_name": event_name,
            "correlation_key": correlation_key,
            "producer_event_id": producer_event_id,
            "payload": payload,
        }
        body = _sent(events.read_event(told, whose))
        return (yield from self._send("POST", "/events", body, EventOutcome, whose))

    @verb
    def send_many(
        self, told: Iterable[Mapping[str, Any]], *, tenant: str | None = None
    ) -> Talk[list[EventOutcome]]:
        """Tell up to 100 events in order; none of them if one is not well formed."""
        whose = self._whose(tenant)
        checked = events.read_events(listed("events", told), whose)
        body = {"events": [_sent(each) for each in checked]}
        return (yield from self._send("POST", "/events/batch", body, Outcomes, whose)).outcomes

    @verb
    def list(
        self, status: str | None = None, *, tenant: str | None = None, limit: int = 100
    ) -> Talk[Sequence[EventView]]:
        """The newest events: all, or those pending, consumed or expired."""
        whose = self._whose(tenant)
        return (
            yield from self._get(
                "/inspect/events", list[EventView], whose, status=status, limit=limit
            )
        )

    @verb
    def show(self, id: str, *, tenant: str | None = None) -> Talk[EventView]:
        """One event."""
        path = f"/inspect/events/{one(id, unknown_event)}"
        return (yield from self._get(path, EventView, tenant))


def _sent(event: EventRequest) -> dict[str, Any]:
    payload = encode_payload(event.payload, where="payload", limit=limits.EVENT_BYTES)
    return {
        "tenant_id": event.tenant,
        "event_name": event.event_name,
        "correlation_key": event.correlation_key,
        "producer_event_id": event.producer_event_id,
        "payload": Raw(payload),
    }
