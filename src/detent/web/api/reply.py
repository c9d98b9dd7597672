"""Answers: JSON, plain text or nothing, with their status."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
from starlette.responses import Response

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

_encode = msgspec.json.Encoder().encode


def json_reply(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(_encode(value), status, media_type=JSON)


def text_reply(text: str, status: int, code: str = "") -> Response:
    """A sentence as plain text; its stable code is in a header."""
    headers = {"x-detent-code": code} if code else None
    return Response(text, status, headers, media_type=TEXT)


def empty_reply(status: int = 200) -> Response:
    """A status and no body."""
    return Response(b"", status)


def seconds(ms: int | None) -> int | float | None:
    """Milliseconds as seconds: a whole number where it is one."""
    if ms is None:
        return None
    return ms // 1000 if ms % 1000 == 0 else ms / 1000


def utc(at: dt.datetime | None) -> dt.datetime | None:
    """An instant as all answers show it."""
    return None if at is None else at.astimezone(dt.UTC)


def instant(ms: int | None) -> str | None:
    """Unix milliseconds as RFC 3339 in UTC."""
    if ms is None:
        return None
    at = dt.datetime.fromtimestamp(ms // 1000, dt.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}000Z"
