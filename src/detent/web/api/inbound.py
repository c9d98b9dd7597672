"""Calls from outside to a trigger (contract §19): nobody needs a key, everybody must sign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.responses import Response

from detent.definition import load
from detent.model.errors import RequestError
from detent.model.limits import WEBHOOK_BYTES
from detent.service import inbound as service
from detent.web.api import bodies
from detent.web.api.call import Call
from detent.web.api.refusals import Refusal
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.triggers import started

if TYPE_CHECKING:
    from detent.model.definition import Definition
    from detent.ports.store import Store
    from detent.service.triggers import Firing

table = Table("triggers")


class Accepted(Struct):
    """The instance that a call has started."""

    instance_id: str
    trigger: str


@table.route(
    "POST",
    "/webhooks/{slug}",
    takes=Any,
    raw=True,
    public=True,
    root_only=True,
    gives={202: Accepted},
)
async def receive(call: Call) -> Response:
    """Start an instance for a call that is signed, in time, and new."""
    request, slug, now_ms = call.request, call.path["slug"], call.desk.wall_ms()
    call.peers.check(request.client.host if request.client else "", slug, now_ms)
    body = await bodies.read_bytes(request, WEBHOOK_BYTES)
    signed = service.Call(dict(request.headers), body)
    safe = call.desk.safe()
    verified = await call.desk.look(
        lambda store: service.verify_webhook(store, safe, slug, signed, now_ms)
    )
    fired, definition = await _accepted(call, verified, now_ms)
    id, known = await started(call, fired, definition, service.instance_of(verified))
    if known:
        raise service.replayed()
    return json_reply(Accepted(id, fired.slug), 202)


async def _accepted(
    call: Call, verified: service.Verified, now_ms: int
) -> tuple[Firing, Definition]:
    def accept(store: Store) -> tuple[Firing, Definition]:
        fired = service.accept_webhook(store, verified, now_ms)
        return fired, load(fired.definition.body)

    try:
        return await call.desk.write(accept)
    except RequestError as error:
        if error.code == "payload.invalid":
            raise Refusal(400, error.message, error.code) from None
        raise
