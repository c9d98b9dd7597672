"""Hours: the send windows of a step as a gate knows them, and when they let it act.

A step looks at its windows before it asks, and again when it acts. In between the gate must know
them too: a place in line is of no use while they are shut, and is not lost by it. They are written
without sets and sorted, so that equal windows have equal bytes and one digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from detent.calendar import Span, Window, is_open, last_closing, next_opening
from detent.calendar.local import Fold, Gap

_TRIES = 64  # openings looked at before windows count as shorter than a tick
_encode = msgspec.json.Encoder().encode


class Opening(Struct, frozen=True, omit_defaults=True):
    """One window, and how long after its closing it is still good enough."""

    spans: tuple[tuple[int, int, int], ...]
    zone: str
    holidays: tuple[str, ...] = ()
    gap: Gap = "next"
    fold: Fold = "first"
    late_ms: int = 0


Hours = tuple[Opening, ...]
"""All of them must be open."""


class Windows(NamedTuple):
    """Hours made ready to be asked."""

    all: tuple[Window, ...]
    late_ms: tuple[int, ...]

    @property
    def zones(self) -> str:
        """Their zones, each once."""
        return ", ".join(dict.fromkeys(window.zone for window in self.all))


def hours_of(windows: Windows) -> Hours:
    """Windows as they are stored."""
    return tuple(
        Opening(
            tuple((span.day, span.start, span.end) for span in window.spans),
            window.zone,
            tuple(sorted(window.holidays)),
            window.gap,
            window.fold,
            late_ms,
        )
        for window, late_ms in zip(windows.all, windows.late_ms, strict=True)
    )


def windows_of(hours: Hours) -> Windows:
    """Stored hours made ready."""
    made = tuple(
        Window(
            tuple(Span(*span) for span in each.spans),
            each.zone,
            frozenset(each.holidays),
            each.gap,
            each.fold,
        )
        for each in hours
    )
    return Windows(made, tuple(each.late_ms for each in hours))


def digest_of(hours: Hours) -> str:
    """The name of hours; equal hours have the same."""
    return hashlib.sha256(_encode(hours)).hexdigest()[:32]


def just_missed(windows: Windows, ms: int) -> bool:
    """Whether each window that is shut was open so lately that it is good enough."""
    if not any(windows.late_ms):
        return False
    for window, late_ms in zip(windows.all, windows.late_ms, strict=True):
        if not is_open((window,), ms):
            closed = last_closing((window,), ms)
            if closed is None or ms - closed >= late_ms:
                return False
    return True


def next_tick(windows: Windows, ms: int, on_tick: Callable[[int], int]) -> int | None:
    """The instant of the first tick at which all are open; `on_tick` gives a tick's instant."""
    for _ in range(_TRIES):
        opening = next_opening(windows.all, ms)
        if opening is None:
            return None
        ms = on_tick(opening)
        if is_open(windows.all, ms):
            return ms
    return None
