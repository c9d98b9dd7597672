"""Calls beside a step's own: of an escalation, or for a breached deadline."""

from __future__ import annotations

from typing import Any

from detent.kernel.builtin import MOVES
from detent.kernel.failure import Failure
from detent.kernel.run import Run


def at_once(run: Run, handler: str, request: Any) -> tuple[Any] | Failure | None:
    """The result of a handler that is a move of the kernel; None when it has to be called.

    Nobody waits for it: a move that would stand still has done so.
    """
    move = MOVES.get(handler)
    if move is None:
        return None
    result = move(run, request)
    return result if isinstance(result, Failure) else (getattr(result, "output", None),)
