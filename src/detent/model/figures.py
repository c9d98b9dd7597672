"""What is counted of a running engine: by name, and times by the bucket they fall into.

The writer counts once per turn and sends the counts along with what the turn decided, so counting
costs no message of its own. A time is two counts: `<name>.<bucket>` and its sum in microseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, MutableMapping
from typing import Final

# Upper edges in microseconds; what is beyond the last one falls into one more bucket.
_SHORT: Final = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 1_000_000)
_CALLS: Final = (
    *(1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000),
)
_LIVES: Final = (
    *(10_000, 100_000, 1_000_000, 10_000_000, 60_000_000, 600_000_000),
    *(3_600_000_000, 86_400_000_000, 604_800_000_000, 2_592_000_000_000),
)

EDGES: Final[dict[str, tuple[int, ...]]] = {
    "turn": _SHORT,
    "call": _CALLS,
    "life": _LIVES,
    "answer": _CALLS,
}


def note_time(counts: MutableMapping[str, int], name: str, us: int) -> None:
    """Count a time of a kind."""
    bucket = f"{name}.{bisect_left(EDGES[name], us)}"
    counts[bucket] = counts.get(bucket, 0) + 1
    total = f"{name}.us"
    counts[total] = counts.get(total, 0) + us


def add_counts(totals: MutableMapping[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to those there are."""
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count


class Times:
    """Times of one kind, counted where they are made; used by one thread, read by any."""

    __slots__ = ("counts", "edges", "total_us")

    def __init__(self, name: str) -> None:
        self.edges = EDGES[name]
        self.counts = [0] * (len(self.edges) + 1)
        self.total_us = 0

    def note(self, us: int) -> None:
        """Count a time."""
        self.counts[bisect_left(self.edges, us)] += 1
        self.total_us += us


def times_of(totals: Mapping[str, int], name: str) -> Times:
    """The times of a kind out of what was counted."""
    found = Times(name)
    found.counts = [totals.get(f"{name}.{bucket}", 0) for bucket in range(len(found.counts))]
    found.total_us = totals.get(f"{name}.us", 0)
    return found
