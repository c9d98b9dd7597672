"""Engines left open are closed when the interpreter exits: their threads would not outlive it."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import weakref
from typing import Protocol

_log = logging.getLogger("detent.bootstrap")
_numbers = itertools.count()


class Closable(Protocol):
    """Something that can be closed twice."""

    def close(self) -> None:
        """Stop everything."""


_left: weakref.WeakValueDictionary[int, Closable] = weakref.WeakValueDictionary()


def close_at_exit(opened: Closable) -> int:
    """Remember what is open, without keeping it alive; the number by which it is dismissed."""
    number = next(_numbers)
    _left[number] = opened
    return number


def dismiss(number: int) -> None:
    """It was closed in time."""
    _left.pop(number, None)


@atexit.register
def close_left() -> None:
    """Close what is still open, the newest first."""
    for number in sorted(_left.keys(), reverse=True):
        opened = _left.pop(number, None)
        try:
            if opened is not None:
                opened.close()
        except Exception:  # noqa: BLE001 - it must not keep the others from being closed
            _log.exception("an engine left open could not be closed")


if hasattr(os, "register_at_fork"):
    # A forked child has none of the threads; closing there would stop the parent's writer.
    os.register_at_fork(after_in_child=_left.clear)
