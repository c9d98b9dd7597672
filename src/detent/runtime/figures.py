"""Counting a turn: what its decisions noted, how long it took, how long instances had lived.

The engine's own instances are counted apart, by what they are for: a delivery of a webhook that has
ended is no instance of a user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from detent.definition.system import CRON, EVENTS, GATE, WEBHOOK
from detent.kernel.lifecycle import TERMINAL
from detent.model.figures import note_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.model.decision import Decision
    from detent.runtime.decide import Done
    from detent.runtime.parts import Parts

_OWN: Final[dict[str, str]] = {
    GATE.hash: "gate:",
    CRON.hash: "cron:",
    WEBHOOK.hash: "webhook:",
    EVENTS.hash: "events:",
}


def count_turn(parts: Parts, done: Iterable[Done]) -> None:
    """Count what a commit made durable."""
    # Most steps of a turn note the same actions in the same order: they are counted as one.
    noted: dict[tuple[str, tuple[str, ...]], int] = {}
    counts = parts.out.counts
    turns = 0
    for each in done:
        decision = each.decision
        if not decision.journal:
            continue
        own = _OWN.get(decision.definition, "")
        told = (own, decision.actions)
        noted[told] = noted.get(told, 0) + 1
        if own:
            continue
        turns += 1
        if decision.state in TERMINAL and decision.started is not None:
            _note_life(parts, decision, decision.started)
    for (own, actions), count in noted.items():
        for action in actions:
            counts[own + action] = counts.get(own + action, 0) + count
    counts["instance.turns"] = counts.get("instance.turns", 0) + turns


def _note_life(parts: Parts, decision: Decision, started: int) -> None:
    """An instance has ended, once: a later turn of it ends nothing."""
    if any(action in _ENDS for action in decision.actions):
        ticks = decision.tick - started
        note_time(parts.out.counts, "life", ticks * parts.meta.resolution_ms * 1_000)


_ENDS: Final = frozenset({f"run.{state}" for state in TERMINAL})
