"""When windows are open, each by its own rules and all of them together.

Each window is asked through its plan. A search goes from date to date and looks at stretches only,
never at minutes:

- `next_opening` moves an instant on to where the first window is open, from there to where the
  second is, and so on, until one round leaves it where it was;
- `last_closing` does the same backwards.

A stretch can hold an instant whose local date is up to two days later (a span over midnight, moved
on by a gap) or one day earlier (a fold that leads back over midnight), and under `shift` a later
date can open before an earlier one does. The searches look that far around.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from detent.calendar.plans import Plan, Stretch, day_of, plan_of, stretches_of
from detent.calendar.windows import Window
from detent.model.limits import CALENDAR_HORIZON_DAYS

_LATER, _EARLIER = 2, 1
_DAY_MS = 86_400_000
_HORIZON_MS = CALENDAR_HORIZON_DAYS * _DAY_MS


def is_open(windows: Sequence[Window], ms: int) -> bool:
    """Tell whether all windows are open at an instant; the end of a window is outside."""
    return all(_holds(plan_of(window), ms) for window in windows)


def next_opening(windows: Sequence[Window], ms: int) -> int | None:
    """Return the first instant from `ms` on at which all windows are open, within the horizon."""
    joint = _joint(tuple(windows))
    limit = ms + _HORIZON_MS
    since, until = joint.closed
    if not since <= ms < until:
        since = until = ms
    opening = _search(joint.plans, until, limit)
    joint.closed = (since, max(until, limit + 1) if opening is None else opening)
    return opening


def closing(windows: Sequence[Window], ms: int) -> int | None:
    """Return when windows that are all open close; None if shut, or open beyond the horizon."""
    if not is_open(windows, ms):
        return None
    ends = [_end_of_run(plan_of(window), ms) for window in windows]
    return min((end for end in ends if end is not None), default=None)


def last_closing(windows: Sequence[Window], ms: int) -> int | None:
    """Return the latest instant up to `ms` before which all windows were open, in the horizon.

    That is `ms` itself while they are open, but for the very instant at which they open.
    """
    joint = _joint(tuple(windows))
    limit = ms - _HORIZON_MS
    since, until = joint.closed
    if not since < ms <= until:
        since = until = ms
    end = _search_back(joint.plans, since, limit)
    joint.closed = (min(since, limit) if end is None else end, until)
    return end


class Joint:
    """Windows that must be open together, and a stretch they are known to be closed in.

    What is known changes the cost of an answer and never the answer: windows that never meet are
    searched to the horizon once, and not again for every instance that waits for them.
    """

    __slots__ = ("closed", "plans")

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        self.plans = plans
        self.closed: Stretch = (0, 0)


@lru_cache(maxsize=1024)
def _joint(windows: tuple[Window, ...]) -> Joint:
    return Joint(tuple(plan_of(window) for window in windows))


def _search(plans: tuple[Plan, ...], start: int, limit: int) -> int | None:
    at = start
    while at <= limit:
        moved = at
        for plan in plans:
            opening = _first_open(plan, moved, limit)
            if opening is None:
                return None
            moved = opening
        if moved == at:
            return at
        at = moved
    return None


def _search_back(plans: tuple[Plan, ...], start: int, limit: int) -> int | None:
    at = start
    while at >= limit:
        moved = at
        for plan in plans:
            end = _last_end(plan, moved, limit)
            if end is None:
                return None
            moved = end
        if moved == at:
            return at
        at = moved
    return None


def _first_open(plan: Plan, ms: int, limit: int) -> int | None:
    """Return the first instant from `ms` up to the limit at which one window is open."""
    day = day_of(plan, ms)
    last = day + (limit - ms) // _DAY_MS + _LATER
    best: int | None = None
    at = day - _LATER
    while at <= last:
        for opens, closes in stretches_of(plan, at):
            if opens <= ms < closes:
                return ms
            if opens > ms and (best is None or opens < best):
                best = opens
                last = at + 1
        at += 1
    return best if best is None or best <= limit else None


def _last_end(plan: Plan, ms: int, limit: int) -> int | None:
    """Return the latest instant up to `ms`, down to the limit, before which a window was open."""
    day = day_of(plan, ms)
    last = day - (ms - limit) // _DAY_MS - _LATER
    best: int | None = None
    at = day + _EARLIER
    while at >= last:
        for opens, closes in stretches_of(plan, at):
            if opens < ms <= closes:
                return ms
            if closes < ms and (best is None or closes > best):
                best = closes
                last = at - _LATER
        at -= 1
    return best if best is None or best >= limit else None


def _holds(plan: Plan, ms: int) -> bool:
    day = day_of(plan, ms)
    return any(
        opens <= ms < closes
        for at in range(day - _LATER, day + _EARLIER + 1)
        for opens, closes in stretches_of(plan, at)
    )


def _end_of_run(plan: Plan, ms: int) -> int | None:
    """Return when a window that is open closes, over stretches that touch or overlap."""
    if plan.always:
        return None
    end, limit = ms, ms + _HORIZON_MS
    while end <= limit:
        day = day_of(plan, end)
        further = [
            closes
            for at in range(day - _LATER, day + _EARLIER + 1)
            for opens, closes in stretches_of(plan, at)
            if opens <= end < closes
        ]
        if not further:
            return end
        end = max(further)
    return None
