"""Fresh ids that rise: what one process starts within a millisecond keeps its order.

Instances of equal priority and due tick move in the order of their ids, and wait in line in that
order; so a batch is served first come, first served.
"""

from __future__ import annotations

from threading import Lock

from detent.model.ids import timed_id

_LOW_BYTES = 7  # of the ten bytes of chance; the rest holds the version and variant of a UUID


class FreshIds:
    """Makes ids ordered by time and, within a millisecond, by when they were asked for."""

    __slots__ = ("_last", "_lock", "_ms")

    def __init__(self) -> None:
        self._lock = Lock()
        self._ms = -1
        self._last = b""

    def next(self, ms: int, chance: bytes) -> str:
        """The next id, from a time in milliseconds and ten bytes of chance."""
        with self._lock:
            low = int.from_bytes(self._last[-_LOW_BYTES:], "big") + 1
            if ms > self._ms or low >> (8 * _LOW_BYTES):
                self._ms = max(ms, self._ms + (ms <= self._ms))
                self._last = chance
            else:
                self._last = self._last[:-_LOW_BYTES] + low.to_bytes(_LOW_BYTES, "big")
            return timed_id(self._ms, self._last)
