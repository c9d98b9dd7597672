"""Outbound webhooks as settings: which URL is told what, and how a delivery is made."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import urlsplit

from msgspec import Struct

from detent.model import limits
from detent.model.errors import RequestError

EVENT_TYPES = ("instance.completed", "instance.failed", "instance.sla_breached")
SECRET_PREFIX = "whsec_"  # noqa: S105 - what the base64 of a secret begins with


class Webhook(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One URL that is told; no events are all of them, no tenant is every tenant.

    `secrets` are keys of its own, several while one is rotated; none: those of all deliveries.
    """

    url: str
    events: tuple[str, ...] = ()
    tenant: str | None = None
    secrets: tuple[str, ...] = ()


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How every delivery is made: its keys, its time, and how often it is tried again."""

    secrets: tuple[str, ...] = ()
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS
    retries: int = limits.WEBHOOK_RETRIES
    backoff_ms: int = limits.WEBHOOK_BACKOFF_MS


def check_webhooks(hooks: tuple[Webhook, ...], delivery: Delivery) -> None:
    """Refuse settings that no delivery can be made by."""
    if len(hooks) > limits.WEBHOOK_URLS:
        raise _bad("webhooks", f"at most {limits.WEBHOOK_URLS} URLs", len(hooks))
    if len({hook.url for hook in hooks}) < len(hooks):
        raise _bad("webhooks", "URLs that are each named once", [hook.url for hook in hooks])
    for hook in hooks:
        _check_url(hook.url)
        for event in hook.events:
            if event not in EVENT_TYPES:
                raise _bad("events", f"of {', '.join(EVENT_TYPES)}", event)
        _check_secrets(hook.secrets)
    _check_secrets(delivery.secrets)
    for name, most in (
        ("timeout_ms", limits.EFFECT_DEADLINE_MS // 2),
        ("retries", limits.WEBHOOK_RETRIES_MOST),
        ("backoff_ms", limits.WEBHOOK_BACKOFF_MAX_MS),
    ):
        value = getattr(delivery, name)
        if not (0 if name == "retries" else 1) <= value <= most:
            raise _bad(name, f"a whole number of {most} at most", value)


def secret_bytes(secret: str) -> bytes:
    """The key of a secret: `whsec_` and base64, or the text itself."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise _bad("a secret", f"{SECRET_PREFIX} and base64, or plain text", "…") from None


def _check_secrets(secrets: tuple[str, ...]) -> None:
    if len(secrets) > limits.WEBHOOK_SECRETS:
        raise _bad("secrets", f"at most {limits.WEBHOOK_SECRETS} keys", len(secrets))
    for secret in secrets:
        if not secret_bytes(secret):
            raise _bad("a secret", "not empty", "an empty one")


def _check_url(url: str) -> None:
    expected = f"an http or https URL of {limits.WEBHOOK_URL_CHARS} characters at most"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - a wrong port raises when it is read
    except ValueError:
        raise _bad("url", expected, url) from None
    good = parts.scheme in ("http", "https") and parts.hostname and url.isprintable()
    if not good or len(url) > limits.WEBHOOK_URL_CHARS or " " in url:
        raise _bad("url", expected, url)


def _bad(name: str, expected: str, got: object) -> RequestError:
    return RequestError("webhook.invalid", f"{name} must be {expected}; got {str(got)[:80]!r}")
