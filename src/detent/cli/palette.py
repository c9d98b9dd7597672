"""One colour and one symbol for each state, the same in every view."""

from __future__ import annotations

STATES = {
    "scheduled": "cyan",
    "running": "blue",
    "waiting": "yellow",
    "paused": "magenta",
    "completed": "green",
    "failed": "red",
    "cancelled": "bright_black",
    # of nodes and effects beside these
    "pending": "bright_black",
    "skipped": "bright_black",
    "planned": "cyan",
    "in_flight": "blue",
    "applied": "green",
    "needs_reconcile": "yellow",
    "indeterminate": "magenta",
    "withdrawn": "bright_black",
}

SYMBOLS = {
    "pending": "○",
    "scheduled": "◌",
    "running": "▸",
    "waiting": "◷",
    "paused": "‖",
    "completed": "✓",
    "failed": "✗",
    "cancelled": "⊘",
    "skipped": "↷",
}

_PLAIN_SYMBOLS = {
    "pending": ".",
    "scheduled": ":",
    "running": ">",
    "waiting": "~",
    "paused": "=",
    "completed": "+",
    "failed": "x",
    "cancelled": "/",
    "skipped": "-",
}

LEVELS = {"ok": "green", "warn": "yellow", "fail": "red"}


def colour(state: str) -> str:
    """The colour of a state; none for one that is not known."""
    return STATES.get(state, "")


def symbol(state: str, *, wide: bool) -> str:
    """The symbol of a state; `wide` says that the output can hold more than ASCII."""
    return (SYMBOLS if wide else _PLAIN_SYMBOLS).get(state, "?")
