"""What the dispatcher needs of handlers; `detent.handlers.Registry` offers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from detent.model.decision import Order


class Performer(Protocol):
    """One handler, ready to be called; it answers with the outcome and never raises.

    Without an outcome nothing was called, and the call is to begin anew.
    """

    @property
    def is_async(self) -> bool:
        """Whether `perform` gives a coroutine."""

    def perform(
        self, order: Order, dispatch: int
    ) -> bytes | Coroutine[Any, Any, bytes | None] | None:
        """Make the call; the bytes of its outcome."""

    def timed_out(self, order: Order, dispatch: int) -> bytes:
        """The outcome of a call that did not end in time."""


class Performers(Protocol):
    """The handlers of an engine."""

    def performer(self, name: str, mode: str) -> Performer | None:
        """What performs orders of that mode (call or reconcile); None while nobody does."""
