"""What block kinds with one running body share: run it, end as it ends, cancel it, renew it."""

from __future__ import annotations

from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import cancel_lanes, renew_lanes, run_lane
from detent.model.snapshot import Frame


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Run the only lane; the block ends as its body ends."""
    lane = frame.lanes[0]
    return run_lane(run, lane, node.lists[lane.i], f"{path}/", frame.stop)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel everything open below."""
    return cancel_lanes(run, frame, f"{path}/")


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Go on from the failed nodes below."""
    frame.stop = False
    renew_lanes(run, frame)
    return True
