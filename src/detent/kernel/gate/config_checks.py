"""The checks of a gate's configuration: what is wrong is named, with what to do about it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from detent.calendar import check_zone, local_of, tzdata_version
from detent.model import limits
from detent.model.errors import RequestError

_SHOWN = 60
_COMPARED = 200  # names looked at for a near match: comparing takes its time


def unknown(code: str, what: str, name: str, known: Iterable[str]) -> RequestError:
    """The error for a name nobody knows, with the nearest one that is known."""
    near = get_close_matches(name[:_SHOWN], list(islice(known, _COMPARED)), n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return RequestError(code, f"there is no {what} {_shown(name)}{hint}")


def known_fields(code: str, args: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a field that does not exist."""
    for name in args:
        if name not in known:
            raise unknown(code, "field", name, known)


def text(code: str, args: Mapping[str, Any], name: str) -> str:
    """A key or name of 1 to 255 characters."""
    value = args.get(name)
    if type(value) is not str or not 0 < len(value) <= limits.NAME_CHARS:
        raise _wrong(code, name, f"text of 1 to {limits.NAME_CHARS} characters", value)
    return value


def number(code: str, args: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    value = args.get(name)
    if type(value) is not int or not low <= value <= high:
        raise _wrong(code, name, f"a whole number from {low:,} to {high:,}", value)
    return value


def instant(code: str, args: Mapping[str, Any], name: str, first: int, last: int) -> int:
    """An instant in epoch milliseconds, in the future but not beyond a hundred years."""
    value = args.get(name)
    if type(value) is not int or not first <= value <= last:
        expected = "an instant in the future, at most 100 years from now, in epoch milliseconds"
        raise _wrong(code, name, expected, value)
    return value


def one_of(code: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        raise _wrong(code, name, f"one of {', '.join(choices)}", value)


def room(code: str, what: str, there: Collection[str], most: int) -> None:
    """Refuse one more when there are as many as there may be."""
    if len(there) >= most:
        raise RequestError(code, f"a tenant may have at most {most:,} {what}; delete one first")


def resource(new: Mapping[str, Any]) -> None:
    """Refuse a resource whose fields are wrong, or do not go together."""
    text("pool.invalid", new, "name")
    if type(new["enabled"]) is not bool:
        raise _wrong("pool.invalid", "enabled", "true or false", new["enabled"])
    number("pool.invalid", new, "weight", 1, limits.RESOURCE_WEIGHT)
    for name in ("daily_cap", "warmup_start_cap"):
        number("pool.invalid", new, name, 0, limits.DAILY_CAP)
    number("pool.invalid", new, "warmup_days", 0, limits.WARMUP_DAYS)
    zone = new["timezone"]
    if type(zone) is not str:
        raise _wrong("pool.invalid", "timezone", "an IANA name such as Europe/Paris", zone)
    if "warmup_start" in new:
        _date(new["warmup_start"])
    if "warmup_schedule" in new:
        _schedule(new)
    else:
        _ramp(new)


def today(zone: str, now_ms: int) -> dict[str, str]:
    """The date in a time zone, or why there is none; with the version of the zones that said so."""
    said = {"zone": zone, "tzdata": tzdata_version()}
    try:
        check_zone(zone)
    except RequestError as error:
        return {**said, "fault": error.message}
    return {**said, "date": local_of(now_ms, zone).date().isoformat()}


def _date(value: Any) -> None:
    expected = "a date written YYYY-MM-DD"
    if type(value) is not str:
        raise _wrong("pool.invalid", "warmup_start", expected, value)
    try:
        right = dt.date.fromisoformat(value).isoformat() == value
    except ValueError:
        right = False
    if not right:
        raise _wrong("pool.invalid", "warmup_start", expected, value)


def _ramp(new: Mapping[str, Any]) -> None:
    cap, first, days = new["daily_cap"], new["warmup_start_cap"], new["warmup_days"]
    if days > 0 and cap == 0:
        raise RequestError(
            "pool.invalid", "a warm-up over warmup_days needs a daily_cap above 0 to rise to"
        )
    if 0 < cap < first:
        raise RequestError(
            "pool.invalid",
            f"warmup_start_cap must not be above daily_cap; got {first} above {cap}",
        )


def _schedule(new: Mapping[str, Any]) -> None:
    caps = new["warmup_schedule"]
    expected = f"a list of 1 to {limits.WARMUP_DAYS} caps, whole numbers from 0, one for each day"
    if not isinstance(caps, list | tuple) or not 0 < len(caps) <= limits.WARMUP_DAYS:
        raise _wrong("pool.invalid", "warmup_schedule", expected, caps)
    for cap in caps:
        if type(cap) is not int or not 0 <= cap <= limits.DAILY_CAP:
            raise _wrong("pool.invalid", "warmup_schedule", expected, cap)
    if new["warmup_days"] > 0 or new["warmup_start_cap"] > 0:
        raise RequestError(
            "pool.invalid",
            "a warm-up has either a warmup_schedule or warmup_days with warmup_start_cap; "
            "set the others to 0",
        )
    if 0 < new["daily_cap"] < max(caps):
        raise RequestError(
            "pool.invalid",
            f"no cap of warmup_schedule may be above daily_cap; "
            f"got {max(caps)} above {new['daily_cap']}",
        )


def _wrong(code: str, name: str, expected: str, got: Any) -> RequestError:
    return RequestError(code, f"{name} must be {expected}; got {_shown(got)}")


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
