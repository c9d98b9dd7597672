"""`tool_call`: a tool behind a URL, called with its name and arguments, answering in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from detent.handlers.answers import Failed
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
    response_as: Literal["json", "text"] = "json"


async def tool_call(outside: Outside, ctx: HandlerContext, given: dict[str, Any]) -> Any:
    """Call the tool; `{tool_name, result, status}`, with null for an empty answer."""
    params = read_params(given, Params, "tool_call")
    target = read_target(params.url)
    method = checked_method(params.method, METHODS)
    if method == "GET" and params.arguments:
        raise wrong("a GET request has no body to carry arguments; use POST, or put them in url")
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

    headers.setdefault("accept", "application/json")
    body = None
    if method != "GET":
        headers.setdefault("content-type", "application/json")
        headers.setdefault("idempotency-key", ctx.key)
        body = _request(params, ctx)
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
    result = secrets.hide_in(_result(reply, params, secrets))
    return {"tool_name": params.tool_name, "result": result, "status": reply.status}


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
