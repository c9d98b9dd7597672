"""Builders for plans: Python calls to the form of YAML and JSON, then the same `normalize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from detent.definition.build import step
from detent.definition.durations import Duration, to_duration
from detent.definition.normalize import normalize
from detent.definition.options import Block, StepOptions, refuse_unknown
from detent.model.plan import DEFAULT, FINISHED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detent.model.definition import Definition

Transitions = Literal["linear"] | Sequence[Sequence[Any]]


class PlanOptions(TypedDict, total=False):
    """What `plan` takes beside name and steps."""

    version: int
    transitions: Transitions
    exit_conditions: Sequence[Mapping[str, Any]]
    description: str | None
    created_by: str | None
    metadata: Mapping[str, Any]
    input_schema: Mapping[str, Any] | None
    policies: Sequence[Mapping[str, Any]]
    sla: Mapping[str, Any] | None
    pool: str | None
    sticky: bool
    calendars: Mapping[str, Sequence[str]]


class EmailOptions(StepOptions, total=False):
    """What `send_email` takes beside its id and template."""

    subject: str | None
    reply_to: str | None
    tracking: Mapping[str, bool] | None


class VoiceOptions(StepOptions, total=False):
    """What `send_voice` takes beside its id and script."""

    caller_id: str | None
    max_duration: Duration | None
    voicemail: Mapping[str, Any] | None


def plan(name: str, /, *steps: Block, **options: Unpack[PlanOptions]) -> Definition:
    """Make a plan: how one contact is spoken to over time; the version is 1 if not given."""
    refuse_unknown("plan", options, PlanOptions)
    return normalize({"version": 1, **options, "name": name, "steps": list(steps)})


def send_email(step_id: str, /, template: Any = None, **options: Unpack[EmailOptions]) -> Block:
    """Make a step that sends an email of a template."""
    refuse_unknown("send_email", options, EmailOptions)
    return _sends("send_email", step_id, {"template": template}, options, EmailOptions)


def send_voice(step_id: str, /, script: Any = None, **options: Unpack[VoiceOptions]) -> Block:
    """Make a step that calls a person and follows a script."""
    refuse_unknown("send_voice", options, VoiceOptions)
    own = {"script": script}
    if "max_duration" in options:
        options["max_duration"] = to_duration(options["max_duration"])
    return _sends("send_voice", step_id, own, options, VoiceOptions)


def branch(
    step_id: str, /, *conditions: tuple[str, str] | Sequence[str], default: str | None = None
) -> Block:
    """Make a choice: `(condition, goto)` in order; `default` says where else it goes."""
    rows = [dict(zip(("when", "goto"), each, strict=False)) for each in conditions]
    if default is not None:
        rows.append({"when": DEFAULT, "goto": default})
    return {"type": "branch", "id": step_id, "conditions": rows}


def end(step_id: str, /, outcome: str = FINISHED) -> Block:
    """Make the end of a run, with its outcome."""
    return {"type": "end", "id": step_id, "outcome": outcome}


def exit_when(condition: str, /, outcome: str = "exited") -> dict[str, Any]:
    """Make a condition that ends a run wherever it stands."""
    return {"when": condition, "outcome": outcome}


def linear() -> Literal["linear"]:
    """Let each step lead to the next one in the list."""
    return "linear"


def explicit(moves: Sequence[Sequence[Any]], /) -> list[list[Any]]:
    """Name every transition: `(from, to)` or `(from, to, condition)`."""
    return [list(move) for move in moves]


def _sends(
    kind: str, step_id: str, own: dict[str, Any], options: Mapping[str, Any], known: Any
) -> Block:
    """A step with the options of any other, whose durations and handlers are converted alike."""
    shared = StepOptions.__optional_keys__
    mine = {name: options[name] for name in known.__optional_keys__ if name in options}
    mine = {name: value for name, value in mine.items() if name not in shared}
    base: dict[str, Any] = {name: options[name] for name in options if name in shared}
    made = step(step_id, "", **base)
    del made["handler"]
    return {**made, **own, **mine, "type": kind}
