"""loop: repeat the body while the condition holds, up to a cap that ends it normally."""

from __future__ import annotations

from detent.kernel.blocks.conditions import fail_expression, holds
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
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame, Lane


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """`n` is the iteration; no lane means the condition is to be checked."""
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Check, run the body, check again."""
    if frame.wait is not None:
        if frame is not run.woken:
            return WAIT
        run.woken = None
        frame.wait = None
    try:
        return _iterate(run, node, frame, path)
    except ExpressionError as error:
        fail_expression(run, path, node.id, error)
        return FAILED


def _iterate(run: Run, node: Node, frame: Frame, path: str) -> int:
    while True:
        if not frame.lanes:
            if run.held:
                return WAIT
            if run.moves <= 0:
                run.more = True
                return WAIT
            run.moves -= 1
            if frame.n >= node.block.max_iterations or not holds(run, node.conditions[0]):
                return _finish(run, node, frame, path)
            frame.lanes = [Lane()]
        status = run_lane(run, frame.lanes[0], node.lists[0], f"{path}[{frame.n}]/", frame.stop)
        if status == WAIT:
            return WAIT
        if status in (STOPPED, GOTO):
            return status
        if status == FAILED and not node.block.continue_on_error:
            return FAILED
        ended = _after_body(run, node, frame, path)
        if ended is not None:
            return ended


def _after_body(run: Run, node: Node, frame: Frame, path: str) -> int | None:
    frame.n += 1
    frame.lanes = []
    if frame.stop:
        return STOPPED
    if node.conditions[1] is not None and holds(run, node.conditions[1]):
        return _finish(run, node, frame, path)
    if node.block.poll_interval:
        run.wait(frame, path, "poll", run.after(node.block.poll_interval * 1000))
        return WAIT
    return None


def _finish(run: Run, node: Node, frame: Frame, path: str) -> int:
    output = {"_iterations": frame.n}
    run.put_output(node.id, output)
    run.note("step.evaluated", path, {"output": output})
    return DONE


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel the iteration under way."""
    frame.wait = None
    return cancel_lanes(run, frame, f"{path}[{frame.n}]/")


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Go on in the iteration that failed."""
    frame.stop = False
    renew_lanes(run, frame)
    return True
