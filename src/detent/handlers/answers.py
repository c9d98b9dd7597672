"""What a handler, or its reconcile function, may say beside a plain result."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from msgspec import Struct

from detent.model import limits
from detent.model.payload import clean_text

_SHOWN = 80


class Failed(Exception):
    """Raised by a handler: nothing happened. With `retryable=False` no retry policy applies.

    `code` and `details` reach the instance's error, where `non_retryable_codes` and conditions
    can look at them. `retry_after` (seconds, or a timedelta) closes the limits and the resource of
    the step for that long: nobody calls before; without these its next attempt waits as long. One
    that is no such time, or longer than a year, closes nothing, and `details` say so: what a
    provider sends must not hide why the call failed.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        details: Any = None,
        code: str | None = None,
        retry_after: float | dt.timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = str(message)
        self.retryable = bool(retryable)
        self.details = details
        if retry_after is not None:
            given = details if isinstance(details, dict) else {}
            self.details = {**given, **_closing(retry_after)}
        self.code = code


def _closing(span: Any) -> dict[str, Any]:
    try:
        seconds = span.total_seconds() if isinstance(span, dt.timedelta) else float(span)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if seconds * 1000 <= limits.RETRY_AFTER_MS:  # NaN compares as False
        return {"retry_after_ms": round(max(0, seconds) * 1000)}
    shown = clean_text(repr(span), _SHOWN)
    expected = "seconds, at most 366 days of them"
    return {"retry_after_ignored": f"retry_after must be {expected}; got {shown}"}


class Applied(Struct, frozen=True):
    """Reconciled: the call did happen, with this result."""

    result: Any = None


class NotApplied(Struct, frozen=True):
    """Reconciled: the call did not happen; it counts as a failed attempt."""

    message: str = ""


class Retry(Struct, frozen=True):
    """Reconciled: the other side cannot tell yet; ask again later."""

    message: str = ""
