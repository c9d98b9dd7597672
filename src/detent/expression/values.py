"""Truth, equality, text and names of JSON values, as the language defines them."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from detent.expression.meter import Meter, encoded, spend, spend_text
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_DEPTH, PAYLOAD_DEPTH

# Comparing short strings costs less than counting them.
LONG_TEXT = 4_096
_DEPTH = PAYLOAD_DEPTH + EXPRESSION_DEPTH


class Marker(Enum):
    """Answers that are no JSON value."""

    # Operators and functions cannot take these values: null when lenient, an error when strict.
    MISMATCH = "mismatch"
    # A path leads nowhere: null, but the trace tells it from a null that is there.
    MISSING = "missing"


Mismatch: TypeAlias = Literal[Marker.MISMATCH]
MISMATCH: Final = Marker.MISMATCH
MISSING: Final = Marker.MISSING


def truthy(value: Any) -> bool:
    """Tell whether a value counts as true: all but null, false, 0, "" and []."""
    return isinstance(value, dict) or bool(value)


def equal(left: Any, right: Any, meter: Meter, depth: int = 0) -> bool:
    """Compare numbers numerically, anything else by type and value; a boolean is no number."""
    if left is right:
        return True
    kind, other = type(left), type(right)
    if kind is bool or other is bool:
        return False
    if kind is not other:
        return kind in (int, float) and other in (int, float) and bool(left == right)
    if kind is str:
        if len(left) > LONG_TEXT:
            spend_text(meter, len(left))
        return bool(left == right)
    if kind is list or kind is dict:
        return _equal_containers(left, right, meter, depth + 1)
    return bool(left == right)


def _equal_containers(left: Any, right: Any, meter: Meter, depth: int) -> bool:
    if depth > _DEPTH:
        raise ExpressionError(
            "expression.limit", f"Values nested deeper than {_DEPTH} levels cannot be compared."
        )
    if len(left) != len(right):
        return False
    spend(meter, 1 + len(left))
    if isinstance(left, list):
        pairs = zip(left, right, strict=True)
        return all(equal(one, two, meter, depth) for one, two in pairs)
    return all(
        key in right and equal(value, right[key], meter, depth) for key, value in left.items()
    )


def text_of(value: Any, meter: Meter) -> str:
    """Write a value as it stands inside a text: strings bare, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    return json_text(value, meter)


def json_text(value: Any, meter: Meter) -> str:
    """Write a value as compact JSON text."""
    text = encoded(value).decode()
    spend_text(meter, len(text))
    return text


def text_bytes(text: str) -> int:
    """Count the bytes of a text as UTF-8."""
    return len(text) if text.isascii() else len(utf8(text))


def utf8(text: str) -> bytes:
    """Encode a text; half a surrogate pair passes, because JSON lets it in."""
    return text.encode("utf-8", "surrogatepass")


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def shorten(text: str, limit: int = 80) -> str:
    """Cut a text for an error message."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
