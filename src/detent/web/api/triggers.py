"""Triggers (contract §19): named doors that start an instance with what came through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.definition import load
from detent.service import triggers as service
from detent.service.starting import check_handlers, start_submission
from detent.service.triggers import NewTrigger, Trigger
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.model.definition import Definition
    from detent.ports.store import Store
    from detent.service.triggers import Firing

table = Table("triggers")

SECRET = "x-trigger-secret"  # noqa: S105 - the name of a header


class TriggerQuery(Struct):
    """Whose triggers to list."""

    tenant_id: str | None = None
    limit: int = 100


class TriggerChange(Struct):
    """Whether the door is open."""

    enabled: bool


class Fired(Struct):
    """The instance that a trigger has started."""

    instance_id: str
    trigger: str
    sequence_name: str


@table.route("POST", "/triggers", takes=NewTrigger, gives={201: Trigger})
async def create(call: Call, body: NewTrigger) -> Response:
    """Make a door to a sequence of the tenant's."""
    safe, now_ms = call.desk.safe(), call.desk.wall_ms()
    made = await call.desk.write(
        lambda store: service.create_trigger(store, safe, call.tenant, body, now_ms)
    )
    return json_reply(made, 201)


@table.route("GET", "/triggers", query=TriggerQuery, gives={200: list[Trigger]})
async def listing(call: Call) -> Response:
    """The triggers of the tenant; their secrets are not shown."""
    asked: TriggerQuery = call.query
    tenant = call.scope(asked.tenant_id)
    found = await call.desk.look(lambda s: service.list_triggers(s, tenant, asked.limit))
    return json_reply(found)


@table.route("GET", "/triggers/{slug}", gives={200: Trigger})
async def show(call: Call) -> Response:
    """One trigger."""
    found = await call.desk.look(lambda s: service.get_trigger(s, call.tenant, call.path["slug"]))
    return json_reply(found)


@table.route("PATCH", "/triggers/{slug}", takes=TriggerChange, gives={200: Trigger})
async def change(call: Call, body: TriggerChange) -> Response:
    """Open or close the door."""
    now_ms, slug = call.desk.wall_ms(), call.path["slug"]
    made = await call.desk.write(
        lambda s: service.enable_trigger(s, call.tenant, slug, now_ms, enabled=body.enabled)
    )
    return json_reply(made)


@table.route("DELETE", "/triggers/{slug}", gives={204: None})
async def delete(call: Call) -> Response:
    """Remove the door; what came through it goes on."""
    await call.desk.write(lambda s: service.delete_trigger(s, call.tenant, call.path["slug"]))
    return empty_reply(204)


@table.route("POST", "/triggers/{slug}/fire", takes=Any, optional_body=True, gives={201: Fired})
async def fire(call: Call, body: Any) -> Response:
    """Start an instance with the body as its data."""
    safe, slug, given = call.desk.safe(), call.path["slug"], call.request.headers.get(SECRET)

    def find(store: Store) -> tuple[Firing, Definition]:
        fired = service.fire_trigger(store, safe, call.tenant, slug, body, given)
        return fired, load(fired.definition.body)

    fired, definition = await call.desk.look(find)
    id, _known = await started(call, fired, definition, call.fresh_id())
    return json_reply(Fired(id, fired.slug, fired.sequence_name), 201)


async def started(call: Call, fired: Firing, definition: Definition, id: str) -> tuple[str, bool]:
    """Start what a trigger fired, under this id, which comes back; whether it was there before."""
    if not call.desk.workers():
        check_handlers(definition, call.desk.handlers())
    moment = replace(call.desk.moment(), fresh_id=id)
    made = start_submission(definition, fired.request, moment, 0)
    verdict = await call.desk.ask(lambda ack: replace(made, ack=ack))
    told = verdict.result if isinstance(verdict.result, dict) else {}
    return made.instance, bool(told.get("deduplicated", False))
