"""The page of life cycles: the literal tables of the kernel, as tables and as DOT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from detent.kernel import lifecycle
from detent.kernel.survey import RANK, SHOWN
from pages.markdown import code, document, fenced, table

_OPENING = """\
Each life cycle is one literal table in `kernel/lifecycle.py`. A move that is not in its table does
not exist: a command that asks for it is refused with `instance.transition` and nothing changes; a
move of an effect that is not in its table is a broken invariant and quarantines the instance. The
text in DOT can be drawn by Graphviz."""

_SHOWN = """\
An instance with several open branches shows the highest of these: running, then scheduled, then
waiting."""

_INSTANCE = {
    "scheduled": "Created and not started yet, or due at an instant: a delay, a retry, a deferral.",
    "running": "Moving, or a call of it is under way, or it sleeps.",
    "waiting": "Stands until a timer, a signal, a person, a child, or a decision about a doubt.",
    "paused": "Stands until it is resumed; waits keep their due tick.",
    "failed": "Ended with an error; a retry goes on from the failed nodes.",
    "completed": "Ended; final.",
    "cancelled": "Ended by a cancel; final.",
}

_EFFECT = {
    "planned": "Committed with the decision. With a start mark: certainly not called yet.",
    "in_flight": "Its start mark is committed; the call may have been made.",
    "needs_reconcile": "In doubt; the engine tries to find out.",
    "indeterminate": "In doubt; a person must decide.",
    "applied": "Happened, with a result.",
    "failed": "Certainly did not happen.",
    "skipped": "A person chose to pass it over, undecided.",
    "withdrawn": "Its node was cancelled before it was called.",
}

_NODE = {
    "pending": "Not reached yet.",
    "running": "Entered and moving, or a call of it is under way.",
    "waiting": "Stands at a wait.",
    "completed": "Ended well.",
    "failed": "Ended with an error.",
    "cancelled": "Ended by a cancel, or lost a race.",
    "skipped": "Passed over: its condition, a branch not taken, or a policy.",
}


def page(root: Path) -> str:  # noqa: ARG001 - every page is made from the root
    """Make the page."""
    parts = [_OPENING]
    for title, moves, meanings in (
        ("Instance", lifecycle.INSTANCE, _INSTANCE),
        ("Effect", lifecycle.EFFECT, _EFFECT),
        ("Node of the execution tree", lifecycle.NODE, _NODE),
    ):
        parts += [f"## {title}", _moves(moves, meanings), fenced(dot(title, moves), "dot")]
    shown = sorted(SHOWN.items(), key=lambda pair: (-RANK[pair[1]], pair[0]))
    parts += [
        "## Which state a wait shows",
        _SHOWN,
        table(("Wait", "State"), [(code(kind), state) for kind, state in shown]),
    ]
    return document("Life cycles", *parts)


def _moves(moves: Mapping[str, frozenset[str]], meanings: Mapping[str, str]) -> str:
    rows = [
        (code(source), meanings[source], ", ".join(ordered(moves, source)) or "nothing: final")
        for source in moves
    ]
    return table(("State", "Meaning", "Can become"), rows)


def ordered(moves: Mapping[str, frozenset[str]], source: str) -> list[str]:
    """List the targets of a state in the order of the table."""
    return [state for state in moves if state in moves[source]]


def dot(title: str, moves: Mapping[str, frozenset[str]]) -> str:
    """Write a table as a DOT graph."""
    name = title.split(maxsplit=1)[0].lower()
    edges = [f"  {source} -> {target};" for source in moves for target in ordered(moves, source)]
    final = [f"  {state} [peripheries=2];" for state in moves if not moves[state]]
    return "\n".join([f"digraph {name} {{", "  rankdir=LR;", *final, *edges, "}"])
