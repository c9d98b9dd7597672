"""What the oracle compares around one change of offset: instants, windows and cron."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, get_args

from detent.calendar import (
    Span,
    Window,
    closing,
    instant_of,
    is_open,
    last_closing,
    local_of,
    next_opening,
    parse_cron,
)
from detent.calendar.local import Fold, Gap
from detent.testing.brute_time import DAY, Openings, Walk

GAPS: tuple[Gap, ...] = get_args(Gap)
FOLDS: tuple[Fold, ...] = get_args(Fold)

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are naive
_AROUND = 90
_LEAD = 30
_SPARSE = 6
_THURSDAY = 3  # 1970 began with one


class Count:
    """How many answers were compared, and those that differ."""

    def __init__(self) -> None:
        self.made = 0
        self.differences: list[str] = []

    def compare(self, found: Any, expected: Any, *asked: Any) -> None:
        """Compare one answer with that of brute force."""
        self.made += 1
        if found != expected:
            self.differences.append(f"{asked} gave {found}, brute force {expected}")


def compare_instants(walk: Walk, zone: str, count: Count) -> None:
    """Ask for every wall minute around the change, and for every minute what the wall shows."""
    for minute in range(walk.low - _AROUND, walk.high + _AROUND):
        local = _EPOCH + timedelta(minutes=minute)
        for gap in GAPS:
            for fold in FOLDS:
                found = instant_of(local, zone, gap, fold)
                count.compare(found, 1000 * walk.second(minute, gap, fold), zone, local, gap, fold)
    middle = len(walk.minutes) // 2
    for index in range(middle - _AROUND, middle + _AROUND):
        at = walk.minutes[index]
        shown = _EPOCH + timedelta(minutes=walk.local[index])
        count.compare(local_of(at * 60_000, zone), shown, zone, at)


def compare_windows(walk: Walk, zone: str, count: Count) -> None:
    """Ask windows with edges around, at and inside the gap or fold, minute by minute."""
    daily = Window(_daily((walk.high - 30, walk.high + 300)), zone)
    for spans in _spans(walk):
        for gap in GAPS if walk.is_gap else GAPS[:1]:
            for fold in FOLDS[:1] if walk.is_gap else FOLDS:
                window = Window(spans, zone, frozenset(), gap, fold)
                _ask(walk, (window,), _brute(walk, window), count)
    spans = _daily((walk.low - 60, walk.high), (walk.high + 60, walk.high + 90))
    window = Window(spans, zone, frozenset(), "shift", "second")
    together = _brute(walk, window).both(_brute(walk, daily))
    _ask(walk, (window, daily), together, count)


def compare_cron(walk: Walk, zone: str, count: Count) -> None:
    """Ask expressions with fires around, at and inside the gap or fold."""
    for text, step, at, extra in _expressions(walk):
        cron = parse_cron(text)
        fires = sorted(set(_fires(walk, step, at, extra)))
        for second in _seconds(walk):
            expected = fires[bisect_right(fires, second)] * 1000
            count.compare(cron.next(second * 1000, zone), expected, zone, text, second)


def _spans(walk: Walk) -> Iterator[tuple[Span, ...]]:
    low, high = walk.low, walk.high
    middle, quarter = (low + high) // 2, (high - low) // 4
    yield _daily((middle, middle + 180))
    yield _daily((low - 120, middle))
    yield _daily((low + quarter, high - quarter))
    yield _daily((low, high))
    yield _daily((middle - 240, middle), (middle, middle + 240))
    yield _daily((22 * 60, 30 * 60))
    yield _daily((0, DAY // 2), (DAY // 2, DAY - 1))
    weekday = (low // DAY + _THURSDAY) % 7
    yield tuple(Span((weekday + shift) % 7, DAY // 2, DAY // 2 + DAY) for shift in (-2, 0, 2))


def _daily(*ranges: tuple[int, int]) -> tuple[Span, ...]:
    """Every day the same, from minutes counted anywhere; at least a minute a day stays closed."""
    return tuple(
        Span(day, start % DAY, start % DAY + min(end - start, DAY - 1))
        for day in range(7)
        for start, end in ranges
    )


def _brute(walk: Walk, window: Window) -> Openings:
    """Mark what the spans of every date around the change open."""
    openings = Openings(walk)
    for day in walk.dates():
        for span in window.spans:
            if span.day == (day + _THURSDAY) % 7:
                openings.open_between(
                    walk.second(day * DAY + span.start, window.gap, window.fold),
                    walk.second(day * DAY + span.end, window.gap, window.fold),
                )
    return openings


def _ask(walk: Walk, windows: tuple[Window, ...], brute: Openings, count: Count) -> None:
    asked = [(w.zone, w.gap, w.fold, w.spans) for w in windows]
    for index, second in enumerate(_seconds(walk)):
        ms = second * 1000
        count.compare(is_open(windows, ms), brute.is_open(second), "is_open", asked, second)
        expected: int | None = brute.next_opening(second) * 1000
        count.compare(next_opening(windows, ms), expected, "next_opening", asked, second)
        if index % _SPARSE == 0:
            end = brute.closing(second)
            expected = None if end is None else end * 1000
            count.compare(closing(windows, ms), expected, "closing", asked, second)
            expected = brute.last_closing(second) * 1000
            count.compare(last_closing(windows, ms), expected, "last_closing", asked, second)


def _seconds(walk: Walk) -> Iterator[int]:
    """Every minute around the change, and the last second of some."""
    lead = min(walk.high - walk.low, DAY) + _LEAD
    for minute in range(walk.change - lead, walk.change + lead):
        yield minute * 60
        if minute % _SPARSE == 0 or minute == walk.change - 1:
            yield minute * 60 + 59


def _expressions(walk: Walk) -> Iterator[tuple[str, int, int, int]]:
    """Give (text, every how many minutes, from which local minute, seconds): what should fire."""
    for minute in (walk.low, (walk.low + walk.high) // 2, walk.high - 1, walk.high):
        local = _EPOCH + timedelta(minutes=minute)
        yield f"{local.minute} {local.hour} * * *", DAY, minute % DAY, 0
        yield f"30 {local.minute} {local.hour} * * *", DAY, minute % DAY, 30
    yield "*/15 * * * *", 15, 0, 0
    yield "0 * * * * *", 1, 0, 0
    yield "0 0 * * *", DAY, 0, 0
    yield "5 * * * *", 60, 5, 0


def _fires(walk: Walk, step: int, at: int, extra: int) -> Iterator[int]:
    for day in walk.dates():
        for minute in range(day * DAY + at, (day + 1) * DAY, step):
            begins = walk.second(minute, "next", "first")
            yield begins + extra if minute in walk.shown else begins
