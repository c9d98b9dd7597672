"""Headers of requests and answers: what a definition may set, and what travels across origins."""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from detent.handlers.answers import Failed
from detent.model import limits

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_VALUE = re.compile(r"[^\t\x20-\x7e\x80-\xff]")

# The client speaks for itself here: these decide where a message ends and where it goes.
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

# A redirect to another origin takes nothing along but these: who knows which header is a secret?
_HARMLESS: Final = frozenset(
    {"accept", "accept-language", "content-type", "idempotency-key", "user-agent"}
)

_PARTS = re.compile(r"[\s;,=]+")  # the token behind "Bearer", the values of cookies
_SECRET = re.compile(r"auth|cookie|token|secret|password|passwd|credential|session|signature|key")


def checked_headers(given: Mapping[str, Any]) -> dict[str, str]:
    """The headers that a definition set, in lower case; or a failure that no retry repeats."""
    if len(given) > limits.HEADERS:
        raise _wrong(f"there may be at most {limits.HEADERS} headers, got {len(given)}")
    found: dict[str, str] = {}
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise _wrong(f"{name!r:.80} is no name of a header")
        if name.lower() in _OURS:
            raise _wrong(f"the header {name} is set by the engine; leave it out")
        text = _text(name, value)
        if _BAD_VALUE.search(text):  # the value is not told: it may be a secret
            raise _wrong(f"the header {name} holds a character that no header may have")
        found[name.lower()] = text.strip(" \t")
    if sum(len(name) + len(text) for name, text in found.items()) > limits.HEADER_BYTES:
        raise _wrong(f"all headers together must be at most {limits.HEADER_BYTES:,} bytes")
    return found


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """What may be sent to another origin than the one the headers were meant for."""
    return {name: text for name, text in headers.items() if name in _HARMLESS}


def secret_values(headers: Mapping[str, str]) -> list[str]:
    """The values that must not be seen in anything that is stored."""
    found: list[str] = []
    for name, text in headers.items():
        if name != "idempotency-key" and _SECRET.search(name):
            found += [text, *_PARTS.split(text), *_basic(text)]
    return found


def _basic(text: str) -> list[str]:
    """The password inside of `Basic …`."""
    scheme, _, packed = text.partition(" ")
    try:
        plain = base64.b64decode(packed, validate=True).decode("latin-1")
    except ValueError:
        return []
    return [plain, plain.partition(":")[2]] if scheme.lower() == "basic" else []


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """For how long the other side wants to be left alone, if it says so in a form we know."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:12])
    else:
        until, now = _date(text), _date(headers.get("date", ""))
        if until is None or now is None:
            return None
        seconds = max(0.0, (until - now).total_seconds())
    return min(seconds, limits.SERVER_RETRY_AFTER_MS / 1000)


def _date(text: str) -> dt.datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise _wrong(f"the header {name} must be a text, got {type(value).__name__}")


def _wrong(problem: str) -> Failed:
    return Failed(problem, retryable=False, code="request.invalid")
