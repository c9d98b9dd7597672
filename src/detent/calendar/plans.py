"""Windows compiled to plans: the stretches of instants that one local date opens."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from detent.calendar.business import holiday_ordinals
from detent.calendar.changes import calm_until
from detent.calendar.local import aware_of, instant_of
from detent.calendar.stretches import Stretch
from detent.calendar.windows import DAY_MINUTES, WEEK_DAYS, Span, Window
from detent.model.errors import RequestError

_LAST_DAY = date.max.toordinal() - 3
_MINUTE_MS = 60_000
_MS = timedelta(milliseconds=1)
_NOTHING: tuple[Stretch, ...] = ()


class Plan:
    """A window, ready to be asked: its spans by weekday, in ms, and its holidays as day numbers."""

    __slots__ = ("always", "by_day", "closed", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.closed = holiday_ordinals(window.holidays)
        self.by_day = tuple(
            tuple(
                (span.start * _MINUTE_MS, span.end * _MINUTE_MS)
                for span in window.spans
                if span.day == day
            )
            for day in range(WEEK_DAYS)
        )
        self.always = not self.closed and _covers_week(window.spans)


@lru_cache(maxsize=1024)
def plan_of(window: Window) -> Plan:
    """Return the plan of a window, compiled once."""
    return Plan(window)


@lru_cache(maxsize=16_384)
def stretches_of(plan: Plan, day: int) -> tuple[Stretch, ...]:
    """Return what the spans of one local date open, in the order they are listed."""
    spans = plan.by_day[(day - 1) % WEEK_DAYS]
    if not spans or day in plan.closed or not 1 <= day <= _LAST_DAY:
        return _NOTHING
    midnight = datetime.fromordinal(day)
    zone, gap, fold = plan.window.zone, plan.window.gap, plan.window.fold
    first = instant_of(midnight, zone)
    if calm_until(zone, first) > first:
        return tuple([(first + start, first + end) for start, end in spans])
    found = []
    for start, end in spans:
        opens = instant_of(midnight + start * _MS, zone, gap, fold)
        closes = instant_of(midnight + end * _MS, zone, gap, fold)
        if opens < closes:
            found.append((opens, closes))
    return tuple(found)


def day_of(plan: Plan, ms: int) -> int:
    """Return the number of the local date at an instant."""
    try:
        return aware_of(ms // 1000, plan.window.zone).toordinal()
    except RequestError:
        # Beyond the calendar nothing opens; the edge of it is as good as any day there.
        return 1 if ms < 0 else _LAST_DAY


def _covers_week(spans: tuple[Span, ...]) -> bool:
    """Tell whether spans follow one another all week, each from where the one before it ends."""
    week = DAY_MINUTES * WEEK_DAYS
    lasting = {span.day * DAY_MINUTES + span.start: span.end - span.start for span in spans}
    if len(lasting) < len(spans):
        return False
    start = at = spans[0].day * DAY_MINUTES + spans[0].start
    for _ in spans:
        if at % week not in lasting:
            return False
        at += lasting[at % week]
    return at == start + week
