"""Health and identity of the server (contract §28)."""

from __future__ import annotations

from msgspec import Struct
from starlette.responses import Response

from detent.service.cluster import draining
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table

table = Table("health")

CONTRACT = 1


class Info(Struct):
    """Who answers."""

    version: str
    storage_schema_version: int
    contract_schema_version: int
    env_label: str | None
    env_color: str | None


@table.route("GET", "/health/live", public=True, root_only=True, gives={200: None})
async def live(_call: Call) -> Response:
    """The process answers."""
    return empty_reply(200)


@table.route("GET", "/health/ready", public=True, root_only=True, gives={200: None, 503: None})
async def ready(call: Call) -> Response:
    """The store can be read, the writer works, and the node does not drain."""
    if call.desk.held():
        return empty_reply(503)
    drains = await call.desk.look(lambda store: draining(store, *call.desk.here()))
    return empty_reply(503 if drains else 200)


@table.route("GET", "/info", public=True, root_only=True, gives={200: Info})
async def info(call: Call) -> Response:
    """The version of the server and of its store."""
    meta = await call.desk.look(lambda store: store.meta())
    told = Info(
        version=call.server.version,
        storage_schema_version=meta.schema,
        contract_schema_version=CONTRACT,
        env_label=call.server.environment or None,
        env_color=call.server.color or None,
    )
    return json_reply(told)
