"""Sequences (contract §4): made, found, deprecated, moved along, removed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.responses import Response

from detent.definition import status_of
from detent.model.errors import DefinitionError
from detent.ports.definitions import DefinitionQuery
from detent.service import sequences as service
from detent.service.crons import crons_of
from detent.web.api import bodies
from detent.web.api.call import Call
from detent.web.api.refusals import Refusal
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.definitions import DefinitionRow

table = Table("sequences")


class Made(Struct, omit_defaults=True):
    """The id of what was made, and what looks like a mistake in it."""

    id: str
    warnings: list[str] = []


class ListSequences(Struct):
    """Which sequences to list."""

    tenant_id: str | None = None
    namespace: str | None = None
    limit: int = 200
    offset: int = 0


class ByName(Struct):
    """A sequence by its name; without a version the highest that is not deprecated."""

    tenant_id: str
    namespace: str
    name: str
    version: int | None = None


class Status(Struct):
    """How far a sequence is published."""

    status: str


class Unpublish(Struct):
    """Whether to remove what is taken back."""

    delete: bool = False


class Page(Struct):
    """Some of a list, and whether there is more."""

    items: list[Any]
    has_more: bool


@table.route("POST", "/sequences", raw=True, takes=Any, gives={201: Made})
async def create(call: Call) -> Response:
    """Store a sequence."""
    body = await bodies.read_bytes(call.request, call.server.body_bytes)
    bodies.check_json_type(call.request)
    try:
        new = service.read_sequence(body)
    except DefinitionError as error:
        if status_of(error) == 422:
            raise Refusal(422, str(error.message), error.code) from None
        raise
    tenant = call.owner(new.tenant)
    handlers = list(call.desk.handlers())
    now_ms = call.desk.now_ms()
    warned = service.sequence_warnings(new.definition, handlers)
    made = await call.desk.write(lambda s: service.create_sequence(s, new, tenant, now_ms))
    return json_reply(Made(id=made, warnings=warned), 201)


@table.route("GET", "/sequences", query=ListSequences, gives={200: Page})
async def listing(call: Call) -> Response:
    """List sequences by tenant, namespace, name and falling version."""
    asked: ListSequences = call.query
    query = DefinitionQuery(
        tenant=call.scope(asked.tenant_id),
        namespace=asked.namespace,
        offset=asked.offset,
        limit=min(asked.limit, service.PAGE_MOST),
    )
    rows, more = await call.desk.look(lambda s: service.list_sequences(s, query))
    return json_reply(Page(items=[service.sequence_wire(row) for row in rows], has_more=more))


@table.route("GET", "/sequences.json", gives={200: list[Any]})
async def everything(call: Call) -> Response:
    """All sequences as one plain array."""
    query, more = DefinitionQuery(tenant=call.tenant, limit=service.PAGE_MOST), True
    shown: list[Any] = []
    while more:  # a page at a time, so that a look is short however many there are
        page = query._replace(offset=len(shown))
        rows, more = await call.desk.look(partial(service.list_sequences, query=page))
        shown += [service.sequence_wire(row) for row in rows]
    return json_reply(shown)


@table.route("GET", "/sequences/by-name", query=ByName, gives={200: Any})
async def by_name(call: Call) -> Response:
    """Find a sequence by its name."""
    asked: ByName = call.query
    place = (call.tenant or asked.tenant_id, asked.namespace)
    row = await call.desk.look(lambda s: service.find_by_name(s, place, asked.name, asked.version))
    return json_reply(service.sequence_wire(row))


@table.route("GET", "/sequences/versions", query=ByName, gives={200: list[Any]})
async def versions(call: Call) -> Response:
    """The versions of a name that are not deprecated, the highest first."""
    asked: ByName = call.query
    query = DefinitionQuery(
        tenant=call.tenant or asked.tenant_id,
        namespace=asked.namespace,
        name=asked.name,
        limit=service.PAGE_MOST,
    )
    rows, _more = await call.desk.look(lambda s: service.list_sequences(s, query))
    return json_reply([service.sequence_wire(row) for row in rows if not row.deprecated])


@table.route("GET", "/sequences/{id:uuid}", gives={200: Any})
async def show(call: Call) -> Response:
    """One sequence, deprecated or not."""
    row = await call.desk.look(lambda s: service.find_sequence(s, call.path["id"], call.tenant))
    return json_reply(service.sequence_wire(row))


@table.route("POST", "/sequences/{id:uuid}/deprecate", gives={204: None})
async def deprecate(call: Call) -> Response:
    """Leave a sequence out of look-ups by name."""
    await call.desk.write(lambda s: service.deprecate_sequence(s, call.path["id"], call.tenant))
    return empty_reply(204)


@table.route("POST", "/sequences/{id:uuid}/status", takes=Status, gives={204: None})
async def move(call: Call, body: Status) -> Response:
    """Move a sequence along draft, staging, production, unpublished."""
    await call.desk.write(
        lambda s: service.change_status(s, call.path["id"], call.tenant, body.status)
    )
    return empty_reply(204)


async def end_schedules(call: Call, rows: Sequence[DefinitionRow]) -> None:
    """End what would start versions that are about to be removed."""
    for row in rows:
        for view in await call.desk.look(partial(crons_of, sequence=row)):
            await _end_schedule(call, view.id, view.tenant)


async def _end_schedule(call: Call, id: str, tenant: str) -> None:
    await call.desk.verb(lambda verbs: verbs.crons.delete(id, tenant=tenant))


@table.route("DELETE", "/sequences/{id:uuid}", gives={204: None})
async def delete(call: Call) -> Response:
    """Remove a sequence that no live instance runs, with its schedules and ended instances."""
    id = call.path["id"]
    row = await call.desk.look(lambda s: service.idle_sequence(s, id, call.tenant))
    await end_schedules(call, [row])
    await call.desk.write(lambda s: service.delete_sequence(s, id, call.tenant))
    call.sequences.forget(id)
    return empty_reply(204)
