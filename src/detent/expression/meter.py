"""The budget of one evaluation: operations and bytes, never wall clock.

The nodes of an expression are bounded by its text, so only work that grows with the *data* is
metered: elements visited, characters copied, bytes that a result will have once written.
"""

from __future__ import annotations

from typing import Any

import msgspec

from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_OPERATIONS, TEMPLATE_RESULT_BYTES

# A plain list [operations left, bytes left]: it is made for every evaluation, and an object
# with attributes costs four times as much as everything else around a simple comparison.
Meter = list[int]

# Reading or copying so many characters costs as much as one operation of ours.
CHARS_PER_OPERATION = 256

_encode = msgspec.json.Encoder().encode


def new_meter() -> Meter:
    """Give a full budget."""
    return [EXPRESSION_OPERATIONS, TEMPLATE_RESULT_BYTES]


def spend(meter: Meter, operations: int) -> None:
    """Take operations from the budget, or refuse when it is used up."""
    meter[0] -= operations
    if meter[0] < 0:
        raise ExpressionError(
            "expression.limit",
            f"The evaluation needs more than {EXPRESSION_OPERATIONS} operations; "
            "work on less data or split the expression.",
            limit=EXPRESSION_OPERATIONS,
        )


def spend_text(meter: Meter, chars: int) -> None:
    """Take what reading or copying so many characters costs."""
    spend(meter, 1 + chars // CHARS_PER_OPERATION)


def keep(meter: Meter, size: int) -> None:
    """Take bytes of the result from the budget, or refuse when they are used up."""
    meter[1] -= size
    if meter[1] < 0:
        raise oversized()


def keep_value(meter: Meter, value: Any) -> None:
    """Take the size of a value that becomes part of a larger result.

    A path gives a container by reference, so a short text can name the same large one many
    times; counting each use keeps the written result small.
    """
    if isinstance(value, str):
        keep(meter, len(value))
    elif isinstance(value, (dict, list)):
        keep(meter, len(encoded(value)))


def fit(size: int) -> None:
    """Refuse a text of more bytes than a result may have, before it is made."""
    if size > TEMPLATE_RESULT_BYTES:
        raise oversized()


def oversized() -> ExpressionError:
    """Make the error of a result that is too large."""
    return ExpressionError(
        "expression.limit",
        f"The result is larger than {TEMPLATE_RESULT_BYTES} bytes; keep large values in blobs.",
        limit=TEMPLATE_RESULT_BYTES,
    )


def encoded(value: Any) -> bytes:
    """Write a value as compact JSON."""
    try:
        return _encode(value)
    except RecursionError:
        raise ExpressionError(
            "expression.limit", "The value is nested too deeply to be written as JSON."
        ) from None
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError):
        raise ExpressionError(
            "expression.type", "The value holds something that cannot be written as JSON."
        ) from None
