"""Events of producers (contract §20): told alone or many at once, listed, shown.

An event is told to the correlator of its key, which is started first where there is none yet. All
events of a batch are submitted before the first answer is awaited, so that one turn takes them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.service import events as service
from detent.service.events import EventOutcome
from detent.web.api.call import Call
from detent.web.api.reply import instant, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.store import Store
    from detent.service.events import EventRequest, EventView

table = Table("events")


class NewEvent(Struct):
    """Something that happened elsewhere; `producer_event_id` is the producer's own name for it."""

    tenant_id: Annotated[str, Meta(min_length=1)]
    event_name: str
    producer_event_id: str
    correlation_key: str
    payload: Any = None


class NewEvents(Struct):
    """1 to 100 events, told in their order."""

    events: list[NewEvent]


class Outcomes(Struct):
    """What became of each event, in the order of the batch."""

    outcomes: list[EventOutcome]


class EventQuery(Struct):
    """Which events to list."""

    tenant_id: str | None = None
    status: str | None = None
    limit: int = 100


@table.route("POST", "/events", takes=NewEvent, gives={201: EventOutcome, 200: EventOutcome})
async def tell(call: Call, body: NewEvent) -> Response:
    """Tell an event; one that is known already changes nothing."""
    (found,) = await _told(call, [service.read_event(msgspec.to_builtins(body), call.tenant)])
    return json_reply(found, 200 if found.duplicate else 201)


@table.route("POST", "/events/batch", takes=NewEvents, gives={200: Outcomes})
async def tell_many(call: Call, body: NewEvents) -> Response:
    """Tell up to 100 events in order; none of them if one is not well formed."""
    checked = service.read_events(msgspec.to_builtins(body.events), call.tenant)
    return json_reply(Outcomes(await _told(call, checked)))


@table.route("GET", "/events", query=EventQuery, gives={200: list[Any]})
async def listing(call: Call) -> Response:
    """The newest events of a tenant."""
    asked: EventQuery = call.query
    tenant = call.needed_scope(asked.tenant_id)
    found = await call.desk.look(
        lambda store: service.list_events(store, tenant, asked.status, asked.limit)
    )
    return json_reply([_wire(each) for each in found])


@table.route("GET", "/events/{id:uuid}", gives={200: Any})
async def show(call: Call) -> Response:
    """One event."""
    found = await call.desk.look(lambda s: service.show_event(s, call.path["id"], call.tenant))
    return json_reply(_wire(found))


async def _told(call: Call, events: Sequence[EventRequest]) -> list[EventOutcome]:
    await _start_correlators(call, events)
    return await asyncio.gather(*[_tell(call, event) for event in events])


async def _start_correlators(call: Call, events: Sequence[EventRequest]) -> None:
    first = {event.correlator: event for event in reversed(events)}

    def missing(store: Store) -> list[EventRequest]:
        return [event for event in first.values() if service.correlator_missing(store, event)]

    wanted = await call.desk.look(missing)
    if wanted:
        await call.desk.write(partial(_keep_definitions, wanted, call.desk.now_ms()))
        await asyncio.gather(*[_start(call, event) for event in wanted])


def _keep_definitions(events: Sequence[EventRequest], now_ms: int, store: Store) -> None:
    for tenant in dict.fromkeys(event.tenant for event in events):
        service.keep_correlator(store, tenant, now_ms)


async def _start(call: Call, event: EventRequest) -> None:
    made = service.correlator_submission(event, call.desk.moment().seed)
    await call.desk.ask(lambda ack: replace(made, ack=ack))


async def _tell(call: Call, event: EventRequest) -> EventOutcome:
    """Submits before it first waits, so that a batch keeps its order."""
    told = call.fresh_id()
    verdict = await call.desk.ask(lambda ack: service.event_submission(event, told, ack))
    return service.outcome_of(verdict, told)


def _wire(event: EventView) -> dict[str, Any]:
    made = {
        "id": event.id,
        "tenant_id": event.tenant_id,
        "event_name": event.event_name,
        "producer_event_id": event.producer_event_id,
        "correlation_key": event.correlation_key,
        "payload": event.payload,
        "status": event.status,
        "consumed_by": event.consumed_by,
        "instance_id": event.instance_id,
        "received_at": instant(event.received_ms),
    }
    return {name: value for name, value in made.items() if value is not None or name == "payload"}
