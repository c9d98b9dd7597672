"""API keys of tenants (contract §29): made, listed and revoked by the holder of the root key."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.service import api_keys as service
from detent.service.api_keys import ApiKey, MadeApiKey, NewApiKey
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply, utc
from detent.web.api.routes import Table

table = Table("api-keys")


class ApiKeyQuery(Struct):
    """Whose keys to list."""

    tenant_id: str | None = None


@table.route("POST", "/api-keys", takes=NewApiKey, admin=True, secret=True, gives={201: MadeApiKey})
async def create(call: Call, body: NewApiKey) -> Response:
    """Make a key; its secret is in this answer and in no other."""
    tenant = call.owner(body.tenant_id) if body.tenant_id else call.tenant or ""
    new = replace(body, tenant_id=tenant, expires_at=utc(body.expires_at))
    now_ms = call.desk.wall_ms()
    number = call.fresh_id().replace("-", "") if call.id_seed else ""
    made = await call.desk.write(lambda store: service.create_api_key(store, new, now_ms, number))
    return json_reply(made, 201)


@table.route("GET", "/api-keys", query=ApiKeyQuery, admin=True, gives={200: list[ApiKey]})
async def listing(call: Call) -> Response:
    """The keys of a tenant, or all; revoked ones too."""
    tenant = call.scope(call.query.tenant_id)
    return json_reply(await call.desk.look(lambda store: service.list_api_keys(store, tenant)))


@table.route("DELETE", "/api-keys/{id}", admin=True, gives={204: None})
async def revoke(call: Call) -> Response:
    """Let nobody in with a key any more."""
    now_ms, id = call.desk.wall_ms(), call.path["id"]
    await call.desk.write(lambda store: service.revoke_api_key(store, call.tenant, id, now_ms))
    call.keys.forget(id)
    return empty_reply(204)
