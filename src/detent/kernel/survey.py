"""What a snapshot amounts to: the state it shows and the tick at which it must be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from detent.kernel.ledger import effect_due
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.run import in_line
from detent.model.snapshot import Frame, OpenEffect, Snapshot, Wait

NEVER = 1 << 62  # later than any tick
# running > scheduled > waiting, as in CORE-STM-1
RANK = {"": 0, "waiting": 1, "scheduled": 2, "running": 3}
SHOWN: dict[str, str] = {
    "effect": "running",
    "sleep": "running",
    "delay": "scheduled",
    "retry": "scheduled",
    "defer": "scheduled",
    "poll": "scheduled",
    "start": "scheduled",
    "later": "scheduled",  # put off by a person, whatever it does
    "timer": "waiting",
    "signal": "waiting",
    "human": "waiting",
    "event": "waiting",
    "child": "waiting",
    "decision": "waiting",
    "worker": "waiting",
    "cron": "waiting",
    "service": "waiting",  # one of the engine's own instances, between two changes
    "window": "scheduled",
    "gate": "scheduled",
    "slot": "scheduled",
}


class Due(NamedTuple):
    """Something that fires at a tick: a wait, a step's deadline, an alert, or an effect."""

    tick: int
    what: str  # wait | deadline | alert | effect
    frame: Frame | None
    effect: OpenEffect | None


def shown_state(snapshot: Snapshot) -> str:
    """The state an instance shows while it stands at this frontier."""
    root = snapshot.root
    best = "" if root is None else _highest(root, "")
    return best or "running"


def _highest(frame: Frame, best: str) -> str:
    """The highest state that the waits at and below a frame show, and one found before."""
    wait = frame.wait
    if wait is not None and RANK[SHOWN[wait.kind]] > RANK[best]:
        best = SHOWN[wait.kind]
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            best = _highest(lane.open, best)
    return best


def next_due(snapshot: Snapshot, tick: int) -> int | None:
    """The earliest tick at which something fires, or None."""
    return tick if snapshot.more else earliest_due(snapshot)


def due_at(snapshot: Snapshot, tick: int) -> Due:
    """What is due at a tick; of equals, the first in the tree."""
    return next(due for due in dues_of(snapshot) if due.tick == tick)


def earliest_due(snapshot: Snapshot) -> int | None:
    """The same walk as `dues_of` for its smallest tick alone: every step asks twice."""
    earliest = NEVER
    root = snapshot.root
    if root is not None and snapshot.state not in TERMINAL:
        if snapshot.state != "paused" and not (root.wait is not None and in_line(snapshot)):
            earliest = _frame_earliest(root, NEVER)
        else:
            earliest = min((due.tick for due in _held_dues(snapshot, root)), default=NEVER)
    for effect in snapshot.effects:
        tick = effect.deadline if effect.next_try is None else effect.next_try  # `effect_due`
        if tick is not None and tick < earliest:
            earliest = tick
    return None if earliest == NEVER else earliest


def _frame_earliest(frame: Frame, earliest: int) -> int:
    wait = frame.wait
    if wait is not None and wait.due is not None and wait.due < earliest:
        earliest = wait.due
    if frame.deadline is not None and frame.deadline < earliest:
        earliest = frame.deadline
    if frame.alert is not None and frame.alert < earliest:
        earliest = frame.alert
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            earliest = _frame_earliest(lane.open, earliest)
    return earliest


def dues_of(snapshot: Snapshot) -> Iterator[Due]:
    """Everything with a due tick, in tree order; the waits of a held instance stand still."""
    root = snapshot.root
    if root is not None and snapshot.state not in TERMINAL:
        yield from _frame_dues(root) if _moving(snapshot) else _held_dues(snapshot, root)
    for effect in snapshot.effects:
        tick = effect_due(effect)
        if tick is not None:
            yield Due(tick, "effect", None, effect)


def _moving(snapshot: Snapshot) -> bool:
    """Whether waits fire: not in a pause, nor in line for the concurrency key, nor put off."""
    return snapshot.state != "paused" and not in_line(snapshot)


def _held_dues(snapshot: Snapshot, root: Frame) -> Iterator[Due]:
    """What fires all the same: the end of the time it was put off for, and alerts."""
    wait = root.wait
    if snapshot.state != "paused" and wait is not None and wait.due is not None:
        yield Due(wait.due, "wait", root, None)
    for due in _frame_dues(root):
        if due.what == "alert":
            yield due


def _frame_dues(frame: Frame) -> Iterator[Due]:
    if frame.wait is not None and frame.wait.due is not None:
        yield Due(frame.wait.due, "wait", frame, None)
    if frame.deadline is not None:
        yield Due(frame.deadline, "deadline", frame, None)
    if frame.alert is not None:
        yield Due(frame.alert, "alert", frame, None)
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


def unsettled(snapshot: Snapshot, prefix: str) -> bool:
    """Whether a call at or below a node is still open and not with a person."""
    return any(
        effect.state != "indeterminate" and _below(effect.node, prefix)
        for effect in snapshot.effects
    )


def _below(node: str, prefix: str) -> bool:
    return node.startswith(prefix) and (
        len(node) == len(prefix) or prefix == "" or node[len(prefix)] in "/[?"
    )
