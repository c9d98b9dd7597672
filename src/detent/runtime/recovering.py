"""Where the recovery walk stands, and the calls it must look at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.store import Flight


class Deferred(NamedTuple):
    """A call that may still be running under somebody's lease."""

    instance: str
    flight: Flight


class Recovery:
    """Where the walk stands."""

    __slots__ = (
        "active",
        "after",
        "deferred",
        "full",
        "look_at",
        "not_before_ms",
        "ordered",
        "recheck_at",
        "seen",
    )

    def __init__(self) -> None:
        self.active = False
        self.full = False
        self.after = 0
        self.not_before_ms = 0
        self.ordered: set[str] = set()  # effect keys dealt with since the walk began
        self.deferred: list[Deferred] = []
        self.recheck_at = 0
        self.look_at = 0
        self.seen: Sequence[str] = ()

    def begin(self, *, full: bool, not_before_ms: int = 0) -> None:
        """Walk from the start; `full` when orders of this process cannot be out yet."""
        self.active = True
        self.full = full
        self.after = 0
        self.not_before_ms = not_before_ms
        self.ordered = set()

    def finish(self) -> None:
        """The walk is over."""
        self.active = False
        self.ordered = set()
