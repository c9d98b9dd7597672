"""When windows are open, each by its own rules and all of them together.

Each window is asked through its plan. A search looks at stretches only, never at minutes:

- `next_opening` goes from calm to calm. While no clock changes, weeks are alike but for holidays,
  and what the windows share of a week is worked out once: it tells the first instant that may be
  open, or that none is. Around a change of a clock, and where a holiday closes what the week would
  open, the stretches of a few dates are laid over each other. So windows that never meet cost a
  look at each change within the horizon, and not one at each of their spans.
- `last_closing` moves an instant back to where the first window was open, from there to where the
  second was, and so on, until one round leaves it where it was.

A stretch can hold an instant whose local date is up to two days later (a span over midnight, moved
on by a gap) or one day earlier (a fold that leads back over midnight), and under `shift` a later
date can open before an earlier one does. The searches look that far around.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from detent.calendar.changes import CALM_MS, DAY_MS, calm_until, offset_ms
from detent.calendar.plans import Plan, day_of, plan_of, stretches_of
from detent.calendar.stretches import WEEK_MS, Stretch, first_in_week, merged, shared, weekly
from detent.calendar.windows import Window
from detent.model.limits import CALENDAR_HORIZON_DAYS

_LATER, _EARLIER = 2, 1
_HORIZON_MS = CALENDAR_HORIZON_DAYS * DAY_MS
_AROUND_CHANGE_MS = 2 * CALM_MS
_AROUND_HOLIDAY_MS = 2 * DAY_MS


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
    opening = _search(joint, until, limit)
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

    __slots__ = ("closed", "plans", "weeks", "zones")

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        self.plans = plans
        self.zones = tuple(dict.fromkeys(plan.window.zone for plan in plans))
        self.weeks: dict[tuple[int, ...], list[Stretch]] = {}
        self.closed: Stretch = (0, 0)

    def week(self, ms: int) -> list[Stretch]:
        """Return what all of them open in a week, holidays aside, at the offsets of an instant."""
        offsets = {zone: offset_ms(zone, ms) for zone in self.zones}
        key = tuple(offsets.values())
        week = self.weeks.get(key)
        if week is None:
            week = [(0, WEEK_MS)]
            for plan in self.plans:
                week = shared(week, weekly(plan.window.spans, offsets[plan.window.zone]))
            self.weeks[key] = week
        return week


@lru_cache(maxsize=1024)
def _joint(windows: tuple[Window, ...]) -> Joint:
    return Joint(tuple(plan_of(window) for window in windows))


def _search(joint: Joint, start: int, limit: int) -> int | None:
    at = start
    while at <= limit:
        calm = min((calm_until(zone, at) for zone in joint.zones), default=limit + 1)
        reach = _AROUND_CHANGE_MS
        if at < calm:
            opening = first_in_week(joint.week(at), at)
            if opening is None or opening >= calm:
                at = calm
                continue
            at, reach = opening, _AROUND_HOLIDAY_MS
        found = _first_shared(joint.plans, at, at + reach)
        if found is not None:
            return found if found <= limit else None
        at += reach
    return None


def _first_shared(plans: tuple[Plan, ...], start: int, end: int) -> int | None:
    """Return the first instant of a short while at which all windows are open."""
    if all(_holds(plan, start) for plan in plans):
        return start
    found = [(start, end)]
    for plan in plans:
        days = range(day_of(plan, start) - _LATER, day_of(plan, end) + _LATER + 1)
        stretches = (each for day in days for each in stretches_of(plan, day))
        found = shared(found, merged(stretches))
        if not found:
            return None
    return found[0][0]


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


def _last_end(plan: Plan, ms: int, limit: int) -> int | None:
    """Return the latest instant up to `ms`, down to the limit, before which a window was open."""
    day = day_of(plan, ms)
    last = day - (ms - limit) // DAY_MS - _LATER
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
