"""Business days: Monday to Friday by the local date, but for the holidays that are listed."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from detent.calendar.local import Fold, Gap, instant_of, local_of
from detent.model.errors import RequestError

_DAY = timedelta(days=1)
_SATURDAY = 5


def is_business_day(ms: int, zone: str, holidays: frozenset[str]) -> bool:
    """Tell whether the local date of an instant is a business day."""
    return _is_business(local_of(ms, zone), holiday_ordinals(holidays))


def business_instant(
    ms: int, zone: str, holidays: frozenset[str], gap: Gap = "next", fold: Fold = "first"
) -> int:
    """Return the instant itself on a business day, else the same wall time on the next one."""
    local = local_of(ms, zone)
    closed = holiday_ordinals(holidays)
    if _is_business(local, closed):
        return ms
    # The list is finite, so a business day comes.
    while True:
        local = _next_day(local)
        if _is_business(local, closed):
            # The gap's policy may lead off the day: out of a gap at midnight, or a day left out.
            for policy in (gap, "next"):
                instant = instant_of(local, zone, policy, fold)
                if _is_business(local_of(instant, zone), closed):
                    return instant


def next_local_time(
    ms: int,
    zone: str,
    time_of_day: str,
    holidays: frozenset[str] | None,
    policies: tuple[Gap, Fold] = ("next", "first"),
) -> int:
    """Return the first instant not before another at which the wall clock shows a time of day.

    With holidays given only business days count.
    """
    at = time.fromisoformat(time_of_day)
    closed = None if holidays is None else holiday_ordinals(holidays)
    local = datetime.combine(local_of(ms, zone).date(), at)
    while True:
        instant = instant_of(local, zone, *policies)
        if instant >= ms and (closed is None or _is_business(local_of(instant, zone), closed)):
            return instant
        local = _next_day(local)


def jittered(ms: int, offset_ms: int, zone: str, holidays: frozenset[str] | None = None) -> int:
    """Move an instant by an offset; with holidays given it stays within its own local date.

    What would leave the date is held at its first or last millisecond. A date that the wall clock
    enters twice has two of them; the one further away is taken, but never beyond the offset.
    """
    target = ms + offset_ms
    if holidays is None or not offset_ms:
        return target
    holiday_ordinals(holidays)
    day = local_of(ms, zone).date()
    if local_of(target, zone).date() == day:
        return target
    edges = _first_moments(day, zone) if offset_ms < 0 else _last_moments(day, zone)
    low, high = min(ms, target), max(ms, target)
    within = [edge for edge in edges if low <= edge <= high and local_of(edge, zone).date() == day]
    return max(within, key=lambda edge: abs(edge - ms), default=ms)


def holidays_of(config: Any) -> tuple[str, ...]:
    """Return the dates that a config lists under `holidays`; refuse what is no list of them."""
    named = config.get("holidays") if isinstance(config, dict) else None
    if named is None:
        return ()
    if not isinstance(named, list | tuple) or any(type(date) is not str for date in named):
        message = "expected config.holidays to be a list of dates YYYY-MM-DD; correct it"
        raise RequestError("calendar.date", message)
    holiday_ordinals(frozenset(named))
    return tuple(named)


@lru_cache(maxsize=1024)
def holiday_ordinals(holidays: frozenset[str]) -> frozenset[int]:
    """Read a list of dates `YYYY-MM-DD` as day numbers; refuse one that is no date."""
    return frozenset(ordinal_of(text) for text in sorted(holidays))


def ordinal_of(text: str) -> int:
    """Read a date `YYYY-MM-DD` as a day number."""
    try:
        day = date.fromisoformat(text)
    except (ValueError, TypeError):
        day = None
    # Python reads other spellings of ISO 8601 too; one date has one spelling here.
    if day is None or day.isoformat() != text:
        raise RequestError(
            "calendar.date", f"expected a date YYYY-MM-DD, found {text!r}; change it", date=text
        )
    return day.toordinal()


def _is_business(local: datetime, closed: frozenset[int]) -> bool:
    return local.weekday() < _SATURDAY and local.toordinal() not in closed


def _next_day(local: datetime) -> datetime:
    try:
        return local + _DAY
    except OverflowError as error:
        raise RequestError(
            "calendar.date", "no business day is left before the year 10000; change the instant"
        ) from error


def _first_moments(day: date, zone: str) -> tuple[int, int]:
    midnight = datetime.combine(day, time())
    return instant_of(midnight, zone), instant_of(midnight, zone, fold="second")


def _last_moments(day: date, zone: str) -> tuple[int, int]:
    first, second = _first_moments(day + _DAY, zone)
    return first - 1, second - 1
