"""try_catch: try, on failure catch, always finally, also when cancelled."""

from __future__ import annotations

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

TRY, CATCH, FINALLY = 0, 1, 2


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Start with the try list.

    While finally runs, `v` keeps what follows it: the failure of catch, whose lane is kept too, or
    {"goto": target}.
    """
    frame.lanes = [Lane(i=TRY)]
    return resume(run, node, frame, path)


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Run the present list and move on to the next one."""
    while True:
        lane = frame.lanes[-1]
        if not lane.end:
            stop = frame.stop and lane.i != FINALLY
            status = run_lane(run, lane, node.lists[lane.i], f"{path}/", stop)
            if status == WAIT:
                return WAIT
            if status == GOTO and not frame.stop:
                frame.v = {"goto": run.goto}
        following = _next(run, node, frame, lane)
        if following is None:
            return _end(run, frame, lane)
        kept = [lane] if lane.end == "failed" and frame.v is not None else []
        frame.lanes = [*kept, Lane(i=following)]


def _next(run: Run, node: Node, frame: Frame, lane: Lane) -> int | None:
    if lane.i == FINALLY:
        return None
    failed = lane.end == "failed" and not frame.stop
    if failed and run.failure is not None:
        if lane.i == TRY:
            run.merge(
                {
                    "_error": {
                        "failed_blocks": [run.failure.block],
                        "source": "try_catch",
                        "block_id": node.id,
                        "message": run.failure.message,
                        "kind": run.failure.kind,
                    }
                }
            )
            run.note("error.caught", run.failure.node, {"by": node.id})
            return CATCH
        frame.v = run.failure.plain()
    return FINALLY if node.lists[FINALLY] else None


def _end(run: Run, frame: Frame, lane: Lane) -> int:
    if lane.i == FINALLY and lane.end == "failed":
        return FAILED
    if frame.stop:
        return STOPPED
    if frame.v is not None and "goto" in frame.v:
        run.goto = frame.v["goto"]
        return GOTO
    if frame.v is not None:
        run.failure = failure_from(frame.v)
        return FAILED
    return DONE if lane.end == "completed" else FAILED


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel try or catch; finally still runs, and is never touched."""
    if frame.lanes[-1].i == FINALLY:
        frame.stop = True
        return False
    gone = cancel_lanes(run, frame, f"{path}/")
    return gone and not node.lists[FINALLY]


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """Go on in the list that failed; finally follows a renewed catch once more."""
    if frame.v is not None and "goto" not in frame.v:
        frame.lanes = frame.lanes[:1]
        frame.v = None
    frame.stop = False
    renew_lanes(run, frame)
    return True
