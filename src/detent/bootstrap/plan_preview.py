"""A plan tried out for one contact: virtual time, a store in memory, and nobody is spoken to.

The run is a dry one, in which no handler is called and every policy of an author's own allows. What
comes back is the story as the engine itself decided it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from detent.bootstrap.engine import Engine
from detent.handlers import allow, handler, policy
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.model.limits import PREVIEW_STEPS
from detent.service.plan_story import Happening
from detent.service.plans import RunView, check_plan
from detent.service.starting import called_handlers

SAMPLE = {"id": "preview", "email": "contact@example.com", "phone": "+15550100"}
"""The contact that is taken when none is named."""


class Told(NamedTuple):
    """An event that is assumed to happen so long after the start."""

    after_ms: int
    kind: str
    step: str
    outcome: str = ""


class Assumed(NamedTuple):
    """For whom a plan is tried out, from when, and what happens meanwhile."""

    contact: Mapping[str, Any]
    variables: Mapping[str, Any]
    start_ms: int
    events: Sequence[Told] = ()
    days: int = 400


class Preview(NamedTuple):
    """How it went."""

    run: RunView
    story: list[Happening]


def preview_plan(definition: Definition, assumed: Assumed) -> Preview:
    """Try a plan out; it is stopped after so many days, or after too many steps."""
    check_plan(definition)
    with Engine(clock="virtual", seed="preview", epoch_ms=assumed.start_ms) as engine:
        _stand_in_for(engine, definition)
        run = engine.plans.execute(
            definition,
            assumed.contact,
            assumed.variables,
            dry_run=True,
            auto_approve=True,
            budget={"max_steps": PREVIEW_STEPS},
        ).id
        for told in sorted(assumed.events, key=lambda each: each.after_ms):
            engine.advance(to=_instant(assumed.start_ms + told.after_ms))
            if engine.plans.get_run(run).completed_ms is None:
                engine.plans.ingest_event(run, told.kind, told.step, outcome=told.outcome)
        engine.advance(0)
        rest = assumed.start_ms + assumed.days * 86_400_000
        if rest > engine.now().timestamp() * 1000:
            engine.advance(to=_instant(rest))
        return Preview(engine.plans.get_run(run), engine.plans.timeline(run))


def _stand_in_for(engine: Engine, definition: Definition) -> None:
    """Register somebody for each name that nobody has; in a dry run none of them is called."""
    for name in dict.fromkeys(called_handlers(definition)):
        _register(engine, handler(name, on_doubt="once")(lambda **_params: None))
    for each in definition.body.policies:
        if each.handler is not None:
            _register(engine, policy(each.handler)(_allowed))


def _allowed() -> Any:
    return allow()


def _register(engine: Engine, function: Callable[..., Any]) -> None:
    try:
        engine.register(function)
    except RequestError as error:
        if error.code != "handler.duplicate":  # one of the engine's own, which previews itself
            raise


def _instant(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
