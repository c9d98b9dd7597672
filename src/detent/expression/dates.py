"""Dates in expressions: RFC 3339 in, a strftime-like format out, always UTC, no locale."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)


def moment(text: str) -> datetime | None:
    """Read a date or an RFC 3339 time; without an offset it is UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micro = int((match[7] or "").ljust(6, "0")[:6])
    offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
    try:
        local = datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC)
        return local + offset if match[8] == "-" else local - offset
    except (ValueError, OverflowError):
        return None


def instant(now_ms: int) -> str | None:
    """Write logical time as RFC 3339 in UTC with milliseconds."""
    try:
        when = _EPOCH + timedelta(milliseconds=now_ms)
    except OverflowError:
        return None
    millis = when.microsecond // 1000
    return f"{formatted(when, '%FT%T')}.{millis:03d}Z"


def _week(when: datetime, first_day: int) -> int:
    day = (when.weekday() - first_day) % 7
    return (_year_day(when) + 6 - day) // 7


def _year_day(when: datetime) -> int:
    return when.timetuple().tm_yday


_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda when: f"{when.year:04d}",
    "C": lambda when: f"{when.year // 100:02d}",
    "y": lambda when: f"{when.year % 100:02d}",
    "m": lambda when: f"{when.month:02d}",
    "b": lambda when: _MONTHS[when.month - 1][:3],
    "h": lambda when: _MONTHS[when.month - 1][:3],
    "B": lambda when: _MONTHS[when.month - 1],
    "d": lambda when: f"{when.day:02d}",
    "e": lambda when: f"{when.day:2d}",
    "j": lambda when: f"{_year_day(when):03d}",
    "a": lambda when: _DAYS[when.weekday()][:3],
    "A": lambda when: _DAYS[when.weekday()],
    "u": lambda when: str(when.isoweekday()),
    "w": lambda when: str(when.isoweekday() % 7),
    "U": lambda when: f"{_week(when, 6):02d}",
    "W": lambda when: f"{_week(when, 0):02d}",
    "G": lambda when: f"{when.isocalendar().year:04d}",
    "V": lambda when: f"{when.isocalendar().week:02d}",
    "H": lambda when: f"{when.hour:02d}",
    "I": lambda when: f"{(when.hour - 1) % 12 + 1:02d}",
    "M": lambda when: f"{when.minute:02d}",
    "S": lambda when: f"{when.second:02d}",
    "f": lambda when: f"{when.microsecond:06d}",
    "p": lambda when: ("AM", "PM")[when.hour // 12],
    "z": lambda _: "+0000",
    "Z": lambda _: "UTC",
    "s": lambda when: str((when - _EPOCH) // timedelta(seconds=1)),
    "F": lambda when: f"{when.year:04d}-{when.month:02d}-{when.day:02d}",
    "T": lambda when: f"{when.hour:02d}:{when.minute:02d}:{when.second:02d}",
    "R": lambda when: f"{when.hour:02d}:{when.minute:02d}",
    "D": lambda when: f"{when.month:02d}/{when.day:02d}/{when.year % 100:02d}",
    "n": lambda _: "\n",
    "t": lambda _: "\t",
    "%": lambda _: "%",
}
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)


def formatted(when: datetime, pattern: str) -> str:
    """Write a moment by a strftime-like pattern; an unknown directive stays as it is."""

    def piece(match: re.Match[str]) -> str:
        directive = _DIRECTIVES.get(match[1])
        return directive(when) if directive else match[0]

    return _DIRECTIVE.sub(piece, pattern)
