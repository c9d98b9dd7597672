"""parallel: all branches advance on their own; a failing one lets the others finish."""

from __future__ import annotations

from detent.kernel.blocks.body import cancel
from detent.kernel.failure import failure_from
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import (
    DONE,
    FAILED,
    GOTO,
    STOPPED,
    WAIT,
    cancel_lanes,
    renew_lanes,
    run_lane,
)
from detent.model.snapshot import Frame, Lane

__all__ = ["cancel", "enter", "renew", "resume"]


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Open one lane per branch; `v` is the first failure, or {"goto": target}."""
    frame.lanes = [Lane(i=index) for index in range(len(node.lists))]
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Advance every open branch; end when all have."""
    if _advance(run, node, frame, path):
        return WAIT
    if frame.v is not None and "goto" in frame.v:
        run.goto = frame.v["goto"]
        return GOTO
    if frame.stop:
        return STOPPED
    if frame.v is not None:
        run.failure = failure_from(frame.v)
        return FAILED
    return DONE


def _advance(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Run each open branch as far as it goes; whether one still stands."""
    waiting = False
    for lane in frame.lanes:
        if lane.end:
            continue
        status = run_lane(run, lane, node.lists[lane.i], f"{path}/", frame.stop)
        if status == WAIT:
            waiting = True
        elif frame.v is not None or frame.stop:
            continue
        elif status == FAILED and run.failure is not None:
            frame.v = run.failure.plain()
        elif status == GOTO:
            frame.v = {"goto": run.goto}
            cancel_lanes(run, frame, f"{path}/")
            return _advance(run, node, frame, path)  # what may not be stopped drains first
    return waiting


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Forget the failure and go on in the branches that failed."""
    frame.v = None
    frame.stop = False
    renew_lanes(run, frame)
    return True
