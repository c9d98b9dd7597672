"""Cron as it is written: 5 fields, 6 with seconds first, 7 with a year last.

`minute hour day-of-month month day-of-week`. A field is a list of `*`, values, ranges `a-b` and
steps `*/n`, `a-b/n`, `a/n` (from a to the end). Months and weekdays may be named, 0 and 7 are both
Sunday, `?` stands for `*` in the two day fields. `L` is the last day of the month, `5L` or `FRIL`
the last Friday, `FRI#2` the second one.
"""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple, NoReturn

from detent.calendar.cron import FIRST_YEAR, WEEK, Cron, Days
from detent.model.errors import RequestError
from detent.model.limits import CRON_CHARS

_LAST_YEAR = 2099
_MOST_WEEKS = 5
# `upper` would also turn letters beyond ASCII into some of it.
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)
_SUNDAY = 7
_PART = re.compile(r"(?:(\*|\?)|([0-9A-Z]+)(?:-([0-9A-Z]+))?)(?:/([0-9]{1,4}))?", re.ASCII)
_NTH = re.compile(r"([0-7]|[A-Z]{3})#([0-9])", re.ASCII)
_LAST = re.compile(r"([0-7]|[A-Z]{3})L", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,4}", re.ASCII)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    either: bool = False


_EARLY_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN")
_LATE_MONTHS = ("JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_SECONDS = _Field("second", 0, 59)
_MINUTES = _Field("minute", 0, 59)
_HOURS = _Field("hour", 0, 23)
_OF_MONTH = _Field("day of month", 1, 31, either=True)
_MONTHS = _Field("month", 1, 12, _EARLY_MONTHS + _LATE_MONTHS)
_OF_WEEK = _Field("day of week", 0, _SUNDAY, _DAY_NAMES, either=True)
_YEARS = _Field("year", FIRST_YEAR, _LAST_YEAR)


def parse_cron(text: str) -> Cron:
    """Read an expression; refuse one that is wrong, or that no date can ever match."""
    if type(text) is not str or len(text) > CRON_CHARS:
        wanted = f"a cron expression must be a text of at most {CRON_CHARS} characters"
        raise RequestError("calendar.cron", f"{wanted}; shorten it or use several")
    fields = text.translate(_UPPER).split()
    match len(fields):
        case 5:
            fields = ["0", *fields, "*"]
        case 6:
            fields = [*fields, "*"]
        case 7:
            pass
        case count:
            wanted = "a cron expression has 5 fields, 6 with seconds first or 7 with a year last"
            raise RequestError("calendar.cron", f"{wanted}, found {count} in {text!r}", text=text)
    second, minute, hour, of_month, month, of_week, year = fields
    cron = Cron(
        text,
        _bits(_SECONDS, second),
        _bits(_MINUTES, minute),
        _bits(_HOURS, hour),
        _days(of_month, of_week),
        _bits(_MONTHS, month),
        0 if year == "*" else _bits(_YEARS, year) >> FIRST_YEAR,
    )
    if not cron.can_match():
        wanted = "the days, months and years of a cron expression must meet on some date"
        raise RequestError("calendar.cron", f"{wanted}; those of {text!r} never do", text=text)
    return cron


def _days(of_month: str, of_week: str) -> Days:
    """Read the two day fields, which have signs of their own and one rule together."""
    last_of_month, plain_month = False, []
    for part in of_month.split(","):
        if part == "L":
            last_of_month = True
        else:
            plain_month.append(part)
    last_of_week, nth, plain_week = 0, [], []
    for part in of_week.split(","):
        if found := _NTH.fullmatch(part):
            nth.append((_weekday(found[1]), _nth(part, int(found[2]))))
        elif found := _LAST.fullmatch(part):
            last_of_week |= 1 << _weekday(found[1])
        else:
            plain_week.append(part)
    sundays = _bits(_OF_WEEK, ",".join(plain_week)) if plain_week else 0
    return Days(
        of_month=_bits(_OF_MONTH, ",".join(plain_month)) if plain_month else 0,
        of_week=_monday_first(sundays),
        last_of_month=last_of_month,
        last_of_week=last_of_week,
        nth_of_week=tuple(nth),
        either=not of_month.startswith(("*", "?")) and not of_week.startswith(("*", "?")),
    )


def _bits(field: _Field, text: str) -> int:
    bits = 0
    for part in text.split(","):
        for value in _values(field, part):
            bits |= 1 << value
    return bits


def _values(field: _Field, part: str) -> range:
    found = _PART.fullmatch(part)
    if found is None or (found[1] == "?" and not field.either):
        _refuse(field, f"found {part!r}")
    star, first, last, step = found.groups()
    low, high = field.low, field.high
    if not star:
        low = _value(field, first)
        high = low if step is None else high
        if last is not None:
            high = _value(field, last)
            # Sunday ends the week in a range such as FRI-SUN.
            high = _SUNDAY if field is _OF_WEEK and high == 0 < low else high
    if low > high:
        _refuse(field, f"found {part!r}, which ends before it begins; write it as two")
    width = field.high - field.low
    if step is not None and not 1 <= int(step) <= width:
        _refuse(field, f"found {part!r}, whose step must be 1 to {width}")
    return range(low, high + 1, int(step or 1))


def _value(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + (1 if field is _MONTHS else 0)
    if not _NUMBER.fullmatch(text) or not field.low <= int(text) <= field.high:
        _refuse(field, f"found {text!r}")
    return int(text)


def _weekday(text: str) -> int:
    """Read a weekday as the calendar counts, from Monday 0."""
    return (_value(_OF_WEEK, text) - 1) % WEEK


def _monday_first(bits: int) -> int:
    monday_to_saturday = bits >> 1 & 0b0111111
    sunday = (bits | bits >> _SUNDAY) & 1
    return monday_to_saturday | sunday << (WEEK - 1)


def _nth(part: str, nth: int) -> int:
    if not 1 <= nth <= _MOST_WEEKS:
        _refuse(_OF_WEEK, f"found {part!r}, whose number after # must be 1 to {_MOST_WEEKS}")
    return nth


def _refuse(field: _Field, what: str) -> NoReturn:
    named = f" or {field.names[0]}-{field.names[-1]}" if field.names else ""
    wanted = f"the {field.name} of a cron expression must be {field.low}-{field.high}{named}"
    raise RequestError("calendar.cron", f"{wanted}, {what}; change it", field=field.name)
