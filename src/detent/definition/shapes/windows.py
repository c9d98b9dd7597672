"""Send windows: whole hours, times of day, or spans per weekday.

One window has one style. A span whose end is not after its start goes on past midnight; the day
it begins on is the one that counts for weekday and holidays.
"""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, did_you_mean, quoted
from detent.definition.plain import NOT_PLAIN
from detent.definition.shapes.countries import country
from detent.definition.shapes.fields import listed, shaped, whole, wrong_type
from detent.definition.shapes.times import (
    MIDNIGHT,
    calendar_dates,
    closing_time,
    duration,
    fold,
    gap,
    opening_time,
    zone,
)
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.limits import SEND_WINDOWS, WINDOW_SPANS

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_WHOLE_HOURS = ("start_hour", "end_hour")
_TIMES = ("start", "end")
_day_list = listed(whole(0, 6))


def send_window(walk: Walk, path: str, value: Any) -> Any:
    """Check one window or several; the canonical form of a list of one is that one."""
    if type(value) is dict:
        return _window(walk, path, value)
    if type(value) is not list:
        return wrong_type(walk, path, "a window (an object) or a list of windows", value)
    out = _window_list(walk, path, value)
    return out[0] if out is not NOTHING and len(out) == 1 else out


def _days(walk: Walk, path: str, value: Any) -> Any:
    out = _day_list(walk, path, value)
    if out is NOTHING or any(type(each) is not int for each in out):
        return NOTHING
    return sorted(set(out))


def _hours(walk: Walk, path: str, value: Any) -> Any:
    if type(value) is not dict:
        return wrong_type(walk, path, 'an object such as {"mon": ["09:00-17:00"]}', value)
    out = {}
    for day, spans in value.items():
        place = below(path, day)
        if day not in WEEKDAYS:
            near = did_you_mean(day, WEEKDAYS) or f"; use {', '.join(WEEKDAYS)}"
            message = f"expected a weekday, found {quoted(day)}{near}"
            walk.fault(place, "definition.choice", message)
            continue
        inner = NOTHING if spans is NOT_PLAIN else _spans(walk, place, spans)
        if inner is NOTHING or inner:  # a day without spans is closed, as is one that is not named
            out[day] = inner
    if not out:
        message = "expected at least one span on one weekday, found none; add one"
        return walk.fault(path, "definition.empty", message)
    return out


def _spans(walk: Walk, path: str, value: Any) -> Any:
    out = _span_list(walk, path, value)
    if out is NOTHING or any(type(each) is not str for each in out):
        return NOTHING
    return sorted(set(out))


def _span(walk: Walk, path: str, value: Any) -> Any:
    if type(value) is not str:
        return wrong_type(walk, path, "a span as text HH:MM-HH:MM", value)
    start, dash, end = value.partition("-")
    if not dash:
        message = f"expected a span HH:MM-HH:MM, found {quoted(value)}; correct it"
        return walk.fault(path, "definition.date", message)
    if opening_time(walk, path, start) is NOTHING or closing_time(walk, path, end) is NOTHING:
        return NOTHING
    return _never_open(walk, path, start) if start == end else value


def _never_open(walk: Walk, path: str, time: Any) -> Any:
    message = f"start must differ from end, found {time} for both; change one"
    return walk.fault(path, "definition.range", f"{message} (a whole day ends at {MIDNIGHT})")


def _window_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    given = [name for name, value in raw.items() if value is not None]
    times = [name for name in _TIMES if name in given]
    others = [name for name in _WHOLE_HOURS if name in given]
    if "hours" in given:
        style, others = "hours", [*times, *others, *(["days"] if "days" in given else [])]
    elif times:
        style = "start and end"
        _check_times(walk, path, out, times)
    else:
        style, others = "", []
        start, end = out.get("start_hour", 9), out.get("end_hour", 17)
        if start == end:
            message = f"start_hour must differ from end_hour, found {start} for both; change one"
            walk.fault(below(path, "end_hour"), "definition.range", message)
    for name in others:
        message = f"expected one style of hours, found {name} beside {style}; keep one of them"
        walk.fault(below(path, name), "definition.exclusive", message)


def _check_times(walk: Walk, path: str, out: dict[str, Any], times: list[str]) -> None:
    for name in _TIMES:
        if name not in times:
            message = f"missing field `{name}`: a window has start and end; add it"
            walk.fault(below(path, name), "definition.missing", message)
    start = out.get("start")
    if start is not None and start == out.get("end"):
        _never_open(walk, below(path, "end"), start)


_span_list = listed(_span, most=WINDOW_SPANS)

_WINDOW = Shape(
    "send_window",
    (
        Field("start_hour", whole(0, 23), default=9),
        Field("end_hour", whole(0, 23), default=17),
        Field("days", _days, default=[]),
        Field("start", opening_time),
        Field("end", closing_time),
        Field("hours", _hours),
        Field("timezone", zone),
        Field("holidays", calendar_dates, default=[]),
        Field("country", country),
        Field("gap", gap, default="next"),
        Field("fold", fold, default="first"),
        Field("send_late_within", duration, default=0),
    ),
    _window_rule,
)

_window = shaped(_WINDOW)
_window_list = listed(_window, least=1, most=SEND_WINDOWS, empty="expected at least one window")
