"""Figures of what happened in a store: steps, and effects by handler and outcome."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from detent.kernel.recording import read_body
from detent.ports.store import Store

_PAGE = 1_000
_STEP = b'["step.executed"'
_ENDS = {
    "effect.planned": "planned",
    "effect.applied": "applied",
    "effect.failed": "failed",
    "effect.escalated": "escalated",
    "effect.resolved": "resolved",
}


class EffectFigures(Struct, kw_only=True):
    """How the calls of one handler went."""

    handler: str
    planned: int = 0
    applied: int = 0
    failed: int = 0
    escalated: int = 0
    resolved: int = 0


class Tally(Struct, kw_only=True):
    """Figures over a stretch of the journal."""

    rows: int = 0
    steps: int = 0
    signals: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    effects: dict[str, EffectFigures] = field(default_factory=dict)
    last: int = 0  # the position up to which rows were counted


def count_steps(store: Store, after: int) -> tuple[int, int]:
    """Steps that were executed after a position, and the position reached; nothing is decoded."""
    steps = 0
    while page := store.journal_scan(after, _PAGE):
        steps += sum(row.body.count(_STEP) for row in page if row.body is not None)
        after = page[-1].pos
    return steps, after


def tally(store: Store, after: int = 0) -> Tally:
    """All figures after a position."""
    made = Tally(last=after)
    handlers: dict[str, str] = {}  # of effects, by key
    while page := store.journal_scan(made.last, _PAGE):
        for row in page:
            if row.body is not None:
                _add(made, handlers, read_body(row.body).entries)
        made.rows += len(page)
        made.last = page[-1].pos
    return made


def _add(made: Tally, handlers: dict[str, str], entries: list[list[object]]) -> None:
    for entry in entries:
        action = str(entry[0])
        made.actions[action] += 1
        made.steps += action == "step.executed"
        made.signals += action == "event.received"
        detail = entry[2] if len(entry) > 2 else None  # noqa: PLR2004 - action, node, detail
        if action not in _ENDS or not isinstance(detail, dict):
            continue
        key = str(detail.get("key", ""))
        handler = handlers.setdefault(key, str(detail.get("handler", "")))
        figures = made.effects.setdefault(handler, EffectFigures(handler=handler))
        name = _ENDS[action]
        setattr(figures, name, getattr(figures, name) + 1)
