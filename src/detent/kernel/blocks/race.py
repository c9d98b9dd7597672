"""race: the first branch to resolve, or to succeed, decides; the others are cancelled."""

from __future__ import annotations

from detent.kernel.blocks.body import cancel, leave
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
    """Open one lane per branch; `v` is {"won": i} or {"failed": failure} once decided."""
    frame.lanes = [Lane(i=index) for index in range(len(node.lists))]
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Advance the branches; when one decides, cancel the rest and let them drain."""
    prefix = f"{path}/"
    waiting = False
    for lane in frame.lanes:
        if lane.end:
            continue
        status = run_lane(run, lane, node.lists[lane.i], prefix, frame.stop)
        if status == WAIT:
            waiting = True
        elif status == GOTO:
            return leave(run, frame, prefix)
        elif frame.v is None and not frame.stop and _decides(run, node, frame, lane, status):
            run.note("race.decided", path, {"branch": lane.i, "ended": lane.end})
            waiting = not cancel_lanes(run, frame, prefix)
            break
    if waiting:
        return WAIT
    return _end(run, frame)


def _decides(run: Run, node: Node, frame: Frame, lane: Lane, status: int) -> bool:
    if status == DONE:
        frame.v = {"won": lane.i}
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
    run.failure = failure_from(frame.v["failed"])
    return FAILED


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """All branches that did not complete go on from where they were."""
    frame.v = None
    frame.stop = False
    renew_lanes(run, frame)
    return True
