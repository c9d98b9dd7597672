"""The clock port: the only source of time, read once per turn by the runtime."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Turns wall time into ticks; never goes backwards."""

    epoch_ms: int
    resolution_ms: int

    def tick(self) -> int:
        """The tick of now."""

    def wall_ms(self) -> int:
        """Wall time for people to read, outside every hash."""

    def seconds_until(self, tick: int) -> float:
        """How long to sleep until that tick; 0 when it has come."""
