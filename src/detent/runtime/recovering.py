"""Where the recovery walk stands, and the calls it must look at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from detent.model.ids import partition_of

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
        "fresh",
        "look_at",
        "not_before_ms",
        "ordered",
        "partitions",
        "recheck_at",
        "seen",
    )

    def __init__(self) -> None:
        self.active = False
        self.partitions: Sequence[int] = ()  # which the walk is over
        self.fresh: frozenset[int] = frozenset()  # those of which no order of ours can be out yet
        self.after = 0
        self.not_before_ms = 0
        self.ordered: set[str] = set()  # effect keys dealt with since the walk began
        self.deferred: list[Deferred] = []
        self.recheck_at = 0
        self.look_at = 0
        self.seen: Sequence[str] = ()

    def begin(self, partitions: Sequence[int], *, full: bool, not_before_ms: int = 0) -> None:
        """Walk from the start; `full` when orders of this process cannot be out yet.

        A walk under way starts over with more to look at, and what it dealt with stays so.
        """
        self.active = True
        self.partitions = sorted({*self.partitions, *partitions})
        self.fresh |= frozenset(partitions) if full else frozenset()
        self.after = 0
        self.not_before_ms = max(self.not_before_ms, not_before_ms)

    def leave(self, gone: Sequence[int], of: int) -> None:
        """Partitions went to another writer, which looks after their calls."""
        self.partitions = [p for p in self.partitions if p not in gone]
        self.fresh = self.fresh.difference(gone)
        self.deferred = [
            each for each in self.deferred if partition_of(each.instance, of) not in gone
        ]
        if self.active and not self.partitions:
            self.finish()

    def finish(self) -> None:
        """The walk is over."""
        self.active = False
        self.partitions = ()
        self.fresh = frozenset()
        self.not_before_ms = 0
        self.ordered = set()
