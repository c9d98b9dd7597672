"""Values as people read them: JSON on one line, cut where it gets long."""

from __future__ import annotations

from typing import Any

import msgspec

LINE_CHARS = 100


def one_line(value: Any, limit: int = LINE_CHARS) -> str:
    """A value as JSON on one line; null and empty objects are not worth showing."""
    if value is None or value == {}:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pretty(value: Any) -> list[str]:
    """A value as JSON over several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().split("\n")


def plural(count: int, thing: str) -> str:
    """`1 instance`, `2 instances`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
