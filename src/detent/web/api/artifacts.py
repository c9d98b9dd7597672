"""Bytes that steps have brought, by the key of their reference."""

from __future__ import annotations

from starlette.responses import Response

from detent.model.errors import RequestError
from detent.service.artifacts import read_artifact
from detent.web.api.call import Call
from detent.web.api.routes import Table

table = Table("artifacts")

MEDIA = "application/octet-stream"


@table.route("GET", "/artifacts/{instance:uuid}/{digest}", gives={200: bytes}, media=MEDIA)
async def show(call: Call) -> Response:
    """The bytes of an artifact; what they are stands in the reference."""
    instance, digest = call.path["instance"], call.path["digest"]
    body = await call.desk.look(lambda s: read_artifact(s, instance, digest, call.tenant))
    if body is None:
        raise RequestError("artifact.not_found", f"there is no artifact {instance}/{digest[:80]}")
    # Whatever a tool has sent is nothing that a browser should show or run here.
    headers = {"content-disposition": "attachment", "x-content-type-options": "nosniff"}
    return Response(body, 200, headers, media_type=MEDIA)
