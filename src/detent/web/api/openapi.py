"""The description of the API (OpenAPI 3.1), made from the same declarations that serve it."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from msgspec import NODEFAULT
from starlette.responses import Response

from detent.web.api.call import Call
from detent.web.api.reply import JSON, json_reply
from detent.web.api.routes import Route, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

table = Table("description")

_REFS = "#/components/schemas/{name}"
_ERROR = {
    "type": "object",
    "required": ["error", "code"],
    "properties": {
        "error": {"type": "string"},
        "code": {"type": "string"},
        "details": {"type": "object"},
    },
}


class Description:
    """The document, made once, when it is first asked for."""

    def __init__(self, routes: Sequence[Route], version: str) -> None:
        self._routes = routes
        self._version = version
        self.document = cache(self._make)

    def _make(self) -> dict[str, Any]:
        shapes = _shapes(self._routes)
        _, components = msgspec.json.schema_components(
            shapes, schema_hook=_anything, ref_template=_REFS
        )
        paths: dict[str, dict[str, Any]] = {}
        for route in self._routes:
            operation = _operation(route)
            paths.setdefault(_path(route), {})[route.method.lower()] = operation
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "Detent",
                "version": self._version,
                "description": "Every path below answers under /api/v1 as well, "
                "but for health, info, metrics and inbound webhooks.",
            },
            "paths": paths,
            "components": {
                "schemas": {**components, "Error": _ERROR},
                "securitySchemes": {
                    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                    "bearer": {"type": "http", "scheme": "bearer"},
                },
            },
        }


@table.route("GET", "/api-docs/openapi.json", tenantless=True, root_only=True, gives={200: Any})
async def document(call: Call) -> Response:
    """This description."""
    return json_reply(call.description.document())


def _shapes(routes: Sequence[Route]) -> list[Any]:
    shapes = [shape for route in routes for shape in (route.takes, *route.gives.values())]
    return [shape for shape in shapes if shape is not None and shape is not Any]


def _operation(route: Route) -> dict[str, Any]:
    told = (route.run.__doc__ or "").strip().partition("\n")[0]
    made: dict[str, Any] = {
        "tags": [route.tag],
        "operationId": f"{route.tag}_{route.run.__name__}",
        "summary": told.rstrip("."),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_headers(route)],
        "responses": _responses(route),
        "security": [] if route.public else [{"key": []}, {"bearer": []}],
    }
    if route.takes is not None:
        made["requestBody"] = {
            "required": not route.optional_body,
            "content": {JSON: {"schema": _schema(route.takes)}},
        }
    return made


def _path(route: Route) -> str:
    parts = [f"{{{p[1:-1].partition(':')[0]}}}" if p[0] == "{" else p for p in route.segments]
    return "/" + "/".join(parts)


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    for part in route.segments:
        if part[0] == "{":
            name, _, kind = part[1:-1].partition(":")
            schema = {"type": "string"} | ({"format": "uuid"} if kind == "uuid" else {})
            found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    hints = get_type_hints(route.query)
    return [
        {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "schema": _schema(hints[field.name])
            | ({} if field.default in (NODEFAULT, None) else {"default": field.default}),
        }
        for field in msgspec.structs.fields(route.query)
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    text = {"type": "string"}
    found = []
    if not (route.public or route.tenantless or route.admin):
        found.append({"name": "x-tenant-id", "in": "header", "required": True, "schema": text})
    if route.method == "POST" and not route.public:
        key = {"name": "idempotency-key", "in": "header", "required": False, "schema": text}
        found.append(key)
    return found


def _responses(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for status, shape in route.gives.items():
        answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if shape is not None:
            media = route.media or JSON
            answer["content"] = {media: {"schema": _schema(shape)}}
        made[str(status)] = answer
    refused = {"description": "refused: JSON with a sentence and a code, or plain text"}
    error = {"schema": {"$ref": _REFS.format(name="Error")}}
    text = {"schema": {"type": "string"}}
    made["4XX"] = refused | {"content": {JSON: error, "text/plain": text}}
    made["503"] = {"description": "the store or the writer needs attention"}
    return made


def _schema(shape: Any) -> dict[str, Any]:
    if shape is Any:
        return {}
    (schema,), _ = msgspec.json.schema_components(
        [shape], schema_hook=_anything, ref_template=_REFS
    )
    return schema


def _anything(kind: type) -> dict[str, Any]:
    """The schema of a member that may hold any JSON."""
    if kind is not object:
        raise NotImplementedError
    return {"description": "any JSON"}
