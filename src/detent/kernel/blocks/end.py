"""end: the end of a plan's run, with its outcome; the graph around it finds no way further."""

from __future__ import annotations

from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import DONE
from detent.model.snapshot import Frame


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Keep the outcome."""
    run.snapshot.outcome = node.block.outcome
    run.put_output(node.id, {"outcome": node.block.outcome})
    return DONE


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """An end never stands; entered again it ends again."""
    return enter(run, node, frame, path)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Nothing remains of it."""
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It is entered afresh."""
    return False
