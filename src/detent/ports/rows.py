"""Rows that every adapter of the store port lays out alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.ports.store import InstanceChange


def born_row(n: int, change: InstanceChange) -> tuple[Any, ...]:
    """The columns of an instance that a turn brings into being, in the order of its table."""
    birth = change.birth
    if birth is None:  # the caller has looked; this is for the type
        return ()
    return (
        n,
        change.id,
        change.p,
        birth.tenant,
        birth.namespace,
        change.definition,
        change.state,
        change.priority,
        change.due,
        change.busy,
        birth.key,
        birth.parent,
        change.tick,
        change.tick,
        change.salt,
    )
