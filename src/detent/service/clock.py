"""The clock of a store as others see it: its now, and how its ticks become instants."""

from __future__ import annotations

from msgspec import Struct


class ClockView(Struct, frozen=True, kw_only=True):
    """Logical now and the scale of ticks, in Unix milliseconds."""

    now_ms: int
    epoch_ms: int
    resolution_ms: int
    clock: str = "wall"  # wall | virtual

    def ms_of(self, tick: int) -> int:
        """A tick as epoch milliseconds."""
        return self.epoch_ms + tick * self.resolution_ms
