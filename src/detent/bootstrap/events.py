"""`engine.events`: events of producers, brought together with the steps that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from detent.bootstrap.gates import Door
from detent.definition.system import EVENTS
from detent.model.decision import Verdict
from detent.model.link import Submission
from detent.service import events
from detent.service.arguments import listed
from detent.service.events import EventOutcome, EventRequest, EventView


class Events:
    """Events by tenant and correlation key; one told twice counts once."""

    def __init__(self, door: Door, ask: Callable[[Callable[[int], Submission]], Verdict]) -> None:
        self._door = door
        self._ask = ask

    def send(
        self,
        event_name: str,
        correlation_key: str,
        producer_event_id: str,
        payload: Any = None,
        *,
        tenant: str = "default",
    ) -> EventOutcome:
        """Tell an event; what became of it once that is durable.

        `producer_event_id` is the producer's own: the same one of a name is the same event.
        """
        told = {
            "tenant_id": tenant,
            "event_name": event_name,
            "correlation_key": correlation_key,
            "producer_event_id": producer_event_id,
            "payload": payload,
        }
        return self._tell(events.read_event(told, tenant))

    def send_many(
        self, told: Iterable[Mapping[str, Any]], *, tenant: str = "default"
    ) -> list[EventOutcome]:
        """Tell up to 100 events in order; none of them if one is not well formed."""
        checked = events.read_events(listed("events", told), tenant)
        return [self._tell(each) for each in checked]

    def list(
        self, status: str | None = None, *, tenant: str = "default", limit: int = 100
    ) -> Sequence[EventView]:
        """The newest events: all, or those pending, consumed or expired."""
        return self._door.look(lambda store: events.list_events(store, tenant, status, limit))

    def show(self, id: str, *, tenant: str | None = None) -> EventView:
        """One event."""
        return self._door.look(lambda store: events.show_event(store, id, tenant))

    def _tell(self, event: EventRequest) -> EventOutcome:
        now = self._door.moment()
        if self._door.look(lambda store: events.correlator_missing(store, event)):
            start = events.correlator_submission(event, now.seed)
            self._door.begin(EVENTS, event.tenant, start)
        verdict = self._ask(lambda ack: events.event_submission(event, now.fresh_id, ack))
        return events.outcome_of(verdict, now.fresh_id)
