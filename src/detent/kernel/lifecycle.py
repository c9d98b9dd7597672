"""Every life cycle as one literal table; a missing key is an illegal move.

The diagrams in the docs are generated from these tables. Nothing else in the engine may change a
state: every change goes through `check_move` or `check_effect`.
"""

from __future__ import annotations

from detent.model.errors import InvariantViolation

TERMINAL = frozenset({"completed", "failed", "cancelled"})

INSTANCE: dict[str, frozenset[str]] = {
    "scheduled": frozenset({"running", "paused", "cancelled"}),
    "running": frozenset({"scheduled", "waiting", "paused", "completed", "failed", "cancelled"}),
    "waiting": frozenset({"running", "scheduled", "failed", "cancelled"}),
    "paused": frozenset({"scheduled", "cancelled"}),
    "failed": frozenset({"scheduled"}),  # only by an explicit retry or resolution
    "completed": frozenset(),
    "cancelled": frozenset(),
}

EFFECT: dict[str, frozenset[str]] = {
    # an unmarked effect has no start mark, so it settles straight from planned
    "planned": frozenset({"in_flight", "withdrawn", "applied", "failed", "needs_reconcile"}),
    "in_flight": frozenset({"applied", "failed", "needs_reconcile", "indeterminate"}),
    "needs_reconcile": frozenset({"applied", "failed", "needs_reconcile", "indeterminate"}),
    "indeterminate": frozenset({"needs_reconcile", "failed", "applied", "skipped"}),
    "applied": frozenset(),
    "failed": frozenset(),
    "skipped": frozenset(),
    "withdrawn": frozenset(),
}

NODE: dict[str, frozenset[str]] = {
    "pending": frozenset({"running", "skipped", "cancelled"}),
    "running": frozenset({"waiting", "completed", "failed", "cancelled", "skipped"}),
    "waiting": frozenset({"running", "completed", "failed", "cancelled", "skipped"}),
    "completed": frozenset({"running"}),  # a further visit in a loop or graph
    "failed": frozenset({"running"}),  # a retry of the instance
    "cancelled": frozenset({"running"}),
    "skipped": frozenset({"running"}),
}


def check_move(source: str, target: str) -> None:
    """Fail unless an instance may go from one state to the other.

    What a caller asks for is refused before anything changes; this catches the engine itself.
    """
    if target not in INSTANCE[source]:
        raise InvariantViolation(f"an instance has no move from {source} to {target}")


def check_effect(source: str, target: str) -> None:
    """Fail unless the ledger has that move."""
    if target not in EFFECT[source]:
        raise InvariantViolation(f"the ledger has no move from {source} to {target}")
