"""How a place in a definition and a value found there are written in messages."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

_WORD = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_CHARS = 40
_SHOWN_NUMBER = 1e30


def below(path: str, key: str) -> str:
    """Name the member of an object: `retry.max_attempts`, `nodes["send it"]`."""
    if not _WORD.fullmatch(key):
        return f"{path}[{quoted(key)}]"
    return f"{path}.{key}" if path else key


def item(path: str, index: int) -> str:
    """Name the member of a list: `blocks[2]`."""
    return f"{path}[{index}]"


def field_of(path: str) -> str:
    """Give the last name of a path, for messages that speak of the field."""
    return path.rpartition(".")[2]


def quoted(text: str) -> str:
    """Write a text in quotes, shortened."""
    short = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return '"' + short.encode("unicode_escape").decode() + '"' if _odd(short) else f'"{short}"'


def found(value: Any) -> str:
    """Describe a value that was not expected."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}" if abs(value) < _SHOWN_NUMBER else "a very large number"
        case str():
            return f"the text {quoted(value)}"
        case dict():
            return "an object"
        case list() | tuple():
            return f"a list of {len(value)}"
    return f"a Python {type(value).__name__}"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Give `; did you mean "x"?` when a known name is close, else nothing."""
    near = get_close_matches(name[:64], list(known), n=1, cutoff=0.7)
    return f'; did you mean "{near[0]}"?' if near else ""


def _odd(text: str) -> bool:
    return not text.isprintable()
