"""`human_review` with a `notify_url`: whoever stands there is told of the review.

The notice is a courtesy: that nobody took it does not keep the review from being made, and the
output says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.network.headers import checked_headers, secret_values
from detent.handlers.network.outside import Outside, check_status, read_params
from detent.handlers.network.secrets import Secrets
from detent.handlers.network.targets import read_target

if TYPE_CHECKING:
    from detent.handlers.context import HandlerContext

_TIMEOUT_S = 10.0


class Params(Struct, frozen=True, kw_only=True):
    """What the kernel hands over."""

    notify_url: str
    review: dict[str, Any]
    notify_headers: dict[str, Any] = {}


async def human_review(outside: Outside, ctx: HandlerContext, given: dict[str, Any]) -> Any:
    """Tell of the review; the review, and whether it was told."""
    params = read_params(given, Params, "human_review")
    try:
        await _tell(outside, ctx, params)
    except Failed as error:
        return {**params.review, "notified": False, "notify_error": error.message}
    return {**params.review, "notified": True}


async def _tell(outside: Outside, ctx: HandlerContext, params: Params) -> None:
    from detent.handlers.network.client import Call

    target = read_target(params.notify_url)
    headers = checked_headers(params.notify_headers)
    headers.setdefault("content-type", "application/json")
    headers.setdefault("idempotency-key", ctx.key)
    secrets = Secrets(secret_values(headers))
    reply = await outside.client.fetch(
        Call(
            url=params.notify_url,
            method="POST",
            headers=headers,
            body=msgspec.json.encode(params.review),
            timeout_s=_TIMEOUT_S,
        )
    )
    check_status(reply, secrets, target.place)
