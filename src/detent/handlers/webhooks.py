"""`webhook_deliver`: the one call of a delivery, and what its answer means.

HTTP itself is somebody else's: `Post` is handed in. A call is `keyed` by the delivery's id, which
receivers get as `webhook-id` and which stays the same however often it is tried. So an answer that
was lost may be asked for once more, and counts as a failed attempt. The settings of today say how
often and when: a failure carries the pause before the next attempt.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from detent.handlers.answers import Failed
from detent.handlers.context import HandlerContext
from detent.handlers.declare import Declaration
from detent.kernel.webhooks import signed_headers
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.webhook import Delivery, Webhook

if TYPE_CHECKING:
    from detent.handlers.registry import Registry

NAME = "webhook_deliver"
_REFUSED, _GONE, _BROKEN = 400, 410, 500
_AGAIN = (408, 429)
_encode = msgspec.json.Encoder().encode

Post = Callable[[str, Mapping[str, str], bytes, int], Awaitable[tuple[int, Mapping[str, str], str]]]
"""post(url, headers, body, timeout_ms) -> (status, headers in lower case, excerpt of the body).

Whatever it raises is an attempt that failed; a `RequestError` is one that is not tried again.
"""


class Gone(Protocol):
    """The URLs that have answered 410 and were not enabled since; both calls may block."""

    def why(self, url: str) -> str:
        """Why nothing is sent to a URL; empty when something is."""

    def disable(self, url: str, why: str) -> None:
        """Send nothing more to a URL."""


class Sending(NamedTuple):
    """What deliveries are made with."""

    post: Post
    hooks: tuple[Webhook, ...]
    delivery: Delivery
    gone: Gone
    now_ms: Callable[[], int]


def register_webhooks(registry: Registry, sending: Sending) -> None:
    """Add the handler to an engine's registry."""

    async def webhook_deliver(ctx: HandlerContext) -> dict[str, Any]:
        return await deliver(sending, ctx)

    webhook_deliver.detent_handler = Declaration(  # type: ignore[attr-defined]
        name=NAME, doubt="keyed", withdrawable=False, merge=False
    )
    registry.add_builtin(webhook_deliver)


async def deliver(sending: Sending, ctx: HandlerContext) -> dict[str, Any]:
    """Make one attempt; the result says whether it was delivered, or why it was skipped."""
    url = ctx.data["url"]
    hook = next((each for each in sending.hooks if each.url == url), None)
    if hook is None:
        raise _final("the URL is configured no longer", "not_configured")
    why = await asyncio.to_thread(sending.gone.why, url)
    if why:
        return {"delivered": False, "skipped": why, "error_class": "disabled"}
    status, headers, excerpt = await _post(sending, ctx, hook)
    if status < _REFUSED:
        return {"delivered": True, "status": status}
    details = {"status": status, "body": excerpt[: limits.WEBHOOK_EXCERPT_CHARS]}
    text = f"the receiver answered {status}"
    if status == _GONE:
        await asyncio.to_thread(sending.gone.disable, url, text)
        raise _final(text, "gone", details)
    kind = "http_4xx" if status < _BROKEN else "http_5xx"
    if status < _BROKEN and status not in _AGAIN:
        raise _final(text, kind, details)
    asked = _retry_after(headers, sending.now_ms())
    raise _again(sending, ctx, text, kind, details, asked)


def body_of(data: Mapping[str, Any]) -> bytes:
    """The body of a delivery: the same bytes at each attempt."""
    return _encode(
        {name: data[name] for name in ("event_type", "instance_id", "timestamp", "data")}
    )


async def _post(
    sending: Sending, ctx: HandlerContext, hook: Webhook
) -> tuple[int, Mapping[str, str], str]:
    body = body_of(ctx.data)
    timeout_ms = sending.delivery.timeout_ms
    secrets = hook.secrets or sending.delivery.secrets
    headers = {
        "content-type": "application/json",
        "user-agent": "detent-webhooks",
        **signed_headers(secrets, ctx.instance_id, sending.now_ms() // 1000, body),
    }
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await sending.post(hook.url, headers, body, timeout_ms)
    except TimeoutError:
        text = f"the receiver gave no answer within {timeout_ms} ms"
        raise _again(sending, ctx, text, "timeout") from None
    except RequestError as error:
        raise _final(error.message, "refused", {"code": error.code}) from error
    except Exception as error:
        text = f"the receiver cannot be reached: {type(error).__name__}: {error}"
        raise _again(sending, ctx, text, "connection") from error


def _final(text: str, kind: str, details: Mapping[str, Any] | None = None) -> Failed:
    return Failed(text, retryable=False, details={"error_class": kind, **(details or {})})


def _again(
    sending: Sending,
    ctx: HandlerContext,
    text: str,
    kind: str,
    details: Mapping[str, Any] | None = None,
    asked_ms: int = 0,
) -> Failed:
    """A failure after which another attempt follows, unless this was the last."""
    if ctx.attempt > sending.delivery.retries:
        return _final(text, kind, details)
    pause = max(_backoff_ms(sending.delivery, ctx), asked_ms)
    return Failed(text, details={"error_class": kind, **(details or {})}, retry_after=pause / 1000)


def _backoff_ms(delivery: Delivery, ctx: HandlerContext) -> int:
    """Twice as long each time, a quarter more or less: those that fail together come apart."""
    grown = min(delivery.backoff_ms << (ctx.attempt - 1), limits.WEBHOOK_BACKOFF_MAX_MS)
    spread = grown // 4
    point = int.from_bytes(hashlib.sha256(ctx.key.encode()).digest()[:8], "big")
    return grown - spread + point % (2 * spread + 1)


def _retry_after(headers: Mapping[str, str], now_ms: int) -> int:
    """What Retry-After asks for, in seconds or as a date; 0 where it says nothing."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        asked = int(text[:10]) * 1000
    else:
        try:
            asked = int(parsedate_to_datetime(text).timestamp() * 1000) - now_ms
        except (ValueError, OverflowError):
            return 0
    return max(0, min(asked, limits.WEBHOOK_RETRY_AFTER_MS))
