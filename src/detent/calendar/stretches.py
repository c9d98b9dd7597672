"""Stretches of instants: lists in order, in which none touches the next, and what they share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from detent.calendar.changes import DAY_MS
from detent.calendar.windows import Span

Stretch = tuple[int, int]

WEEK_MS = 7 * DAY_MS
_MINUTE_MS = 60_000
_MONDAY_MS = 3 * DAY_MS  # the week of 1970-01-01 began so long before it


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return stretches in order, those that touch or overlap as one."""
    found: list[Stretch] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def shared(one: Sequence[Stretch], other: Sequence[Stretch]) -> list[Stretch]:
    """Return what two lists have in common."""
    found: list[Stretch] = []
    left = right = 0
    while left < len(one) and right < len(other):
        start = max(one[left][0], other[right][0])
        end = min(one[left][1], other[right][1])
        if start < end:
            found.append((start, end))
        if one[left][1] <= other[right][1]:
            left += 1
        else:
            right += 1
    return found


def weekly(spans: Iterable[Span], offset_ms: int) -> list[Stretch]:
    """Return what spans open in each week of UTC, from its Monday, at one offset of the zone."""
    found: list[Stretch] = []
    for day, start, end in spans:
        opens = (day * DAY_MS + start * _MINUTE_MS - offset_ms) % WEEK_MS
        closes = opens + (end - start) * _MINUTE_MS
        found.append((opens, min(closes, WEEK_MS)))
        if closes > WEEK_MS:
            found.append((0, closes - WEEK_MS))
    return merged(found)


def first_in_week(week: Sequence[Stretch], ms: int) -> int | None:
    """Return the first instant from `ms` on that stretches of every week hold."""
    if not week:
        return None
    at = (ms + _MONDAY_MS) % WEEK_MS
    place = bisect_right(week, at, key=lambda stretch: stretch[1])
    if place == len(week):
        return ms - at + WEEK_MS + week[0][0]
    return ms + max(0, week[place][0] - at)
