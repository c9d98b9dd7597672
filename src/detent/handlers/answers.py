"""What a handler, or its reconcile function, may say beside a plain result."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Failed(Exception):
    """Raised by a handler: nothing happened. With `retryable=False` no retry policy applies.

    `code` and `details` reach the instance's error, where `non_retryable_codes` and conditions
    can look at them.
    """

    def __init__(
        self, message: str, *, retryable: bool = True, details: Any = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = str(message)
        self.retryable = bool(retryable)
        self.details = details
        self.code = code


class Applied(Struct, frozen=True):
    """Reconciled: the call did happen, with this result."""

    result: Any = None


class NotApplied(Struct, frozen=True):
    """Reconciled: the call did not happen; it counts as a failed attempt."""

    message: str = ""


class Retry(Struct, frozen=True):
    """Reconciled: the other side cannot tell yet; ask again later."""

    message: str = ""
