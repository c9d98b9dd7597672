"""Finding `{{ … }}` in a text and splitting what is inside; quotes protect all signs."""

from __future__ import annotations

import re
from typing import NamedTuple

_STOPS = re.compile(r"""['"]|\}\}""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


class Inner(NamedTuple):
    """The trimmed text between a pair of braces."""

    text: str


def pieces(text: str) -> list[str | Inner]:
    """Split a text into literal parts and inner expressions, in order.

    A `{{` that is never closed makes all that follows literal, so every character is looked at
    a bounded number of times.
    """
    found: list[str | Inner] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = _closing(text, start + 2)
        if end < 0:
            break
        if start > at:
            found.append(text[at:start])
        found.append(Inner(text[start + 2 : end].strip()))
        at = end + 2
    if at < len(text) or not found:
        found.append(text[at:])
    return found


def _closing(text: str, at: int) -> int:
    while (stop := _STOPS.search(text, at)) is not None:
        if stop[0] == "}}":
            return stop.start()
        at = text.find(stop[0], stop.end()) + 1
        if at == 0:
            return -1
    return -1


def split(text: str, separator: str) -> list[str]:
    """Split at a separator outside quotes and parentheses, and trim the parts."""
    parts: list[str] = []
    depth = start = at = 0
    while at < len(text):
        sign = text[at]
        quoted = _QUOTED.match(text, at) if sign in "'\"" else None
        if quoted is not None:
            at = quoted.end()
            continue
        if sign == separator and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        at += 1
    parts.append(text[start:].strip())
    return parts


def unquoted(text: str) -> str | None:
    """Give the text inside quotes, or nothing when it is not one quoted text."""
    return text[1:-1] if _QUOTED.fullmatch(text) else None
