"""saga: actions in order; on failure or cancel, compensations of the completed ones in reverse.

Compensation starts only when every effect of the saga is settled or with a person: an action that
may still happen cannot be undone.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.failure import failure_from
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.survey import unsettled
from detent.kernel.walk import DONE, FAILED, GOTO, STOPPED, WAIT, cancel_lanes, run_lane
from detent.model.snapshot import Frame, Lane


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """`n` is the action under way, later the compensation; the lists alternate between both."""
    frame.lanes = [Lane(i=0)]
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Act forward until one fails, then backward."""
    if frame.phase == "":
        status = _forward(run, node, frame, path)
        if status != FAILED:
            return status
    if frame.phase == "settle":
        if unsettled(run.snapshot, path):
            return WAIT
        frame.phase = "compensate"
        frame.n -= 1
        frame.lanes = [Lane(i=2 * frame.n + 1)] if frame.n >= 0 else []
    return _backward(run, node, frame, path)


def _forward(run: Run, node: Node, frame: Frame, path: str) -> int:
    while frame.n < len(node.block.steps):
        lane = frame.lanes[0]
        status = (
            STOPPED
            if lane.end == "cancelled"
            else run_lane(run, lane, node.lists[lane.i], f"{path}/", frame.stop)
        )
        if status in (WAIT, GOTO):
            return status
        if status != DONE:
            _turn_round(run, node, frame, path)
            return FAILED
        frame.n += 1
        frame.lanes = [Lane(i=2 * frame.n)]
        if frame.stop and frame.n < len(node.block.steps):
            _turn_round(run, node, frame, path)
            return FAILED
    return DONE


def _turn_round(run: Run, node: Node, frame: Frame, path: str) -> None:
    failed = node.block.steps[frame.n].id
    error: dict[str, Any] = {"failed_step": failed, "source": "saga", "block_id": node.id}
    if run.failure is not None and not frame.stop:
        frame.v = run.failure.plain()
        error["message"] = run.failure.message
    run.merge({"_error": error})
    run.note("saga.compensating", path, {"failed": failed, "completed": frame.n})
    frame.phase = "settle"
    frame.lanes = []


def _backward(run: Run, node: Node, frame: Frame, path: str) -> int:
    while frame.n >= 0:
        lane = frame.lanes[0]
        status = run_lane(run, lane, node.lists[lane.i], f"{path}/", False)
        if status == WAIT:
            return WAIT
        if status == FAILED and run.failure is not None:
            run.note(
                "saga.uncompensated",
                path,
                {"step": node.block.steps[frame.n].id, "why": run.failure.message},
            )
        frame.n -= 1
        frame.lanes = [Lane(i=2 * frame.n + 1)] if frame.n >= 0 else []
    if frame.v is None:
        return STOPPED
    run.failure = failure_from(frame.v)
    return FAILED


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Stop acting; what was done is compensated before the cancel ends."""
    frame.stop = True
    if frame.phase == "":
        cancel_lanes(run, frame, f"{path}/")
    return False


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """A compensated saga starts over."""
    return False
