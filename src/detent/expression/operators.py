"""What each operator does with two values, once lenient and once strict."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from detent.expression.meter import Meter, fit, spend, spend_text
from detent.expression.numeric import Number, ToNumber, coerced, divide, exact, minus, plus, times
from detent.expression.values import LONG_TEXT, MISMATCH, Mismatch, equal, kind_of
from detent.model.errors import ExpressionError

Operate = Callable[[Any, Any, Meter], Any]

ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Number, Number], Number | Mismatch]] = {
    "+": plus,
    "-": minus,
    "*": times,
    "/": divide,
}


def refused(sign: str, *values: Any) -> ExpressionError:
    """Make the strict error of an operator or function that cannot take its values."""
    kinds = ", ".join(kind_of(value) for value in values) or "nothing"
    return ExpressionError(
        "expression.type",
        f"`{sign}` cannot be applied to {kinds}, or has no result for these values; "
        "check the types, or guard it with a condition.",
    )


def order(sign: str, *, strict: bool) -> Operate:
    """Give `<`, `<=`, `>` or `>=`: two numbers or two strings, anything else is false."""
    compare = ORDER[sign]

    def ordered(left: Any, right: Any, meter: Meter) -> bool:
        kind, other = type(left), type(right)
        if (kind is int or kind is float) and (other is int or other is float):
            return bool(compare(left, right))
        if kind is str and other is str:
            if len(left) > LONG_TEXT:
                spend_text(meter, len(left))
            return bool(compare(left, right))
        if strict:
            raise refused(sign, left, right)
        return False

    return ordered


def member(*, strict: bool) -> Operate:
    """Give `in`: whether an array holds an equal value."""

    def contained(left: Any, right: Any, meter: Meter) -> bool:
        if not isinstance(right, list):
            if strict:
                raise refused("in", left, right)
            return False
        return holds(right, left, meter)

    return contained


def holds(items: list[Any], value: Any, meter: Meter) -> bool:
    """Tell whether an array holds an equal value."""
    spend(meter, 1 + len(items))
    return any(equal(item, value, meter) for item in items)


def arithmetic(sign: str, *, strict: bool) -> Operate:
    """Give `+`, `-`, `*` or `/`; `+` also joins two strings."""
    compute = _ARITHMETIC[sign]
    number: ToNumber = exact if strict else coerced
    joins = sign == "+"

    def calculated(left: Any, right: Any, meter: Meter) -> Any:
        if joins and type(left) is str and type(right) is str:
            return joined(left, right, meter)
        one, two = number(left), number(right)
        result = MISMATCH if one is None or two is None else compute(one, two)
        if result is not MISMATCH:
            return result
        if strict:
            raise refused(sign, left, right)
        return None

    return calculated


def joined(left: str, right: str, meter: Meter) -> str:
    """Join two strings within the limits."""
    size = len(left) + len(right)
    fit(size)
    spend_text(meter, size)
    return left + right
