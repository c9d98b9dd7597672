"""Durations, dates, local times and time zones as they stand on the wire."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from detent.calendar import check_zone
from detent.definition.places import field_of, found, quoted
from detent.definition.shapes.fields import choice, listed, wrong_type
from detent.definition.walk import NOTHING
from detent.model.errors import RequestError
from detent.model.limits import DURATION_MS

if TYPE_CHECKING:
    from detent.definition.walk import Walk

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")

MIDNIGHT = "24:00"
"""The end of a day; no day begins with it."""

gap = choice("next", "shift", "before")
fold = choice("first", "second")


def duration(walk: Walk, path: str, value: Any) -> Any:
    """Check a duration (whole number: ms, fraction: seconds); its canonical form is whole ms."""
    if type(value) is float:
        ms = round(min(value, DURATION_MS) * 1000)
    elif type(value) is int:
        ms = value
    else:
        expected = "a duration (a whole number of ms, or seconds with a fraction such as 1.5)"
        return wrong_type(walk, path, expected, value)
    if value < 0 or ms > DURATION_MS:
        message = f"{field_of(path)} must be >= 0 and <= {DURATION_MS} ms, found {found(value)}"
        return walk.fault(path, "definition.duration", f"{message}; change it")
    return ms


def spread(walk: Walk, path: str, value: Any) -> Any:
    """Check a jitter; zero means none."""
    return duration(walk, path, value) or None


def calendar_date(walk: Walk, path: str, value: Any) -> Any:
    """Check a date `YYYY-MM-DD`."""
    return _read(walk, path, value, _DATE)


_date_list = listed(calendar_date)


def calendar_dates(walk: Walk, path: str, value: Any) -> Any:
    """Check a list of dates; its canonical form has each once, in order."""
    out = _date_list(walk, path, value)
    if out is NOTHING or any(type(each) is not str for each in out):
        return NOTHING
    return sorted(set(out))


def opening_time(walk: Walk, path: str, value: Any) -> Any:
    """Check a time of day `HH:MM` at which something begins."""
    return _clock(walk, path, value, last="23:59")


def closing_time(walk: Walk, path: str, value: Any) -> Any:
    """Check a time of day `HH:MM` at which something ends; midnight may be written 24:00."""
    return _clock(walk, path, value, last=MIDNIGHT)


def _clock(walk: Walk, path: str, value: Any, *, last: str) -> Any:
    if type(value) is not str:
        return wrong_type(walk, path, "a time of day as text HH:MM", value)
    if _CLOCK.fullmatch(value) or value == last:
        return value
    message = f"expected HH:MM from 00:00 to {last}, found {quoted(value)}; correct it"
    return walk.fault(path, "definition.date", message)


def local_time(walk: Walk, path: str, value: Any) -> Any:
    """Check a local time `YYYY-MM-DDTHH:MM:SS`."""
    return _read(walk, path, value, _LOCAL)


def _read(walk: Walk, path: str, value: Any, form: re.Pattern[str]) -> Any:
    wanted = "YYYY-MM-DD" if form is _DATE else "YYYY-MM-DDTHH:MM:SS"
    if type(value) is not str:
        return wrong_type(walk, path, f"a text {wanted}", value)
    try:
        if form.fullmatch(value):
            date.fromisoformat(value) if form is _DATE else datetime.fromisoformat(value)
            return value
    except ValueError:
        pass
    message = f"expected {wanted} of a day that exists, found {quoted(value)}; correct it"
    return walk.fault(path, "definition.date", message)


def zone(walk: Walk, path: str, value: Any) -> Any:
    """Check the name of a time zone."""
    if type(value) is not str:
        return wrong_type(walk, path, "the name of a time zone", value)
    try:
        return check_zone(value)
    except RequestError as error:
        return walk.fault(path, "definition.timezone", error.message)
