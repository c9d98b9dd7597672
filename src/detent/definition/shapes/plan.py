"""A plan as authors write it: steps that speak, wait, branch and end, transitions, and exits."""

from __future__ import annotations

from typing import Any, Final

from detent.definition.places import below, did_you_mean, field_of, found, item, quoted
from detent.definition.shapes.countries import calendars, country
from detent.definition.shapes.expressions import condition, named, template
from detent.definition.shapes.faces import EXITS, metadata
from detent.definition.shapes.fields import (
    choice,
    flag,
    listed,
    members,
    shaped,
    text,
    whole,
    words,
    wrong_type,
)
from detent.definition.shapes.nesting import block_shape
from detent.definition.shapes.schemas import schema
from detent.definition.shapes.sequence import INT32, POLICY, SLA
from detent.definition.shapes.step import STEP, pool
from detent.definition.shapes.times import calendar_dates, duration, zone
from detent.definition.shapes.until import UNTIL, moment
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.limits import DURATION_MS, NAME_CHARS, PLAN_CONDITIONS, PLAN_STEPS
from detent.model.plan import DEFAULT, FINISHED

UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
CALENDAR: Final = ("business_day", "timezone", "holidays", "country")
RESERVED: Final = ("any", DEFAULT)
"""Words of conditions, which no step can have for its id."""

_OWN = ("type", "id", "handler", "params", "queue_name", "fallback_handler")
_name = words()
_named = named(NAME_CHARS)
OPTIONS = tuple(field for field in STEP.fields if field.name not in _OWN)
"""What a step that sends can be told; who sends is never chosen in a plan."""

_TRACKING = Shape(
    "tracking", (Field("opens", flag, default=False), Field("clicks", flag, default=False))
)
_VOICEMAIL = Shape(
    "voicemail",
    (
        Field("detect", flag, default=False),
        Field("message", template),
        Field("fallback_speech", template),
    ),
)
EMAIL = (
    Field("template", _named, required=True),
    Field("subject", template),
    Field("reply_to", template),
    Field("tracking", shaped(_TRACKING), default={}),
)
VOICE = (
    Field("script", _named, required=True),
    Field("caller_id", template),
    Field("max_duration", duration),
    Field("voicemail", shaped(_VOICEMAIL), default={}),
)


def _count(walk: Walk, path: str, value: Any) -> Any:
    """Check how many of a unit a wait takes; a fraction is allowed."""
    if type(value) is not int and type(value) is not float:
        return wrong_type(walk, path, "a number", value)
    if not 0 <= value <= INT32:
        message = f"{field_of(path)} must be >= 0 and <= {INT32}, found {found(value)}; change it"
        return walk.fault(path, "definition.range", message)
    return value


def _until(walk: Walk, path: str, value: Any) -> Any:
    """Check a moment alone, or with what the calendar must know."""
    if type(value) is dict:
        return members(walk, path, value, UNTIL)
    time = moment(walk, path, value)
    return NOTHING if time is NOTHING else {"time": time}


def _wait_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    units = [name for name in UNITS_MS if raw.get(name) is not None]
    if units and raw.get("duration") is not None:
        message = f"expected either duration or {', '.join(units)}, found both; keep one"
        walk.fault(below(path, "duration"), "definition.exclusive", message)
    moments = raw.get("until") is not None or raw.get("business_day") is not None
    if not units and not moments and raw.get("duration") is None:
        message = "expected days, hours, minutes, seconds, duration or until, found none; add one"
        walk.fault(path, "definition.missing", message)
    if sum(out.get(name, 0) * ms for name, ms in UNITS_MS.items()) > DURATION_MS:
        message = f"expected at most {DURATION_MS} ms in all; shorten it"
        walk.fault(path, "definition.duration", message)
    for name in CALENDAR[1:]:
        if raw.get(name) is not None and not moments:
            message = f"{name} means nothing without until or business_day; add one or remove this"
            walk.fault(below(path, name), "definition.exclusive", message)


def _when(walk: Walk, path: str, value: Any) -> Any:
    """Check a condition, or the word that always holds."""
    return value if value == DEFAULT else condition(walk, path, value)


_CONDITION = Shape(
    "condition", (Field("when", _when, required=True), Field("goto", _name, required=True))
)


def _branch_rule(walk: Walk, path: str, out: dict[str, Any], _raw: dict[str, Any]) -> None:
    given = out.get("conditions")
    if given is None:
        return
    place = below(path, "conditions")
    last = len(given) - 1
    defaults = [
        index
        for index, each in enumerate(given)
        if type(each) is dict and each.get("when") == DEFAULT
    ]
    if not defaults:
        message = f'expected "{DEFAULT}" as the last condition, found none; say where else it goes'
        walk.fault(place, "definition.default", message)
    for index in defaults:
        if index != last:
            message = f'"{DEFAULT}" always holds, so nothing after it counts; put it last'
            walk.fault(item(place, index), "definition.default", message)


STEPS: Final[dict[str, Shape]] = {
    "send_email": block_shape("send_email", *EMAIL, *OPTIONS),
    "send_voice": block_shape("send_voice", *VOICE, *OPTIONS),
    "wait": block_shape(
        "wait",
        *(Field(name, _count) for name in UNITS_MS),
        Field("duration", duration),
        Field("until", _until),
        Field("business_day", flag),
        Field("timezone", zone),
        Field("holidays", calendar_dates, default=[]),
        Field("country", country),
        rule=_wait_rule,
    ),
    "branch": block_shape(
        "branch",
        Field(
            "conditions",
            listed(
                shaped(_CONDITION),
                least=1,
                most=PLAN_CONDITIONS,
                empty="expected at least one condition",
            ),
            required=True,
        ),
        rule=_branch_rule,
    ),
    "end": block_shape("end", Field("outcome", _name, default=FINISHED)),
    "step": STEP,
}


def step_of(walk: Walk, path: str, raw: Any) -> Any:
    """Check one step of any kind."""
    if type(raw) is not dict:
        return wrong_type(walk, path, "a step (an object with type and id)", raw)
    kind = raw.get("type")
    if type(kind) is not str or kind not in STEPS:
        code = "definition.missing" if kind is None else "definition.unknown_type"
        near = did_you_mean(kind, STEPS) if type(kind) is str else ""
        known = near or f"; use one of {', '.join(STEPS)}"
        message = f"expected a known type of step, found {found(kind)}{known}"
        return walk.fault(below(path, "type"), code, message)
    if raw.get("id") in RESERVED:
        message = f"{quoted(raw['id'])} is a word of conditions; choose another id"
        walk.fault(below(path, "id"), "definition.block_id", message)
    return members(walk, path, raw, STEPS[kind])


_step_list = listed(step_of, least=1, empty="a plan has no steps")


def _steps(walk: Walk, path: str, value: Any) -> Any:
    """Check the steps; those over the limit are counted only."""
    if type(value) is list and len(value) > PLAN_STEPS:
        message = f"expected at most {PLAN_STEPS} steps, found {len(value)}; split the plan"
        walk.fault(item(path, PLAN_STEPS), "definition.size", message)
        value = value[:PLAN_STEPS]
    return _step_list(walk, path, value)


def _transitions(walk: Walk, path: str, value: Any) -> Any:
    if value == "linear":
        return value
    if type(value) is not list:
        return wrong_type(walk, path, '"linear" or a list of transitions', value)
    return _moves(walk, path, value)


def _move(walk: Walk, path: str, value: Any) -> Any:
    """Check a transition, written as an object or as from, to and perhaps a condition."""
    if type(value) is list:
        if not 2 <= len(value) <= 3:  # noqa: PLR2004 - from, to, condition
            return wrong_type(walk, path, "from, to and perhaps a condition", value)
        value = dict(zip(("from", "to", "when"), value, strict=False))
    return members(walk, path, value, _MOVE)


_MOVE = Shape(
    "transition",
    (
        Field("from", _name, required=True),
        Field("to", _name, required=True),
        Field("when", _when, default=DEFAULT),
    ),
)
_moves = listed(_move)

PLAN = Shape(
    "plan",
    (
        Field("name", words(), required=True),
        Field("version", whole(0, INT32), required=True),
        Field("face", choice("plan")),
        Field("calendars", calendars, default={}),  # before the steps that name countries
        Field(
            "steps",
            _steps,
            required=True,
        ),
        Field("transitions", _transitions, default="linear"),
        Field("exit_conditions", EXITS, default=[]),
        Field("description", text),
        Field("created_by", _name),
        Field("metadata", metadata, default={}),
        Field("input_schema", schema),
        Field("policies", listed(shaped(POLICY)), default=[]),
        Field("sla", shaped(SLA)),
        Field("pool", pool),
        Field("sticky", flag, default=True),
    ),
)
