"""goto: leave the present node of the nearest graph for another."""

from __future__ import annotations

from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import GOTO
from detent.model.snapshot import Frame


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Name the target; the graph above takes it."""
    run.goto = node.block.to
    return GOTO


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """A goto never stands; entered again it goes again."""
    return enter(run, node, frame, path)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Nothing remains of it."""
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It is entered afresh."""
    return False
