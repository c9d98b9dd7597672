"""Durations, dates, local times and time zones as they stand on the wire."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from detent.definition.places import field_of, found, quoted
from detent.definition.shapes.fields import wrong_type
from detent.model.limits import DURATION_MS

if TYPE_CHECKING:
    from detent.definition.walk import Walk

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,3}")


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
        if _ZONE.fullmatch(value):
            return ZoneInfo(value).key
    except (KeyError, ValueError, OSError):
        pass  # ZoneInfoNotFoundError is a KeyError; a directory is an OSError
    message = f'expected a time zone such as "Europe/Paris", found {quoted(value)}; correct it'
    return walk.fault(path, "definition.timezone", message)
