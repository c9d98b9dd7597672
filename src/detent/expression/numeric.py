"""Arithmetic on JSON numbers: 64-bit integers that overflow to floats, and no NaN or infinity."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from detent.expression.values import MISMATCH, Marker, Mismatch
from detent.model.limits import INTEGER_BITS

Number = int | float
ToNumber = Callable[[Any], "Number | None"]

_SMALLEST = -(2 ** (INTEGER_BITS - 1))
_LARGEST = 2 ** (INTEGER_BITS - 1) - 1
_NUMERIC_CHARS = 64
_NUMERIC = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def exact(value: Any) -> Number | None:
    """Take numbers only: the strict coercion."""
    kind = type(value)
    return value if kind is int or kind is float else None


def coerced(value: Any) -> Number | None:
    """Take numbers, numeric strings and booleans: the lenient coercion."""
    kind = type(value)
    if kind is int or kind is float:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return int(value)
    return parsed(value) if kind is str else None


def parsed(text: str) -> Number | None:
    """Read a decimal number, or nothing."""
    match = _NUMERIC.fullmatch(text) if len(text) <= _NUMERIC_CHARS else None
    if match is None:
        return None
    number = settled(int(text) if match[1] is None and match[2] is None else float(text))
    return None if isinstance(number, Marker) else number


def settled(number: Number) -> Number | Mismatch:
    """Bring a result into what JSON can hold; what it cannot is a mismatch."""
    if isinstance(number, int):
        if _SMALLEST <= number <= _LARGEST:
            return number
        try:
            return float(number)
        except OverflowError:
            return MISMATCH
    return number if math.isfinite(number) else MISMATCH


def divide(left: Number, right: Number) -> Number | Mismatch:
    """Divide; two integers that divide evenly give an integer, by zero there is no result."""
    if right == 0:
        return MISMATCH
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return settled(left // right)
    return _guarded(operator.truediv, left, right)


def _guarded(apply: Callable[[Any, Any], Any], left: Number, right: Number) -> Number | Mismatch:
    try:
        return settled(apply(left, right))
    except OverflowError:
        return MISMATCH


def plus(left: Number, right: Number) -> Number | Mismatch:
    """Add two numbers."""
    return _guarded(operator.add, left, right)


def minus(left: Number, right: Number) -> Number | Mismatch:
    """Subtract two numbers."""
    return _guarded(operator.sub, left, right)


def times(left: Number, right: Number) -> Number | Mismatch:
    """Multiply two numbers."""
    return _guarded(operator.mul, left, right)


def rounded(number: Number, digits: int) -> Number | Mismatch:
    """Round half away from zero, to an integer when no digits are asked for."""
    if isinstance(number, int):
        return settled(number)
    scale = 10.0**digits
    scaled = abs(number) * scale
    if not math.isfinite(scaled):
        return settled(number)
    whole = math.copysign(math.floor(scaled + 0.5), number)
    return settled(int(whole)) if digits == 0 else settled(whole / scale)
