"""graph: named nodes with explicit transitions; the first edge whose condition holds is taken.

`phase` is the present node's name and `n` the visit, which rises with every node entered, so that
two visits of one node are two places in the ledger. A plan is a graph whose exits are looked at
before each node is entered, and which remembers how each ended.
"""

from __future__ import annotations

from detent.kernel import plans
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
    """Begin at the start node."""
    try:
        if run.program.exits and plans.exits(run):
            return DONE
    except ExpressionError as error:
        fail_expression(run, path, node.id, error)
        return FAILED
    _visit(run, node, frame, path, node.block.start)
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Run the present node's blocks, then follow an edge."""
    while True:
        lane = frame.lanes[0]
        prefix = f"{path}[{frame.n}:{frame.phase}]/"
        status = run_lane(run, lane, node.lists[lane.i], prefix, frame.stop)
        if status not in (DONE, GOTO):
            return status
        if frame.stop:
            return STOPPED
        try:
            target = run.goto if status == GOTO else _follow(run, node, frame.phase)
            if run.program.is_plan and _plan_ends(run, node, frame, path, target):
                return DONE
        except ExpressionError as error:
            fail_expression(run, path, node.id, error)
            return FAILED
        if not target:
            return DONE
        frame.n += 1
        _visit(run, node, frame, path, target)
        run.moves -= 1
        if run.moves <= 0:
            run.more = True
            return WAIT


def _plan_ends(run: Run, node: Node, frame: Frame, path: str, target: str) -> bool:
    """A step of a plan was left: whether the run ends here, or before its next step."""
    if not node.lists[frame.lanes[0].i] and target:
        plans.choose(run, frame.phase, target)
    plans.leave_step(run, frame.phase, path, frame.n)
    if target:
        return bool(run.program.exits) and plans.exits(run)
    plans.finish(run)
    return True


def _visit(run: Run, node: Node, frame: Frame, path: str, name: str) -> None:
    frame.phase = name
    frame.lanes = [Lane(i=node.names[name])]
    run.note("step.evaluated", path, {"node": name, "visit": frame.n})


def _follow(run: Run, node: Node, name: str) -> str:
    for edge, condition in zip(node.block.transitions, node.conditions, strict=True):
        if edge.origin == name and (edge.when is None or holds(run, condition)):
            return str(edge.to)
    return ""


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel the present node's blocks."""
    return cancel_lanes(run, frame, f"{path}[{frame.n}:{frame.phase}]/")


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Go on in the node that failed, unless none was entered."""
    if not frame.lanes:
        return False
    frame.stop = False
    renew_lanes(run, frame)
    return True
