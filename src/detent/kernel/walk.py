"""The interpreter: lanes run blocks in order, frames remember where they stand.

Theory of operation. A *frame* is an open node; a *lane* is a cursor over one list of blocks of its
frame. `run_lane` enters block after block until one must wait, fails, or the list ends. A block
kind is a module with four functions, found in `blocks.KINDS`:

    enter(run, node, frame, path)   first visit; returns a status
    resume(run, node, frame, path)  go on after something below, or the frame itself, was woken
    cancel(run, node, frame, path)  ask it to end; True when nothing of it remains
    renew(run, node, frame)         make a failed frame ready for a retry; False: enter it afresh

Statuses: WAIT (stands, keep the frame), DONE, FAILED (`run.failure` says why), STOPPED (was
cancelled), GOTO (`run.goto` names a node of the nearest graph; a block with more than one open list
first cancels the others and lets them drain). A frame that failed is kept below its lane, so that a
retry goes on from the failed nodes and repeats nothing completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from detent.model.snapshot import Frame, Lane

if TYPE_CHECKING:
    from detent.kernel.program import Node
    from detent.kernel.run import Run

WAIT: Final = 0
DONE: Final = 1
FAILED: Final = 2
STOPPED: Final = 3
GOTO: Final = 4

KINDS: dict[str, Any] = {}  # filled by detent.kernel.blocks

_ENDS = {DONE: "completed", FAILED: "failed", STOPPED: "cancelled", GOTO: "completed"}


def run_lane(run: Run, lane: Lane, nodes: list[Node], prefix: str, stop: bool) -> int:
    """Run a list of blocks until it waits or ends; with `stop`, let the open one drain only."""
    while True:
        frame = lane.open
        if frame is None:
            if stop:
                lane.end = "cancelled"
                return STOPPED
            if run.relisted:
                return WAIT
            if lane.at >= len(nodes):
                lane.end = "completed"
                return DONE
            if run.held:
                return WAIT
            if run.moves <= 0:
                run.more = True
                return WAIT
            run.moves -= 1
            node = nodes[lane.at]
            lane.open = frame = Frame(b=node.key, since=run.tick)
            path = prefix + node.id
            if node.kind != "step":
                run.entries.append(("block.entered", path, {"kind": node.kind}))
            status: int = KINDS[node.kind].enter(run, node, frame, path)
        else:
            node = run.program.nodes[frame.b]
            path = prefix + node.id
            status = KINDS[node.kind].resume(run, node, frame, path)
        if status == WAIT:
            return WAIT
        if node.kind != "step":
            run.entries.append((f"block.{_ENDS[status]}", path))
        if status == DONE:
            lane.open = None
            lane.at += 1
            continue
        if status != FAILED:
            lane.open = None  # a failed frame is kept for a retry
        lane.end = _ENDS[status]
        return status


def cancel_lanes(run: Run, frame: Frame, prefix: str) -> bool:
    """Ask every open lane of a frame to end; True when none is left."""
    frame.stop = True
    gone = True
    for lane in frame.lanes:
        if lane.end:
            continue
        if lane.open is None or cancel_frame(run, lane.open, prefix):
            lane.open = None
            lane.end = "cancelled"
        else:
            gone = False
    return gone


def cancel_frame(run: Run, frame: Frame, prefix: str) -> bool:
    """Ask one frame to end; True when nothing of it remains."""
    node = run.program.nodes[frame.b]
    path = prefix + node.id
    gone: bool = KINDS[node.kind].cancel(run, node, frame, path)
    if gone:
        run.note("step.cancelled" if node.kind == "step" else "block.cancelled", path)
    return gone


def renew_lanes(run: Run, frame: Frame) -> None:
    """Make every failed lane ready to go on where it failed; what was cancelled stays so."""
    for lane in frame.lanes:
        if lane.end != "failed":
            continue
        lane.end = ""
        child = lane.open
        if child is not None:
            node = run.program.nodes[child.b]
            if not KINDS[node.kind].renew(run, node, child):
                lane.open = None
