"""When the store must be asked for due instances, so that it is not asked in vain.

`next` is a lower bound of the stored due ticks that are not queued yet. While some of the instances
found are still queued, their rows hide the next one in the index, so `next` is then simply the next
tick; once all of them have moved the index is asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.runtime.ready import ReadyQueue

NEVER = (1 << 63) - 1


class Dues:
    """What is known of the due index."""

    __slots__ = ("_asked", "_full", "_stale", "next")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing is known any more."""
        self.next = 0
        self._asked = -1
        self._full = False
        self._stale = False

    def note(self, due: int) -> None:
        """A row with this due tick was committed."""
        self.next = min(self.next, due)

    def wanted(self, tick: int, queued: int, enough: int) -> bool:
        """Whether to ask the index at this tick."""
        if tick < self.next:
            return False
        return tick > self._asked or (self._full and queued < enough)

    def asked(self, tick: int, *, full: bool) -> None:
        """The index was asked; `full` when it may have more."""
        self._asked = tick
        self._full = full
        self._stale = True
        self.next = tick if full else tick + 1

    def settle(self, store: Store, owned: list[int], queue: ReadyQueue, tick: int) -> None:
        """After a turn: find the next due tick once everything found has moved."""
        if self._stale and not self._full and not queue.due_open:
            due = store.next_due(owned)
            self.next = NEVER if due is None else max(due, tick + 1)
            self._stale = False
