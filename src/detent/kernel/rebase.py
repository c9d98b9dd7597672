"""Moving a frontier in time: every tick of a snapshot shifted by the same number.

A fork goes on from a row of the past as if that row were now: a timer that had three days left then
has three days left. So the snapshot travels with ticks counted from its row, and is given the tick
of its birth.
"""

from __future__ import annotations

from detent.model.snapshot import Frame, Snapshot


def rebase(snapshot: Snapshot, by: int) -> None:
    """Shift every tick of the working copy."""
    snapshot.created += by
    if snapshot.started is not None:
        snapshot.started += by
    if snapshot.ended is not None:
        snapshot.ended += by
    for kept in snapshot.signals:
        kept.tick += by
    for effect in snapshot.effects:
        effect.since += by
        if effect.deadline is not None:
            effect.deadline += by
        if effect.next_try is not None:
            effect.next_try += by
    if snapshot.root is not None:
        _frame(snapshot.root, by)


def _frame(frame: Frame, by: int) -> None:
    frame.since += by
    if frame.deadline is not None:
        frame.deadline += by
    if frame.alert is not None:
        frame.alert += by
    if frame.wanted is not None:
        frame.wanted += by
    if frame.wait is not None:
        frame.wait.since += by
        if frame.wait.due is not None:
            frame.wait.due += by
    for lane in frame.lanes:
        if lane.open is not None:
            _frame(lane.open, by)
