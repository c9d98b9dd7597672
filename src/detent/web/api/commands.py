"""Commands to an instance: changes that the kernel may refuse, and its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.definition import load
from detent.model.decision import Verdict
from detent.service import sending, steering
from detent.service.publishing import stored_for
from detent.service.reading import find_instance
from detent.service.sending import Verb
from detent.service.starting import check_handlers
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.signals import known
from detent.web.api.steering import handlers_of

if TYPE_CHECKING:
    from detent.ports.store import Store

table = Table("commands")


class Command(Struct):
    """What an instance is asked for; the same id gets the same verdict."""

    verb: Verb
    args: Any = None
    id: str | None = None


@table.route("POST", "/instances/{id:uuid}/commands", takes=Command, gives={200: Verdict})
async def command(call: Call, body: Command) -> Response:
    """Ask for a change; a refusal is an error with the kernel's own code."""
    instance = await known(call)
    asked = call.own_id(instance, body.id)
    args = await _checked(call, body)
    made = sending.command_submission(instance, body.verb, args, asked, 0)
    return json_reply(await call.desk.ask(lambda ack: replace(made, ack=ack)))


async def _checked(call: Call, body: Command) -> Any:
    """The arguments, once nothing is wrong with them and all they name is this tenant's."""
    given = body.args if isinstance(body.args, dict) else {}
    match body.verb:
        case "inject":
            return await _blocks(call, given)
        case "migrate" if "to" in given:
            return await _target(call, given["to"])
    return steering.command_args(body.verb, body.args)


async def _blocks(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    handlers, id = handlers_of(call), call.path["id"]
    blocks, position = given.get("blocks"), given.get("position")
    return await call.desk.look(
        lambda store: steering.inject(store, id, call.tenant, blocks, position, handlers)
    )


async def _target(call: Call, digest: Any) -> dict[str, Any]:
    def find(store: Store) -> bytes:
        row = find_instance(store, call.path["id"], call.tenant)
        return stored_for(store, row.tenant, digest).body

    check_handlers(load(await call.desk.look(find)), handlers_of(call))
    return {"to": digest}
