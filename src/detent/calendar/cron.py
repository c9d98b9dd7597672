"""Cron: the next local time that matches, found field by field, and the instant it fires at.

The fires of an expression are the instants of all local times that match it, each once: a time in
a gap is that of the end of the gap, an ambiguous time that of its first occurrence. Times that
fall together fire together, so `*/15 * * * *` fires once at the end of a gap, and not at all in
the second pass of a fold.

Of day of month and day of week either may match if both are restricted; a field that begins with
`*` or `?` is not restricted, and then both must match.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import MAXYEAR, datetime, timedelta

from msgspec import Struct

from detent.calendar.local import aware_of, end_of_fold, instant_of
from detent.model.limits import CRON_HORIZON_YEARS

FIRST_YEAR = 1970
MONTHS = 12
WEEK = 7

_EVERY_SEVENTH = 0b1_0000001_0000001_0000001_0000001_0000001
_SECOND = timedelta(seconds=1)


class Days(Struct, frozen=True):
    """Which days of a month match; bit 0 of a week is Monday, bit n of a month its day n."""

    of_month: int
    of_week: int
    last_of_month: bool = False
    last_of_week: int = 0
    nth_of_week: tuple[tuple[int, int], ...] = ()
    either: bool = False

    def of(self, year: int, month: int) -> int:
        """Return the days of one month that match, as bits."""
        first, length = monthrange(year, month)
        whole = (2 << length) - 2
        by_month = self.of_month | (1 << length if self.last_of_month else 0)
        turned = (self.of_week << WEEK | self.of_week) >> first
        by_week = (turned & 0x7F) * _EVERY_SEVENTH << 1
        for weekday, nth in self.nth_of_week:
            by_week |= 2 << (weekday - first) % WEEK + WEEK * (nth - 1)
        if self.last_of_week:
            by_week |= self._last(first, length)
        return (by_month | by_week if self.either else by_month & by_week) & whole

    def _last(self, first: int, length: int) -> int:
        days = range(length - WEEK + 1, length + 1)
        return sum(1 << day for day in days if self.last_of_week >> (first + day - 1) % WEEK & 1)


class Cron(Struct, frozen=True):
    """A parsed expression; fields are bits, `years` counts from 1970 and 0 means every year."""

    text: str
    seconds: int
    minutes: int
    hours: int
    days: Days
    months: int
    years: int

    def next(self, after_ms: int, zone: str) -> int | None:
        """Return the first fire strictly after an instant, None if there is none."""
        moment = aware_of(after_ms // 1000, zone)
        local = moment.replace(tzinfo=None)
        if moment.fold:
            # All times of the fold have fired in its first pass.
            local = end_of_fold(local, zone) - _SECOND
        matching = self._after(local)
        return None if matching is None else instant_of(matching, zone)

    def upcoming(self, after_ms: int, zone: str, n: int) -> list[int]:
        """Return the next n fires strictly after an instant, fewer if there are no more."""
        fires: list[int] = []
        while len(fires) < n:
            fire = self.next(fires[-1] if fires else after_ms, zone)
            if fire is None:
                break
            fires.append(fire)
        return fires

    def can_match(self) -> bool:
        """Tell whether any date at all matches."""
        # In 28 years every month length has met every weekday.
        years = _bits(self.years, FIRST_YEAR) or range(2000, 2028)
        return any(self._days(year, month) for year in years for month in range(1, MONTHS + 1))

    def _after(self, local: datetime) -> datetime | None:
        if self._days(local.year, local.month) >> local.day & 1:
            time = self._time_after(local.hour, local.minute, local.second)
            if time is not None:
                return datetime(local.year, local.month, local.day, *time)
        day = self._day_after(local.year, local.month, local.day)
        if day is None:
            return None
        first = (_bit(self.hours, 0), _bit(self.minutes, 0), _bit(self.seconds, 0))
        return datetime(*day, *first)

    def _time_after(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                later = _bit(self.seconds, second + 1)
                if later >= 0:
                    return hour, minute, later
            later = _bit(self.minutes, minute + 1)
            if later >= 0:
                return hour, later, _bit(self.seconds, 0)
        later = _bit(self.hours, hour + 1)
        return None if later < 0 else (later, _bit(self.minutes, 0), _bit(self.seconds, 0))

    def _day_after(self, year: int, month: int, day: int) -> tuple[int, int, int] | None:
        found = _bit(self._days(year, month), day + 1)
        if found >= 0:
            return year, month, found
        last = min(MAXYEAR, year + CRON_HORIZON_YEARS) if not self.years else MAXYEAR
        while True:
            month = _bit(self.months, month + 1)
            if month < 0:
                year, month = self._year_after(year), _bit(self.months, 0)
                if not year or year > last:
                    return None
            found = _bit(self._days(year, month), 1)
            if found >= 0:
                return year, month, found

    def _days(self, year: int, month: int) -> int:
        if not self.months >> month & 1 or not self._has_year(year):
            return 0
        return self.days.of(year, month)

    def _has_year(self, year: int) -> bool:
        return not self.years or (year >= FIRST_YEAR and bool(self.years >> year - FIRST_YEAR & 1))

    def _year_after(self, year: int) -> int:
        if not self.years:
            return year + 1
        later = _bit(self.years, max(0, year + 1 - FIRST_YEAR))
        return 0 if later < 0 else later + FIRST_YEAR


def _bit(bits: int, start: int) -> int:
    """Return the number of the first bit set from `start` on, -1 if there is none."""
    rest = bits >> start
    return start + (rest & -rest).bit_length() - 1 if rest else -1


def _bits(bits: int, offset: int) -> list[int]:
    return [offset + number for number in range(bits.bit_length()) if bits >> number & 1]
