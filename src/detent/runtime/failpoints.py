"""Named places where a crash test may kill the process; nothing happens unless one is armed.

`DETENT_FAILPOINT="after_commit:3"` kills the process, as a power cut would, at the third hit of
that point. `before_commit` lies inside the store's transaction: the store is handed `point(...)`.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from detent.model.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

OF_TURNS = (
    "before_begin",
    "before_commit",
    "after_commit",
    "after_mark",
    "between_outcome_and_commit",
    "during_recovery",
)
NAMES = (*OF_TURNS, "before_push", "after_push")

_left: dict[str, int] = {}


def hit(name: str) -> None:
    """Count one passage; the last one of an armed point is the end of the process."""
    if _left and name in _left:
        _left[name] -= 1
        if _left[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def armed(name: str) -> bool:
    """Whether this point will end the process."""
    return name in _left


def point(name: str) -> Callable[[], None]:
    """The same as a callable for code that must not know this module."""
    return lambda: hit(name)


def arm(text: str) -> None:
    """Arm `name:count`; an empty text disarms everything."""
    _left.clear()
    if not text:
        return
    name, _, count = text.partition(":")
    if name not in NAMES or not (count or "1").isdecimal():
        raise RequestError(
            "request.invalid",
            f"DETENT_FAILPOINT must be name:count with a name of {', '.join(NAMES)}; got {text!r}",
        )
    _left[name] = int(count or "1")


arm(os.environ.get("DETENT_FAILPOINT", ""))
