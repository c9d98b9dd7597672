"""Waiting for an instance to move: told by the turn that moves it, and looked for now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

_LOOK_S = 1.0  # a writer that died may have moved an instance and told nobody


def moved(
    told: Future[str], look: Callable[[], str], wanted: frozenset[str], timeout: float | None
) -> str:
    """The state that was told, or found; `FutureTimeout` when it takes too long."""
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _LOOK_S if until is None else min(_LOOK_S, until - time.monotonic())
        try:
            return told.result(max(0.0, left))
        except FutureTimeout:
            state = look()
            if state in wanted:
                return state
            if until is not None and time.monotonic() >= until:
                raise
