"""When a schedule fires: its next time, and the times that have passed.

Both depend on the zone data of the machine, so both are computed facts: recorded with the turn, and
on replay taken from there. After a stand-still the times that passed are not walked through one by
one: beyond `limits.CRON_COUNTED` of them the latest are found by halving.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.calendar import parse_cron, tzdata_version
from detent.model import limits

if TYPE_CHECKING:
    from detent.calendar import Cron as Times
    from detent.kernel.cron import Cron
    from detent.kernel.run import Run

NEXT = "cron"
PASSED = "cron_passed"
_times = lru_cache(maxsize=1_024)(parse_cron)


class Due(NamedTuple):
    """What a turn finds: the fires to carry out, in order, and how many were dropped as missed."""

    fires: list[int]
    dropped: int


def next_fire(run: Run, cron: Cron, after_ms: int) -> int | None:
    """The first fire after an instant; None when there is none any more."""
    name = f"{after_ms}:{cron.timezone}:{cron.cron_expr}"
    fact: dict[str, Any] = run.computed(f"{NEXT}:{name}", lambda: computed(NEXT, name))
    ms: int | None = fact["ms"]
    return ms


def due_fires(run: Run, cron: Cron) -> Due:
    """The fires whose time has come, by the schedule's policy for missed ones.

    A fire belongs to the first tick that is not before it; one of an earlier tick is missed.
    """
    first = cron.next_fire_at
    now = run.now_ms()
    if first is None or first > now:
        return Due([], 0)
    second = next_fire(run, cron, first)
    since = now - run.facts.resolution_ms  # later than this: of this very tick
    if second is None or second > now:
        on_time, missed, count = ([first], [], 0) if first > since else ([], [first], 1)
    else:
        on_time, missed, count = _passed(run, cron, since)
    kept = _made_up(cron, missed, now, late=not on_time)
    return Due([*kept, *on_time], count - len(kept))


def _passed(run: Run, cron: Cron, since: int) -> tuple[list[int], list[int], int]:
    name = f"{cron.next_fire_at}:{since}:{run.now_ms()}:{cron.timezone}:{cron.cron_expr}"
    fact: dict[str, Any] = run.computed(f"{PASSED}:{name}", lambda: computed(PASSED, name))
    return fact["on_time"], fact["missed"], fact["count"]


def _made_up(cron: Cron, missed: list[int], now: int, *, late: bool) -> list[int]:
    """The missed fires that are carried out all the same."""
    match cron.missed_policy:
        case "one":
            return missed[-1:]
        case "all":
            return missed[-cron.missed_limit :]
        case "none":
            # a busy engine is a few ticks late now and then; that is no reason to drop a fire
            close = late and bool(missed) and now - missed[-1] <= limits.CRON_LATE_MS
            return missed[-1:] if close else []


def computed(kind: str, name: str) -> dict[str, Any]:
    """What a fact of this name is with the zone data of today."""
    if kind == NEXT:
        after, zone, text = name.split(":", 2)
        found: dict[str, Any] = {"ms": _times(text).next(int(after), zone)}
    else:
        first, since, now, zone, text = name.split(":", 4)
        found = _walk(_times(text), zone, int(first), int(since), int(now))
    return {**found, "zone": zone, "tzdata": tzdata_version()}


def _walk(times: Times, zone: str, first: int, since: int, now: int) -> dict[str, Any]:
    """Fires of this tick, the latest missed ones, and how many were missed."""
    on_time: list[int] = []
    at: int | None = first if first > since else times.next(since, zone)
    while at is not None and at <= now:
        on_time.append(at)
        at = times.next(at, zone)
    missed: deque[int] = deque(maxlen=limits.CRON_MISSED_MOST)
    count, at = 0, first
    while at is not None and at <= since and count < limits.CRON_COUNTED:
        missed.append(at)
        count += 1
        at = times.next(at, zone)
    kept = list(missed)
    if at is not None and at <= since:
        kept = _latest(times, zone, at, since)
    return {"on_time": on_time, "missed": kept, "count": count}


def _latest(times: Times, zone: str, low: int, last: int) -> list[int]:
    """The last fires up to an instant, at least one of which is `low`."""
    found: list[int] = []
    bound = last + 1
    while bound > low and len(found) < limits.CRON_MISSED_MOST:
        bound = _last_before(times, zone, low, bound)
        found.append(bound)
    return found[::-1]


def _last_before(times: Times, zone: str, low: int, bound: int) -> int:
    """The last fire before an instant, `low` being one: halve what lies between."""
    high = bound
    while high - low > 1:
        middle = (low + high) // 2
        at = times.next(middle, zone)
        if at is not None and at < bound:
            low = at
        else:
            high = middle
    return low
