"""Routing rules, version pins, push targets and commands of workers (contract §31)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from detent.service import fleet as service
from detent.service.fleet import Hand
from detent.service.fleet_kinds import COMMANDS, PINS, RULES, TARGETS, Kind, WorkerCommand
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table

table = Table("fleet")


class FleetQuery(Struct):
    """Which records to list; a name that a kind has no field for finds none of it."""

    tenant_id: str | None = None
    handler_name: str | None = None
    queue_name: str | None = None
    limit: int = 100


class CommandQuery(Struct):
    """Whose commands to list."""

    tenant_id: str | None = None
    worker_id: str | None = None
    limit: int = 100


def declare(path: str, kind: Kind, one: str) -> None:
    """The five routes of a kind: make, list, show, change, remove."""

    async def create(call: Call, body: Any) -> Response:
        return await _create(call, kind, body)

    async def listing(call: Call) -> Response:
        asked: FleetQuery = call.query
        tenant, handler, queue = call.scope(asked.tenant_id), asked.handler_name, asked.queue_name
        found = await call.desk.look(
            lambda s: service.listing(
                s, kind, tenant, asked.limit, handler_name=handler, queue_name=queue
            )
        )
        return json_reply(found)

    async def show(call: Call) -> Response:
        id = call.path["id"]
        return json_reply(await call.desk.look(lambda s: service.show(s, kind, call.tenant, id)))

    async def change(call: Call, body: Any) -> Response:
        id, hand = call.path["id"], _hand(call)
        changed = await call.desk.write(
            lambda s: service.replace(s, kind, call.tenant, id, body, hand)
        )
        call.desk.rouse()
        return json_reply(changed)

    async def remove(call: Call) -> Response:
        return await _remove(call, kind)

    item = f"{path}/{{id:uuid}}"
    for run, told, method, place, more in (
        (create, f"Make a {one}", "POST", path, {"takes": kind.shape, "gives": {201: Any}}),
        (
            listing,
            f"List each {one}",
            "GET",
            path,
            {"query": FleetQuery, "gives": {200: list[Any]}},
        ),
        (show, f"Show a {one}", "GET", item, {"gives": {200: Any}}),
        (change, f"Change a {one}", "PUT", item, {"takes": kind.shape, "gives": {200: Any}}),
        (remove, f"Remove a {one}", "DELETE", item, {"gives": {204: None}}),
    ):
        run.__doc__ = f"{told}."
        run.__name__ = f"{run.__name__}_{kind.name}"
        table.route(method, place, **more)(run)


declare("/routing-rules", RULES, "routing rule")
declare("/workers/version-pins", PINS, "version pin")
declare("/queues/dispatch", TARGETS, "push target")


@table.route("POST", "/workers/commands", takes=WorkerCommand, gives={201: Any})
async def command(call: Call, body: WorkerCommand) -> Response:
    """Tell a worker something; after `drain` it is given no tasks until `resume`."""
    return await _create(call, COMMANDS, body)


@table.route("GET", "/workers/commands", query=CommandQuery, gives={200: list[Any]})
async def commands(call: Call) -> Response:
    """The commands of a worker, or of all."""
    asked: CommandQuery = call.query
    tenant = call.scope(asked.tenant_id)
    return json_reply(
        await call.desk.look(
            lambda s: service.listing(s, COMMANDS, tenant, asked.limit, worker_id=asked.worker_id)
        )
    )


@table.route("POST", "/workers/commands/{id:uuid}/ack", gives={200: Any})
async def acknowledge(call: Call) -> Response:
    """The worker has heard a command."""
    id, now_ms = call.path["id"], call.desk.wall_ms()
    return json_reply(
        await call.desk.write(lambda s: service.acknowledge(s, call.tenant, id, now_ms))
    )


@table.route("DELETE", "/workers/commands/{id:uuid}", gives={204: None})
async def forget(call: Call) -> Response:
    """Remove a command; what it has set stays."""
    return await _remove(call, COMMANDS)


async def _create(call: Call, kind: Kind, body: Any) -> Response:
    id, hand = call.fresh_id(), _hand(call)
    made = await call.desk.write(lambda s: service.create(s, kind, call.tenant, body, id, hand))
    call.desk.rouse()
    return json_reply(made, 201)


def _hand(call: Call) -> Hand:
    return Hand(call.desk.safe(), call.desk.wall_ms())


async def _remove(call: Call, kind: Kind) -> Response:
    await call.desk.write(lambda s: service.delete(s, kind, call.tenant, call.path["id"]))
    call.desk.rouse()
    return empty_reply(204)
