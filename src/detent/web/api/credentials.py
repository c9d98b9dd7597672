"""Credentials (contract §26): secrets that steps refer to, sealed and never shown."""

from __future__ import annotations

import datetime as dt

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.service import credentials as service
from detent.service.credentials import Credential, CredentialPatch, NewCredential
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply, utc
from detent.web.api.routes import Table

table = Table("credentials")


class CredentialQuery(Struct):
    """Whose credentials to list."""

    tenant_id: str | None = None
    limit: int = 100


@table.route("POST", "/credentials", takes=NewCredential, gives={201: Credential})
async def create(call: Call, body: NewCredential) -> Response:
    """Seal a secret under an id that steps refer to."""
    new = replace(body, expires_at=utc(body.expires_at))
    safe, now_ms = call.desk.safe(), call.desk.wall_ms()
    made = await call.desk.write(
        lambda store: service.create_credential(store, safe, call.tenant, new, now_ms)
    )
    return json_reply(made, 201)


@table.route("GET", "/credentials", query=CredentialQuery, gives={200: list[Credential]})
async def listing(call: Call) -> Response:
    """The tenant's own credentials and the global ones, without their secrets."""
    asked: CredentialQuery = call.query
    tenant = call.scope(asked.tenant_id)
    found = await call.desk.look(lambda s: service.list_credentials(s, tenant, asked.limit))
    return json_reply(found)


@table.route("GET", "/credentials/{id}", gives={200: Credential})
async def show(call: Call) -> Response:
    """One credential, without its secrets."""
    found = await call.desk.look(lambda s: service.get_credential(s, call.tenant, call.path["id"]))
    return json_reply(found)


@table.route("PATCH", "/credentials/{id}", takes=CredentialPatch, gives={200: Credential})
async def change(call: Call, body: CredentialPatch) -> Response:
    """Change what is named; null takes an option away."""
    patch = body
    if isinstance(body.expires_at, dt.datetime):
        patch = replace(body, expires_at=utc(body.expires_at))
    safe, now_ms, id = call.desk.safe(), call.desk.wall_ms(), call.path["id"]
    made = await call.desk.write(
        lambda store: service.patch_credential(store, safe, call.tenant, id, patch, now_ms)
    )
    return json_reply(made)


@table.route("DELETE", "/credentials/{id}", gives={204: None})
async def delete(call: Call) -> Response:
    """Remove a credential; steps that refer to it fail from now on."""
    await call.desk.write(lambda s: service.delete_credential(s, call.tenant, call.path["id"]))
    return empty_reply(204)
