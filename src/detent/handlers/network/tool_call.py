"""`tool_call`: a tool behind a URL, called with its name and arguments, answering in JSON.

Or with bytes: `body_artifact` sends what an earlier step has brought, and `response_as: "artifact"`
keeps what this one brings. They are kept before the outcome is told, so a reference never leads
nowhere; after a crash in between the tool is called again, and keeps what it says then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.artifacts import artifact_of
from detent.handlers.network.headers import checked_headers, secret_values
from detent.handlers.network.http_request import checked_method
from detent.handlers.network.outside import (
    Outside,
    check_status,
    checked_timeout_ms,
    read_params,
    wrong,
)
from detent.handlers.network.secrets import Secrets
from detent.handlers.network.targets import read_target
from detent.handlers.network.uploads import Upload, parcel_of
from detent.handlers.secrets import GIVEN, hide_bytes
from detent.model import limits

if TYPE_CHECKING:
    from detent.handlers.context import HandlerContext
    from detent.handlers.network.client import Reply

METHODS: Final = ("POST", "PUT", "PATCH", "DELETE", "GET")


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a step may say."""

    url: str | None = None
    tool_name: str = "unknown"
    arguments: Any = {}
    method: str = "POST"
    headers: dict[str, Any] = {}
    timeout_ms: int = 30_000
    response_as: Literal["json", "text", "artifact"] = "json"
    body_artifact: Any = None
    upload: Upload | None = None


async def tool_call(outside: Outside, ctx: HandlerContext, given: dict[str, Any]) -> Any:
    """Call the tool; `{tool_name, result, status}`, with null for an empty answer."""
    params = read_params(given, Params, "tool_call")
    target = read_target(params.url)
    method = checked_method(params.method, METHODS)
    _check_body(params, method)
    headers = checked_headers(params.headers)
    timeout_ms = checked_timeout_ms("timeout_ms", params.timeout_ms)
    if ctx.dry_run:
        return {
            "dry_run": True,
            "handler": "tool_call",
            "would": {"method": method, "url": params.url, "arguments": params.arguments},
            "tool_name": params.tool_name,
            "result": None,
            "status": None,
        }
    from detent.handlers.network.client import Call

    if params.response_as != "artifact":
        headers.setdefault("accept", "application/json")
    body = None
    if params.body_artifact is not None:
        parcel = await parcel_of(outside, ctx, params.body_artifact, params.upload)
        headers["content-type"], body = parcel.content_type, parcel.body
    elif method != "GET":
        headers.setdefault("content-type", "application/json")
        body = _request(params, ctx)
    if method != "GET":
        headers.setdefault("idempotency-key", ctx.key)
    secrets = Secrets(secret_values(headers))
    reply = await outside.client.fetch(
        Call(
            url=params.url or "",
            method=method,
            headers=headers,
            body=body,
            timeout_s=timeout_ms / 1000,
        )
    )
    check_status(reply, secrets, target.place)
    if params.response_as == "artifact":
        hidden = hide_bytes(reply.body, (*secret_values(headers), *GIVEN.get()))
        kept = await _kept(outside, ctx, hidden, reply.headers.get("content-type", ""))
        return {"tool_name": params.tool_name, "artifact": kept, "status": reply.status}
    result = secrets.hide_in(_result(reply, params, secrets))
    return {"tool_name": params.tool_name, "result": result, "status": reply.status}


def _check_body(params: Params, method: str) -> None:
    """Refuse what would not be sent."""
    if method == "GET" and (params.arguments or params.body_artifact is not None):
        raise wrong("a GET request has no body to carry arguments; use POST, or put them in url")
    if params.body_artifact is not None and params.arguments:
        raise wrong("body_artifact is the whole body; put arguments in url or headers")
    if params.upload is not None and params.body_artifact is None:
        raise wrong("upload says how body_artifact is sent, and there is none")


async def _kept(
    outside: Outside, ctx: HandlerContext, body: bytes, content_type: str
) -> dict[str, Any]:
    """Keep bytes beside the instance; their reference."""
    if outside.artifacts is None:
        raise wrong("this engine keeps no artifacts; take the answer as json or text")
    made = artifact_of(ctx.instance_id, body, content_type)
    await asyncio.to_thread(outside.artifacts.keep, ctx.instance_id, made.id, body)
    return msgspec.structs.asdict(made)


def _request(params: Params, ctx: HandlerContext) -> bytes:
    context = {"instance_id": ctx.instance_id, "block_id": ctx.block, "attempt": ctx.attempt}
    return msgspec.json.encode(
        {"tool_name": params.tool_name, "arguments": params.arguments, "context": context}
    )


def _result(reply: Reply, params: Params, secrets: Secrets) -> Any:
    if params.response_as == "text":
        return reply.text()
    if not reply.body.strip():
        return None
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        body = secrets.hide(reply.text())[: limits.FAILURE_BODY_CHARS]
        raise Failed(
            f"the tool {params.tool_name!r:.80} must answer in JSON, and did not",
            retryable=False,
            details={"status": reply.status, "body": body},
        ) from None
