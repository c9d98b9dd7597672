"""The three clocks: wall (default), stepped (one tick per turn) and virtual (moved by a driver).

A turn asks `begin` for its tick. The wall clock reads the wall once, at start, and from then on
advances by the machine's boot-time clock, so that nobody who sets the wall clock moves a tick.
`elapsed_ms` paces what decides nothing (lease renewal, polling, back-off) in every mode.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from detent.model.errors import RequestError, invariant
from detent.ports.clock import Clock

Milliseconds = Callable[[], int]


class TurnClock(Clock, Protocol):
    """A clock that a writer can take turns by."""

    mode: str  # wall | stepped | virtual

    def resume(self, tick: int) -> None:
        """Never show an earlier tick than this one, the last that was written."""

    def begin(self) -> int | None:
        """The tick of a turn that begins now; None while it is not time for one."""

    def elapsed_ms(self) -> int:
        """Milliseconds that only go forwards, from any origin."""


def wall_time_ms() -> int:
    """What the machine's wall clock says."""
    return time.time_ns() // 1_000_000


def boot_time_ms() -> int:
    """Time since boot, suspended time included where the system can tell."""
    if _BOOT is not None:
        return time.clock_gettime_ns(_BOOT) // 1_000_000
    return time.monotonic_ns() // 1_000_000


_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class WallClock:
    """The tick follows wall time as read at start plus the time since."""

    mode = "wall"

    def __init__(
        self,
        epoch_ms: int,
        resolution_ms: int,
        wall: Milliseconds = wall_time_ms,
        boot: Milliseconds = boot_time_ms,
    ) -> None:
        self.epoch_ms = epoch_ms
        self.resolution_ms = resolution_ms
        self._boot = boot
        self._ahead_ms = wall() - boot()
        self._floor = 0

    def tick(self) -> int:
        """The tick of now."""
        now = (self.wall_ms() - self.epoch_ms) // self.resolution_ms
        self._floor = max(self._floor, now)
        return self._floor

    def begin(self) -> int | None:
        """The tick of now: a turn may begin at any time."""
        return self.tick()

    def resume(self, tick: int) -> None:
        """Stand at the last written tick until the wall has passed it."""
        self._floor = max(self._floor, tick)

    def wall_ms(self) -> int:
        """Wall time at start plus the time since."""
        return self._ahead_ms + self._boot()

    def seconds_until(self, tick: int) -> float:
        """How long to sleep until that tick; 0 when it has come."""
        if tick <= self._floor:
            return 0.0
        due_ms = self.epoch_ms + tick * self.resolution_ms
        return max(0, due_ms - self.wall_ms()) / 1000

    def elapsed_ms(self) -> int:
        """The boot-time clock."""
        return self._boot()


class SteppedClock:
    """Every turn advances the tick by exactly 1; turns are an interval apart."""

    mode = "stepped"

    def __init__(
        self,
        epoch_ms: int,
        resolution_ms: int,
        interval_ms: int,
        wall: Milliseconds = wall_time_ms,
        boot: Milliseconds = boot_time_ms,
    ) -> None:
        self.epoch_ms = epoch_ms
        self.resolution_ms = resolution_ms
        self._interval_ms = interval_ms
        self._boot = boot
        self._ahead_ms = wall() - boot()
        self._tick = 0
        self._next_ms = boot()

    def tick(self) -> int:
        """The tick of the last turn."""
        return self._tick

    def begin(self) -> int | None:
        """The next tick, or None until the interval since the last turn is over."""
        now = self._boot()
        if now < self._next_ms:
            return None
        self._next_ms = now + self._interval_ms
        self._tick += 1
        return self._tick

    def resume(self, tick: int) -> None:
        """Go on after the last written tick."""
        self._tick = max(self._tick, tick)

    def wall_ms(self) -> int:
        """Wall time at start plus the time since; ticks know nothing of it."""
        return self._ahead_ms + self._boot()

    def seconds_until(self, tick: int) -> float:
        """How long until the turn with that tick can begin."""
        if tick <= self._tick:
            return 0.0
        first = max(0, self._next_ms - self._boot())
        return (first + (tick - self._tick - 1) * self._interval_ms) / 1000

    def elapsed_ms(self) -> int:
        """The boot-time clock."""
        return self._boot()


class VirtualClock:
    """Stands still until it is moved."""

    mode = "virtual"

    def __init__(
        self, epoch_ms: int, resolution_ms: int, boot: Milliseconds = boot_time_ms
    ) -> None:
        self.epoch_ms = epoch_ms
        self.resolution_ms = resolution_ms
        self._boot = boot
        self._tick = 0

    def tick(self) -> int:
        """The tick it was last moved to."""
        return self._tick

    def begin(self) -> int | None:
        """The tick it stands at."""
        return self._tick

    def resume(self, tick: int) -> None:
        """Stand at the last written tick."""
        self._tick = max(self._tick, tick)

    def advance(self, tick: int) -> None:
        """Move to a tick that is not behind."""
        if tick < self._tick:
            raise RequestError(
                "request.invalid",
                f"time cannot go back: the clock stands at tick {self._tick}, asked for {tick}",
            )
        self._tick = tick

    def wall_ms(self) -> int:
        """Logical now, so that equal seeds give equal bytes."""
        return self.epoch_ms + self._tick * self.resolution_ms

    def seconds_until(self, tick: int) -> float:
        """0 when the tick has come; for ever otherwise, since time does not pass by itself."""
        return 0.0 if tick <= self._tick else math.inf

    def elapsed_ms(self) -> int:
        """The boot-time clock: pacing is not part of what is virtual."""
        return self._boot()


def make_clock(mode: str, epoch_ms: int, resolution_ms: int, interval_ms: int) -> TurnClock:
    """The clock a store was created with."""
    if mode == "wall":
        return WallClock(epoch_ms, resolution_ms)
    if mode == "stepped":
        return SteppedClock(epoch_ms, resolution_ms, interval_ms)
    invariant(mode == "virtual", f"a clock is wall, stepped or virtual, not {mode!r}")
    return VirtualClock(epoch_ms, resolution_ms)
