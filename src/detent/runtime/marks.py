"""Start marks wanted by the dispatcher, numbered and waiting for the next commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.ids import partition_of
from detent.ports.store import Flight

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_TICK_BITS = 20
_EPOCH_BITS = 6


def first_dispatch(tick: int, fence_epoch: int) -> int:
    """A dispatch number above every one an earlier writer gave.

    Ticks never go back and a writer makes far fewer than 2^20 calls in one; the fence epoch tells
    two starts within the same tick apart.
    """
    start = fence_epoch % (1 << _EPOCH_BITS)
    return (tick << _TICK_BITS) + (start << (_TICK_BITS - _EPOCH_BITS))


class Marks:
    """Marks not committed yet, by effect key."""

    __slots__ = ("_next", "first", "pending", "places")

    def __init__(self) -> None:
        self._next = 1
        self.first = 1  # lower numbers were given by earlier processes
        self.pending: dict[str, int] = {}
        self.places: dict[str, str] = {}  # whose effects they are, as far as it was told

    def start_at(self, dispatch: int) -> None:
        """Number from here on, never lower than before."""
        if self._next == 1:
            self.first = dispatch
        self._next = max(self._next, dispatch)

    def request(self, keys: Iterable[str], instances: Sequence[str] = ()) -> None:
        """Give each wanted mark its dispatch number."""
        self.places.update(zip(keys, instances, strict=False))
        for key in keys:
            if key not in self.pending:
                self.pending[key] = self._next
                self._next += 1

    def partitions(self, of: int) -> set[int]:
        """Where the effects are, as far as it was told."""
        return {partition_of(self.places[key], of) for key in self.pending if key in self.places}

    def strays(self, owned: Collection[int], of: int) -> list[str]:
        """Take out those whose partition is another writer's: their calls are its to make."""
        gone = [
            key
            for key in self.pending
            if not owned or (key in self.places and partition_of(self.places[key], of) not in owned)
        ]
        for key in gone:
            del self.pending[key]
            self.places.pop(key, None)
        return gone

    def flights(self, dispatcher: str, tick: int, withdrawn: Sequence[str]) -> list[Flight]:
        """The rows to commit; a mark withdrawn in the same turn is not written."""
        gone = frozenset(withdrawn)
        return [
            Flight(key, dispatcher, dispatch, tick)
            for key, dispatch in self.pending.items()
            if key not in gone
        ]

    def settle(self, won: Iterable[str]) -> tuple[list[tuple[str, int]], list[str]]:
        """After the commit: (marked with numbers, lost), in the order they were wanted."""
        kept = frozenset(won)
        marked = [(key, number) for key, number in self.pending.items() if key in kept]
        lost = [key for key in self.pending if key not in kept]
        self.pending = {}
        self.places = {key: self.places[key] for key in lost if key in self.places}
        return marked, lost
