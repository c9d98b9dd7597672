"""`http_request`: one HTTP request, its answer as text.

It is `repeatable`: a call cut off by a crash is made again. So every request that may change
something carries `Idempotency-Key` with the effect's key, by which a server can tell a repetition
from a new wish; the key is a new one for each attempt after a definite failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from detent.handlers.network.headers import checked_headers, secret_values
from detent.handlers.network.outside import (
    Outside,
    check_status,
    checked_timeout_ms,
    read_params,
    wrong,
)
from detent.handlers.network.secrets import Secrets
from detent.handlers.network.targets import read_target

if TYPE_CHECKING:
    from detent.handlers.context import HandlerContext

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
SAFE: Final = ("GET", "HEAD")


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a step may say."""

    url: str | None = None
    method: str = "GET"
    body: Any = None
    headers: dict[str, Any] = {}
    timeout_ms: int = 10_000


async def http_request(outside: Outside, ctx: HandlerContext, given: dict[str, Any]) -> Any:
    """Make the request; `{status, body}` of an answer below 400."""
    params = read_params(given, Params, "http_request")
    target = read_target(params.url)
    method = checked_method(params.method, METHODS)
    body = body_of(params.body)
    headers = checked_headers(params.headers)
    timeout_ms = checked_timeout_ms("timeout_ms", params.timeout_ms)
    if ctx.dry_run:
        return {
            "dry_run": True,
            "handler": "http_request",
            "would": {"method": method, "url": params.url, "headers": sorted(headers)},
            "status": None,
            "body": None,
        }
    from detent.handlers.network.client import Call

    if body is not None:
        headers.setdefault("content-type", "application/json")
    if method not in SAFE:
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
    return {"status": reply.status, "body": secrets.hide(reply.text())}


def checked_method(given: str, methods: tuple[str, ...]) -> str:
    """The method in capitals, or a failure that no retry repeats."""
    method = given.upper()
    if method not in methods:
        raise wrong(f"method must be one of {', '.join(methods)}, got {given!r:.40}")
    return method


def body_of(given: Any) -> bytes | None:
    """A text as it is, nothing for null, anything else as JSON."""
    if given is None:
        return None
    return given.encode() if isinstance(given, str) else msgspec.json.encode(given)
