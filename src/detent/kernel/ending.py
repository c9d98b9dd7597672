"""The root of an instance: runs the main list, then clean-up, and ends it.

Root phases: "" (the definition's blocks), "on_failure" and "on_cancel" (clean-up, each block once,
errors swallowed), "settling" (a cancel waits until every effect is settled or with a person). The
main lane is kept while the failure clean-up runs and after it, so that a retry can go on from
there.
"""

from __future__ import annotations

from detent.kernel import intercept
from detent.kernel.lifecycle import INSTANCE
from detent.kernel.program import ON_CANCEL, ON_FAILURE, Node
from detent.kernel.run import Run, in_line
from detent.kernel.slot import wake_up
from detent.kernel.survey import unsettled
from detent.kernel.walk import DONE, FAILED, STOPPED, WAIT, cancel_lanes, run_lane
from detent.model.decision import Message
from detent.model.inputs import ChildEnded, ChildRetried, encode_input
from detent.model.snapshot import Frame, Lane

_ENDED = {"completed": DONE, "failed": FAILED, "cancelled": STOPPED}


def advance(run: Run) -> None:
    """Run the instance as far as it goes."""
    _advance(run)
    while run.relisted:  # a step has put blocks in: the walk begins anew with them
        run.relisted = False
        _advance(run)


def _advance(run: Run) -> None:
    root = run.snapshot.root
    if root is None or run.snapshot.ended is not None:
        return
    if root.wait is not None and not in_line(run.snapshot):
        return
    if root.phase == "" and not _main(run, root):
        return
    if root.phase == ON_FAILURE and not _clean_up(run, root, run.program.failure):
        return
    if root.phase == ON_CANCEL and not _clean_up(run, root, run.program.cancel):
        return
    _close(run, root)


def cancel_instance(run: Run, why: str) -> None:
    """Stop everything that may be stopped; protected parts drain first."""
    snapshot = run.snapshot
    root = snapshot.root
    if root is None or root.phase not in ("", ON_FAILURE):
        return
    snapshot.cancel_requested = True
    snapshot.end_requested = ""
    snapshot.pause_requested = False
    run.held = False
    root.wait = None
    gone = cancel_lanes(run, root, f"{root.phase}/" if root.phase else "")
    if snapshot.state == "paused" and not (gone and not run.program.cancel):
        run.move("scheduled", why)
    snapshot.paused_reason = ""
    if not gone or run.program.cancel:
        wake_up(run, why)
    advance(run)


def end_instance(run: Run, end: str, why: str) -> None:
    """End as a person asked, failed or completed; what is protected drains first."""
    snapshot = run.snapshot
    root = snapshot.root
    if root is None:
        return
    snapshot.end_requested = end
    snapshot.pause_requested = False
    run.held = False
    root.wait = None
    gone = cancel_lanes(run, root, "")
    if not gone or (end == "failed" and run.program.failure):
        wake_up(run, why)
    advance(run)


def tell_of_retry(run: Run) -> None:
    """Let the schedule that started this instance count it again; nobody else waits for it."""
    snapshot = run.snapshot
    parent = snapshot.parent
    if not parent or parent["token"] > 0:
        return
    told = ChildRetried(child=snapshot.id, id=f"retried:{snapshot.id}:{snapshot.generation}")
    run.messages.append(Message(id=told.id, to=parent["instance"], body=encode_input(told)))


def _main(run: Run, root: Frame) -> bool:
    """Run the definition's blocks; True when they have ended and the end may be taken."""
    lane = root.lanes[0]
    if lane.end:
        status = _ENDED[lane.end]
    else:
        status = run_lane(run, lane, run.program.main, "", root.stop)
        if status == FAILED and run.failure is not None:
            run.snapshot.error = run.failure.plain()
    if status == WAIT or run.held:
        return False
    if status == STOPPED or root.stop:  # also when what had to drain failed
        _stopped(run, root, lane)
    elif status == FAILED:
        root.phase = ON_FAILURE
        root.lanes = [lane, Lane()]
    else:
        root.phase = "completed"
    return True


def _stopped(run: Run, root: Frame, lane: Lane) -> None:
    """Nothing runs any more: clean up after a cancel, or end as a person asked."""
    end, run.snapshot.end_requested = run.snapshot.end_requested, ""
    if end == "completed":
        root.phase = end
        return
    if end == "failed":
        root.stop = False
        lane.end = end  # so that a retry enters the block that was stopped
    root.phase = ON_FAILURE if end else ON_CANCEL
    root.lanes = [lane, Lane()]


def _clean_up(run: Run, root: Frame, nodes: list[Node]) -> bool:
    """Run a clean-up list to its end, whatever fails in it; a cancel ends that of a failure."""
    lane = root.lanes[1]
    stop = root.stop and root.phase == ON_FAILURE
    while lane.end != "completed" and not (stop and lane.end == "cancelled"):
        status = run_lane(run, lane, nodes, f"{root.phase}/", stop)
        if status == WAIT:
            return False
        if status == FAILED or (status == STOPPED and not stop):
            lane.at += 1  # best effort: the next block still runs
            lane.open, lane.end = None, ""
    if run.held:
        return False
    if stop:
        root.phase = ON_CANCEL
        root.lanes = [root.lanes[0], Lane()]
    else:
        root.phase = "failed" if root.phase == ON_FAILURE else "settling"
    return True


def _close(run: Run, root: Frame) -> None:
    if root.phase == "settling" and unsettled(run.snapshot, ""):
        return
    end = "cancelled" if root.phase == "settling" else root.phase
    snapshot = run.snapshot
    if end not in INSTANCE[snapshot.state]:
        run.set_moving("end")
    if run.program.interceptors:
        intercept.on_end(run, end)
    run.move(end, "end" if end == "completed" else end)
    if end == "failed":
        run.note("error.occurred", "", {"instance": snapshot.error})
    snapshot.ended = run.tick
    snapshot.signals = []
    snapshot.pause_requested = False
    if end == "failed":
        root.phase = ""
        root.lanes = root.lanes[:1]
    else:
        snapshot.root = None
    _tell_parent(run, end)


def _tell_parent(run: Run, end: str) -> None:
    snapshot = run.snapshot
    parent = snapshot.parent
    if not parent:
        return
    waited = parent["token"] > 0  # a schedule only counts what it started; it takes no results
    rows = [{"block_id": block, "output": output} for block, output in snapshot.outputs.items()]
    told = ChildEnded(
        child=snapshot.id,
        token=parent["token"],
        state=end,
        data=snapshot.data if waited else None,
        outputs=tuple(rows) if waited else (),
        error=snapshot.error,
        id=f"ended:{snapshot.id}:{snapshot.generation}",
    )
    run.messages.append(Message(id=told.id, to=parent["instance"], body=encode_input(told)))
