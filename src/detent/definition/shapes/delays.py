"""The delay of a step: a span, a local time, business days, jitter."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below
from detent.definition.shapes.countries import country
from detent.definition.shapes.fields import flag
from detent.definition.shapes.times import (
    calendar_dates,
    duration,
    fold,
    gap,
    local_time,
    spread,
    zone,
)
from detent.definition.walk import Field, Shape, Walk


def _delay_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    if raw.get("duration") is None:
        if raw.get("fire_at_local") is not None:
            out["duration"] = 0
        else:
            message = "missing field `duration`: a delay has it or fire_at_local; add one of them"
            walk.fault(below(path, "duration"), "definition.missing", message)
    if not out.get("business_days_only"):
        for name in ("holidays", "country"):
            if name in out:
                message = f"{name} means nothing without business_days_only; add it or remove this"
                walk.warn(below(path, name), message)


DELAY = Shape(
    "delay",
    (
        Field("duration", duration),
        Field("business_days_only", flag, default=False),
        Field("jitter", spread),
        Field("holidays", calendar_dates, default=[]),
        Field("fire_at_local", local_time),
        Field("timezone", zone),
        Field("country", country),
        Field("gap", gap, default="next"),
        Field("fold", fold, default="first"),
    ),
    _delay_rule,
)
