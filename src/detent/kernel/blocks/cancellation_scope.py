"""cancellation_scope: a body that a cancel does not touch; the cancel takes effect afterwards."""

from __future__ import annotations

from detent.kernel.blocks.body import renew, resume
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.snapshot import Frame, Lane

__all__ = ["cancel", "enter", "renew", "resume"]


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Run the body."""
    frame.lanes = [Lane()]
    return resume(run, node, frame, path)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Not now: the body runs to its end first."""
    return False
