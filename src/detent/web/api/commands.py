"""Commands to an instance: changes of state that the kernel may refuse, and its verdict."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.model.decision import Verdict
from detent.service import sending
from detent.service.arguments import invalid
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.signals import known

table = Table("commands")


class Command(Struct):
    """What an instance is asked for; the same id gets the same verdict."""

    verb: Literal["pause", "resume", "cancel", "retry", "resolve", "migrate"]
    args: Any = None
    id: str | None = None


@table.route("POST", "/instances/{id:uuid}/commands", takes=Command, gives={200: Verdict})
async def command(call: Call, body: Command) -> Response:
    """Ask for a change of state; a refusal is an error with the kernel's own code."""
    if body.verb == "migrate" and body.args != {"undo": True}:
        # where to is checked against the tenant by /sequences/migrate-instance
        raise invalid("args", '{"undo": true}; use /sequences/migrate-instance', body.args)
    instance = await known(call)
    asked = call.own_id(instance, body.id)
    made = sending.command_submission(instance, body.verb, body.args, asked, 0)
    return json_reply(await call.desk.ask(lambda ack: replace(made, ack=ack)))
