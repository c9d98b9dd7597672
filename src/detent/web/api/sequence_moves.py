"""Sequences on their way (contract §4.3): deployed, promoted, taken back, checked; migrations."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.definition import load, normalize, read
from detent.model.definition import Definition
from detent.service import preflight as checks
from detent.service import publishing, sending
from detent.service.instances import SequenceIds
from detent.service.sequences import find_sequence, sequence_warnings
from detent.service.starting import check_handlers
from detent.web.api import bodies
from detent.web.api.call import DEFAULT_TENANT, Call
from detent.web.api.refusals import Refusal
from detent.web.api.reply import empty_reply, instant, json_reply
from detent.web.api.routes import Table
from detent.web.api.sequences import Unpublish, end_schedules

table = Table("sequence_moves")

NAMESPACE = "default"


class Deployed(Struct, omit_defaults=True):
    """A stored version: its id and hash, and what looks like a mistake in it."""

    id: str
    hash: str
    name: str
    version: int
    warnings: list[str] = []


class Promoted(Struct):
    """The version that is published now."""

    id: str
    version: int


class Migration(Struct):
    """An instance, and the sequence it is to go on with."""

    instance_id: UUID
    target_sequence_id: UUID


class Migrated(Struct):
    """An instance that was moved."""

    migrated: bool
    instance_id: str
    from_sequence_id: str | None
    to_sequence_id: str


class Report(Struct):
    """What would stand in the way of a sequence's instances."""

    sequence_name: str
    sequence_version: int
    overall: Literal["pass", "warn", "fail"]
    checks: list[checks.Check]
    generated_at: str | None


@table.route("PUT", "/sequences", raw=True, takes=Any, gives={200: Deployed})
async def deploy(call: Call) -> Response:
    """Store a version of a sequence; the same content again is welcome, other content is not."""
    raw, definition = await _read(call)
    place = (call.owner(_text(raw, "tenant_id", "")), _text(raw, "namespace", NAMESPACE))
    now_ms = call.desk.now_ms()
    row = await call.desk.write(
        lambda s: publishing.deploy_definition(s, definition, place, now_ms)
    )
    warned = sequence_warnings(definition, list(call.desk.handlers()))
    return json_reply(Deployed(row.id, row.hash, row.name, row.version, warned))


@table.route("POST", "/sequences/{name}/promote", gives={201: Promoted})
async def promote(call: Call) -> Response:
    """Publish the highest version of a name that is a draft or staged."""
    row = await call.desk.write(
        lambda s: publishing.promote_sequence(s, _place(call), call.path["name"])
    )
    return json_reply(Promoted(row.id, row.version), 201)


@table.route(
    "POST", "/sequences/{name}/unpublish", takes=Unpublish, optional_body=True, gives={204: None}
)
async def unpublish(call: Call, body: Unpublish) -> Response:
    """Take every version of a name back, and remove them if asked to."""
    rows = await call.desk.write(
        lambda s: publishing.unpublish_sequence(
            s, _place(call), call.path["name"], delete=body.delete
        )
    )
    if body.delete:
        await end_schedules(call, rows)
    for row in rows:
        call.sequences.forget(row.id)
    return empty_reply(204)


@table.route("POST", "/sequences/migrate-instance", takes=Migration, gives={200: Migrated})
async def migrate(call: Call, body: Migration) -> Response:
    """Move a standing instance to another version; what it has done stays done."""
    instance, target = await call.desk.look(
        lambda s: publishing.migration_target(
            s, str(body.instance_id), str(body.target_sequence_id), call.tenant
        )
    )
    if not call.desk.workers():
        check_handlers(load(target.body), call.desk.handlers())
    before = await call.desk.look(
        lambda s: SequenceIds(s).of(instance.tenant, instance.namespace, instance.definition)
    )
    made = sending.command_submission(
        instance.id, "migrate", {"to": target.hash}, call.fresh_id(), 0
    )
    await call.desk.ask(lambda ack: replace(made, ack=ack))
    return json_reply(Migrated(True, instance.id, before, target.id))


@table.route("GET", "/sequences/{id:uuid}/preflight", gives={200: Report})
async def check_stored(call: Call) -> Response:
    """What would stand in the way of a stored sequence's instances."""
    row = await call.desk.look(lambda s: find_sequence(s, call.path["id"], call.tenant))
    return await _report(call, load(row.body), (row.tenant, row.namespace))


@table.route("POST", "/sequences/preflight", raw=True, takes=Any, gives={200: Report})
async def check_new(call: Call) -> Response:
    """What would stand in the way of a sequence's instances, before it is stored."""
    raw, definition = await _read(call)
    place = (call.owner(_text(raw, "tenant_id", "")), _text(raw, "namespace", NAMESPACE))
    return await _report(call, definition, place)


async def _report(call: Call, definition: Definition, place: tuple[str, str]) -> Response:
    around = checks.Surroundings(
        place=place,
        handlers=call.desk.handlers(),
        workers=call.desk.workers(),
        now_ms=call.desk.now_ms(),
    )
    found = await call.desk.look(lambda s: checks.preflight(s, definition, around))
    return json_reply(
        Report(
            sequence_name=definition.name,
            sequence_version=definition.version,
            overall=checks.overall(found),
            checks=found,
            generated_at=instant(around.now_ms),
        )
    )


async def _read(call: Call) -> tuple[Any, Definition]:
    """A definition out of the body; id, creation and status may be left out."""
    body = await bodies.read_bytes(call.request, call.server.body_bytes)
    bodies.check_json_type(call.request)
    raw = read(body, format="json")
    return raw, normalize(raw)


def _text(raw: Any, name: str, default: str) -> str:
    value = raw.get(name, default)
    if not isinstance(value, str):
        raise Refusal(422, f"{name} must be text; got {str(value)[:80]!r}")
    return value


def _place(call: Call) -> tuple[str, str]:
    """Where names are looked for: the caller's tenant, in the namespace that is always there."""
    return (call.tenant or DEFAULT_TENANT, NAMESPACE)
