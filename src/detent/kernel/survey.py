"""What a snapshot amounts to: the state it shows and the tick at which it must be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from detent.kernel.ledger import effect_due
from detent.kernel.lifecycle import TERMINAL
from detent.model.snapshot import Frame, OpenEffect, Snapshot, Wait

# running > scheduled > waiting, as in CORE-STM-1
RANK = {"waiting": 0, "scheduled": 1, "running": 2}
SHOWN: dict[str, str] = {
    "effect": "running",
    "sleep": "running",
    "delay": "scheduled",
    "retry": "scheduled",
    "defer": "scheduled",
    "poll": "scheduled",
    "start": "scheduled",
    "timer": "waiting",
    "signal": "waiting",
    "human": "waiting",
    "child": "waiting",
    "decision": "waiting",
}


class Due(NamedTuple):
    """Something that fires at a tick: a wait, a step's deadline, or an effect."""

    tick: int
    what: str  # wait | deadline | effect
    frame: Frame | None
    effect: OpenEffect | None


def shown_state(snapshot: Snapshot) -> str:
    """The state an instance shows while it stands at this frontier."""
    best = -1
    for wait in waits_of(snapshot.root):
        rank = RANK[SHOWN[wait.kind]]
        if rank == RANK["running"]:
            return "running"
        best = max(best, rank)
    if best < 0:
        return "running"
    return "scheduled" if best == RANK["scheduled"] else "waiting"


def next_due(snapshot: Snapshot, tick: int) -> int | None:
    """The earliest tick at which something fires, or None."""
    if snapshot.more:
        return tick
    earliest: int | None = None
    for due in dues_of(snapshot):
        if earliest is None or due.tick < earliest:
            earliest = due.tick
    return earliest


def first_due(snapshot: Snapshot, limit: int) -> Due | None:
    """The first thing due at or before a tick; of equals, the first in the tree."""
    first: Due | None = None
    for due in dues_of(snapshot):
        if due.tick <= limit and (first is None or due.tick < first.tick):
            first = due
    return first


def dues_of(snapshot: Snapshot) -> Iterator[Due]:
    """Everything with a due tick, in tree order; a paused instance's waits stand still."""
    moving = snapshot.state != "paused" and snapshot.state not in TERMINAL
    if moving and snapshot.root is not None:
        yield from _frame_dues(snapshot.root)
    for effect in snapshot.effects:
        tick = effect_due(effect)
        if tick is not None:
            yield Due(tick, "effect", None, effect)


def _frame_dues(frame: Frame) -> Iterator[Due]:
    if frame.wait is not None and frame.wait.due is not None:
        yield Due(frame.wait.due, "wait", frame, None)
    if frame.deadline is not None:
        yield Due(frame.deadline, "deadline", frame, None)
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            yield from _frame_dues(lane.open)


def waits_of(frame: Frame | None) -> Iterator[Wait]:
    """Every wait at the frontier, in tree order."""
    if frame is None:
        return
    if frame.wait is not None:
        yield frame.wait
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            yield from waits_of(lane.open)
