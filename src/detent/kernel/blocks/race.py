"""race: the first branch to resolve, or to succeed, decides; the others are cancelled."""

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
    """Open one lane per branch; once decided `v` is {"won": i}, {"failed": …} or {"goto": …}."""
    frame.lanes = [Lane(i=index) for index in range(len(node.lists))]
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Advance the branches; when one decides, cancel the rest and let them drain."""
    return WAIT if _advance(run, node, frame, path) else _end(run, frame)


def _advance(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Run each open branch as far as it goes; whether one still stands."""
    waiting = False
    for lane in frame.lanes:
        if lane.end:
            continue
        status = run_lane(run, lane, node.lists[lane.i], f"{path}/", frame.stop)
        if status == WAIT:
            waiting = True
        elif not frame.stop and _decides(run, node, frame, lane, status):
            run.note("race.decided", path, {"branch": lane.i, "ended": lane.end})
            cancel_lanes(run, frame, f"{path}/")
            return _advance(run, node, frame, path)  # what may not be stopped drains first
    return waiting


def _decides(run: Run, node: Node, frame: Frame, lane: Lane, status: int) -> bool:
    if status == DONE:
        frame.v = {"won": lane.i}
        return True
    if status == GOTO:
        frame.v = {"goto": run.goto}
        return True
    if status != FAILED or run.failure is None:
        return False
    last = all(other.end for other in frame.lanes)
    if node.block.semantics == "first_to_resolve" or last:
        frame.v = {"failed": run.failure.plain()}
        return True
    return False


def _end(run: Run, frame: Frame) -> int:
    if frame.v is None:
        return STOPPED
    if "won" in frame.v:
        return DONE
    if "goto" in frame.v:
        run.goto = frame.v["goto"]
        return GOTO
    run.failure = failure_from(frame.v["failed"])
    return FAILED


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """The branches that failed go on; the losers were cancelled and stay so."""
    frame.v = None
    frame.stop = False
    renew_lanes(run, frame)
    return True
