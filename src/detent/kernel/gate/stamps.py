"""Stamps: an exact sliding window, as the ticks at which something was granted.

A grant at tick t counts until t + span, where the span is the window in whole ticks plus one: the
instant within a tick is not known, and no window of the stated length may ever hold one too many.
"""

from __future__ import annotations

from collections import deque


class Stamps:
    """Ticks with their counts, oldest first."""

    __slots__ = ("_runs", "total")

    def __init__(self) -> None:
        self._runs: deque[list[int]] = deque()  # [tick, count]
        self.total = 0

    def add(self, tick: int, count: int = 1) -> int:
        """Count grants at a tick not before the last one; how many that tick has now."""
        self.total += count
        runs = self._runs
        if runs and runs[-1][0] == tick:
            runs[-1][1] += count
        else:
            runs.append([tick, count])
        return runs[-1][1]

    def ticks(self) -> list[int]:
        """Every tick that counts."""
        return [tick for tick, _ in self._runs]

    def expire(self, before: int) -> list[int]:
        """Forget the ticks up to `before`; those forgotten."""
        gone: list[int] = []
        runs = self._runs
        while runs and runs[0][0] <= before:
            tick, count = runs.popleft()
            self.total -= count
            gone.append(tick)
        return gone

    def free_at(self, most: int, span: int) -> int:
        """The first tick at which fewer than `most` count; 0 when that is so already."""
        over = self.total - most + 1
        if over <= 0:
            return 0
        for tick, count in self._runs:
            over -= count
            if over <= 0:
                return tick + span
        return 0
