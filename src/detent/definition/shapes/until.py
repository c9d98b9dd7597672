"""The local moment that a wait goes on to."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, found
from detent.definition.shapes.countries import country
from detent.definition.shapes.fields import flag, wrong_type
from detent.definition.shapes.times import (
    calendar_dates,
    fold,
    gap,
    local_time,
    opening_time,
    zone,
)
from detent.definition.walk import Field, Shape, Walk

_CLOCK_CHARS = len("HH:MM")


def moment(walk: Walk, path: str, value: Any) -> Any:
    """Check a time of day, or a local time with its date."""
    if type(value) is not str:
        return wrong_type(walk, path, "a text HH:MM or YYYY-MM-DDTHH:MM:SS", value)
    read = opening_time if len(value) <= _CLOCK_CHARS else local_time
    return read(walk, path, value)


def _until_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    if raw.get("time") is None and raw.get("business_day") is not True:
        message = f"expected a time, business_day or both, found {found(raw)} with neither; add one"
        walk.fault(path, "definition.missing", message)
    if not out.get("business_day"):
        for name in ("holidays", "country"):
            if name in out:
                message = f"{name} means nothing without business_day; add it or remove this"
                walk.warn(below(path, name), message)


UNTIL = Shape(
    "until",
    (
        Field("time", moment),
        Field("business_day", flag, default=False),
        Field("timezone", zone),
        Field("holidays", calendar_dates, default=[]),
        Field("country", country),
        Field("gap", gap, default="next"),
        Field("fold", fold, default="first"),
    ),
    _until_rule,
)
