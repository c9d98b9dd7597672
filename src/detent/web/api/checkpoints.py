"""Checkpoints (contract §16): data that a user keeps with an instance."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from detent.service import checkpoints as service
from detent.service.checkpoints import Checkpoint
from detent.web.api.call import Call
from detent.web.api.instances import Count
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table

table = Table("checkpoints")


class NewCheckpoint(Struct):
    """Anything to keep."""

    checkpoint_data: Any


class Saved(Struct):
    """The id of what was kept."""

    id: str


class Prune(Struct):
    """How many of the newest to keep."""

    keep: int


@table.route("POST", "/instances/{id:uuid}/checkpoints", takes=NewCheckpoint, gives={201: Saved})
async def save(call: Call, body: NewCheckpoint) -> Response:
    """Keep data with an instance, whatever state it is in."""
    instance, id, now_ms = call.path["id"], call.fresh_id(), call.desk.wall_ms()
    data = body.checkpoint_data
    made = await call.desk.write(
        lambda store: service.save_checkpoint(store, call.tenant, instance, data, id, now_ms)
    )
    return json_reply(Saved(made), 201)


@table.route("GET", "/instances/{id:uuid}/checkpoints", gives={200: list[Checkpoint]})
async def listing(call: Call) -> Response:
    """The newest checkpoints first."""
    found = await call.desk.look(
        lambda store: service.list_checkpoints(store, call.tenant, call.path["id"])
    )
    return json_reply(found)


@table.route("GET", "/instances/{id:uuid}/checkpoints/latest", gives={200: Checkpoint})
async def latest(call: Call) -> Response:
    """The newest checkpoint."""
    found = await call.desk.look(
        lambda store: service.latest_checkpoint(store, call.tenant, call.path["id"])
    )
    return json_reply(found)


@table.route("POST", "/instances/{id:uuid}/checkpoints/prune", takes=Prune, gives={200: Count})
async def prune(call: Call, body: Prune) -> Response:
    """Remove all but the newest."""
    removed = await call.desk.write(
        lambda store: service.prune_checkpoints(store, call.tenant, call.path["id"], body.keep)
    )
    return json_reply(Count(removed))
