"""router: the first route whose condition holds, else the default, else nothing."""

from __future__ import annotations

from detent.kernel.blocks.body import cancel, renew, resume
from detent.kernel.blocks.conditions import fail_expression, holds
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import FAILED
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame, Lane

__all__ = ["cancel", "enter", "renew", "resume"]


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Choose a route once, then run it."""
    chosen = len(node.conditions)
    try:
        for index, condition in enumerate(node.conditions):
            if holds(run, condition):
                chosen = index
                break
    except ExpressionError as error:
        fail_expression(run, path, node.id, error)
        return FAILED
    run.note("step.evaluated", path, {"route": chosen})
    frame.lanes = [Lane(i=chosen)]
    return resume(run, node, frame, path)
