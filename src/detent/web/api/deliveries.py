"""Outbound webhooks (contract §21): deliveries looked at, tried again, dropped; for operators."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.model.errors import RequestError
from detent.model.limits import WEBHOOK_REDELIVER_MS, WEBHOOKS_LISTED
from detent.service import webhooks as service
from detent.service.webhooks import DeliveryFilter, Disabled, Preview
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, instant, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.service.webhooks import DeliveryView

table = Table("webhooks")

_LOOK_S = 1.0  # a writer that died may have moved a delivery and told nobody


class OutboxQuery(Struct):
    """How many deliveries to list."""

    limit: int = 100


class DeliveryQuery(Struct):
    """Which deliveries to list; what is left out does not filter."""

    url: str | None = None
    event_type: str | None = None
    delivered: bool | None = None
    error_class: str | None = None
    limit: int = 100


class RedeliverQuery(Struct):
    """Whether to wait for the end of the attempt, or only until it is asked for."""

    wait: bool = True


class Url(Struct):
    """Where webhooks are sent to."""

    url: str


class Redelivered(Struct):
    """The delivery has arrived."""

    redelivered: bool
    delivery_id: str


@table.route("GET", "/webhooks/outbox", admin=True, query=OutboxQuery, gives={200: list[Any]})
async def outbox(call: Call) -> Response:
    """The newest deliveries that have not arrived: parked, or still on their way."""
    most = min(call.query.limit, WEBHOOKS_LISTED)
    found = await call.desk.look(lambda s: service.outbox(s, most, call.tenant))
    return json_reply([_wire(each) for each in found])


@table.route(
    "POST",
    "/webhooks/outbox/{id:uuid}/redeliver",
    admin=True,
    query=RedeliverQuery,
    gives={200: Redelivered, 202: None, 502: None},
)
async def redeliver(call: Call) -> Response:
    """Try a parked delivery again, and wait up to 15 s for its end."""
    desk, id, tenant = call.desk, call.path["id"], call.tenant
    told = call.fresh_id()
    made = await desk.look(lambda s: service.redeliver_submission(s, id, told, tenant=tenant))
    if not call.query.wait:
        await desk.ask(lambda ack: replace(made, ack=ack))
        return empty_reply(202)
    moved = asyncio.Event()
    stop = desk.watch(id, lambda _state: moved.set())
    try:
        await desk.ask(lambda ack: replace(made, ack=ack))
        found = await _ended(call, id, moved)
    finally:
        stop()
    if not found.delivered:
        raise RequestError("webhook.undelivered", _trouble(found), id=id)
    return json_reply(Redelivered(redelivered=True, delivery_id=id))


@table.route(
    "GET", "/webhooks/outbox/{id:uuid}/redeliver-preview", admin=True, gives={200: Preview}
)
async def preview(call: Call) -> Response:
    """What another attempt would send; its timestamp and signatures are made when it is."""
    return json_reply(
        await call.desk.look(lambda s: service.preview(s, call.path["id"], call.tenant))
    )


@table.route("DELETE", "/webhooks/outbox/{id:uuid}", admin=True, gives={204: None})
async def drop(call: Call) -> Response:
    """Drop a delivery that has not arrived."""
    told = call.fresh_id()
    made = await call.desk.look(
        lambda s: service.drop_submission(s, call.path["id"], told, tenant=call.tenant)
    )
    await call.desk.ask(lambda ack: replace(made, ack=ack))
    return empty_reply(204)


@table.route("GET", "/webhooks/deliveries", admin=True, query=DeliveryQuery, gives={200: list[Any]})
async def listing(call: Call) -> Response:
    """The newest deliveries that pass a filter."""
    asked: DeliveryQuery = call.query
    wanted = DeliveryFilter(
        url=asked.url,
        event_type=asked.event_type,
        delivered=asked.delivered,
        error_class=asked.error_class,
    )
    most = min(asked.limit, WEBHOOKS_LISTED)
    found = await call.desk.look(lambda s: service.deliveries(s, wanted, most, call.tenant))
    return json_reply([_wire(each) for each in found])


@table.route("GET", "/webhooks/deliveries/{id:uuid}", admin=True, gives={200: Any})
async def show(call: Call) -> Response:
    """One delivery."""
    found = await call.desk.look(lambda s: service.delivery(s, call.path["id"], call.tenant))
    return json_reply(_wire(found))


@table.route("GET", "/webhooks/deliveries/disabled", admin=True, gives={200: list[Disabled]})
async def disabled(call: Call) -> Response:
    """The URLs that answered 410 and get nothing more."""
    return json_reply(await call.desk.verb(lambda verbs: verbs.webhooks.disabled()))


@table.route("POST", "/webhooks/deliveries/enable", takes=Url, admin=True, gives={204: None})
async def enable(call: Call, body: Url) -> Response:
    """Send to a URL again, from now on."""
    await call.desk.verb(lambda verbs: verbs.webhooks.enable(body.url))
    return empty_reply(204)


async def _ended(call: Call, id: str, moved: asyncio.Event) -> DeliveryView:
    """The delivery once it has ended, or as it stands when the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + WEBHOOK_REDELIVER_MS / 1000
    while True:
        moved.clear()
        found = await call.desk.look(lambda s: service.delivery(s, id, call.tenant))
        left = until - loop.time()
        if found.state != "pending" or left <= 0:
            return found
        with suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), min(left, _LOOK_S))


def _trouble(found: DeliveryView) -> str:
    if found.state == "pending":
        return (
            f"{found.url} has not taken the delivery within {WEBHOOK_REDELIVER_MS // 1000} s; "
            "it is tried on"
        )
    return f"{found.url} did not take the delivery ({found.state}): {found.last_error}"


def _wire(found: DeliveryView) -> dict[str, Any]:
    return {
        "id": found.id,
        "tenant_id": found.tenant,
        "url": found.url,
        "event_type": found.event_type,
        "instance_id": found.instance_id,
        "payload": found.payload,
        "state": found.state,
        "delivered": found.delivered,
        "attempts": found.attempts,
        "status": found.status,
        "last_error": found.last_error,
        "error_class": found.error_class,
        "next_attempt_at": instant(found.next_try_ms),
        "created_at": instant(found.created_ms),
        "updated_at": instant(found.updated_ms),
    }
