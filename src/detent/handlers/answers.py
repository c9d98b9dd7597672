"""What a handler, or its reconcile function, may say beside a plain result."""

from __future__ import annotations

import datetime as dt
from typing import Any

from msgspec import Struct

from detent.model import limits


class Failed(Exception):
    """Raised by a handler: nothing happened. With `retryable=False` no retry policy applies.

    `code` and `details` reach the instance's error, where `non_retryable_codes` and conditions
    can look at them. `retry_after` (seconds, or a timedelta) closes the limits and the resource of
    the step for that long: nobody calls before. Without these its next attempt waits as long.
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
            self.details = {**given, "retry_after_ms": _ms(retry_after)}
        self.code = code


def _ms(span: float | dt.timedelta) -> int:
    seconds = span.total_seconds() if isinstance(span, dt.timedelta) else float(span)
    return max(0, round(min(seconds, limits.DURATION_MS / 1000) * 1000))


class Applied(Struct, frozen=True):
    """Reconciled: the call did happen, with this result."""

    result: Any = None


class NotApplied(Struct, frozen=True):
    """Reconciled: the call did not happen; it counts as a failed attempt."""

    message: str = ""


class Retry(Struct, frozen=True):
    """Reconciled: the other side cannot tell yet; ask again later."""

    message: str = ""
