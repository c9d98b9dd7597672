"""Values of options: each is read here, or refused as a wrong command line before anything is done.

A refusal names its option and keeps the code of the rule that was broken.
"""

from __future__ import annotations

import datetime as dt
import re

import click

from detent.calendar import check_zone, parse_cron
from detent.definition.durations import to_duration
from detent.model import limits
from detent.model.errors import RequestError

_SPAN = "a length of time such as 90s, 10m, 1h30m or 1d"


class WrongValue(click.BadParameter):
    """An option whose value cannot be used."""

    def __init__(self, message: str, code: str = "usage", option: str | None = None) -> None:
        super().__init__(message, param_hint=None if option is None else repr(option))
        self.code = code


def span(text: str) -> int:
    """A length of time above 0, in milliseconds."""
    ms = to_duration(text)
    if type(ms) is int and 0 < ms <= limits.DURATION_MS:
        return ms
    if text.strip().isdecimal() and int(text):
        raise WrongValue(f"a length of time needs its unit: write {text}s or {text}ms")
    longest = ", of 100 years at most" if type(ms) is int and ms else ""
    raise WrongValue(f"expected {_SPAN}{longest}; got {text!r}")


def window(text: str) -> int:
    """The window of a limit, in milliseconds."""
    ms = span(text)
    if ms > limits.LIMIT_WINDOW_MS:
        days = limits.LIMIT_WINDOW_MS // 86_400_000
        raise WrongValue(f"a window has at most {days} days; got {text!r}")
    return ms


def zone(text: str) -> str:
    """The name of a time zone."""
    try:
        return check_zone(text)
    except RequestError as error:
        raise WrongValue(error.message, error.code) from None


def expression(text: str) -> str:
    """A cron expression."""
    try:
        parse_cron(text)
    except RequestError as error:
        raise WrongValue(error.message, error.code) from None
    return text


def instant(text: str) -> dt.datetime:
    """An ISO instant; local unless it says its offset."""
    try:
        return dt.datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise WrongValue(f"expected a time such as 2026-03-27T08:00; got {text!r}") from None


def moment(text: str) -> dt.datetime:
    """A date, or a date and time, as it was written."""
    first, last = 1970, 9_000  # beyond, a horizon of years would leave the calendar
    try:
        given = dt.datetime.fromisoformat(text)
    except ValueError:
        given = None
    if given is None or not first <= given.year <= last:
        expected = f"a date such as 2026-03-27, of the years {first} to {last}"
        raise WrongValue(f"expected {expected}; got {text!r}")
    return given


def day(text: str) -> dt.date:
    """A date."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise WrongValue(f"expected a date written YYYY-MM-DD; got {text!r}")
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise WrongValue(f"there is no day {text}") from None


def caps(text: str) -> list[int]:
    """The caps of a schedule, a number for each day; none where the text is empty."""
    try:
        found = [int(each) for each in text.split(",")] if text.strip() else []
    except ValueError:
        found = [-1]
    if any(not 0 <= each <= limits.DAILY_CAP for each in found):
        raise WrongValue(f"expected caps, whole numbers such as 5,10,20; got {text!r}")
    return found
