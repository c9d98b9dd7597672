"""What a step's journal entries count as: their actions, told apart where one action says two."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

_action = itemgetter(0)
_TOLD_APART = frozenset({"error.occurred", "wait.started", "cron.skipped"})


def counted(entries: Sequence[Any]) -> tuple[str, ...]:
    """One name for each entry; a skipped fire that stands for many counts as many."""
    names = tuple(map(_action, entries))
    if _TOLD_APART.isdisjoint(names):
        return names
    return tuple(name for entry in entries for name in _names(*entry))


def _names(action: str, _node: str, detail: Any = None) -> list[str]:
    if action not in _TOLD_APART or not isinstance(detail, dict):
        return [action]
    match action:
        case "error.occurred" if detail.get("final"):
            breached = detail.get("code") == "step.deadline"
            return ["error.final", "sla.breached"] if breached else ["error.final"]
        case "wait.started" if detail.get("kind") == "gate":
            return [action, "wait.gate"]
        case "cron.skipped":
            return [action] * int(detail.get("count", 1))
    return [action]
