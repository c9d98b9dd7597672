"""Resuming: a due tick or a token finds its frame, and the instance goes on from the root."""

from __future__ import annotations

from typing import Any

from detent.kernel import alerts
from detent.kernel.ending import advance
from detent.kernel.ledger import Wake, find_frame, fire_effect
from detent.kernel.run import Run
from detent.kernel.slot import wake_up
from detent.kernel.survey import Due, due_at, earliest_due
from detent.model.snapshot import Frame


def resume(run: Run, frame: Frame, why: str, value: Any) -> None:
    """Wake one frame and run the instance to its next wait."""
    run.woken, run.woken_why, run.woken_value = frame, why, value
    if why != "deadline":
        frame.wait = None
    snapshot = run.snapshot
    if snapshot.pause_requested:
        run.held = True
    if snapshot.state != "paused":
        wake_up(run, why)
    advance(run)
    run.woken = None
    run.woken_why = ""


def resume_token(run: Run, wake: Wake | None) -> None:
    """Tell the node that waits with a token; without one, whoever waits for settling looks."""
    frame = find_frame(run.snapshot.root, wake.token) if wake is not None else None
    if wake is None or frame is None:
        advance(run)
        return
    resume(run, frame, wake.why, wake.value)


def fire_due(run: Run, limit: int) -> int | None:
    """Fire everything due up to a tick, in order of due tick, while there are moves left.

    The earliest due tick beyond the limit; None also when moves ran out before it was looked for.
    """
    while not run.more:
        earliest = earliest_due(run.snapshot)
        if earliest is None or earliest > limit:
            return earliest
        if run.moves <= 0:  # waits of no length, over and over
            run.more = True
            break
        run.moves -= 1
        _fire(run, due_at(run.snapshot, earliest))
    return None


def _fire(run: Run, due: Due) -> None:
    if due.effect is not None:
        resume_token(run, fire_effect(run, due.effect))
    elif due.frame is None:
        return
    elif due.what == "deadline":
        due.frame.deadline = None
        resume(run, due.frame, "deadline", None)
    elif due.what == "alert":
        alerts.breached(run, due.frame)
    elif due.frame is run.snapshot.root:
        _begin(run, due.frame)
    else:
        kind = due.frame.wait.kind if due.frame.wait is not None else ""
        resume(run, due.frame, "due", kind)


def _begin(run: Run, root: Frame) -> None:
    """The instance itself was to move at this tick: to start, or to go on as a person said."""
    put_off = root.wait is not None and root.wait.kind == "later"
    root.wait = None
    if put_off:
        run.note("wait.completed", "", {"kind": "later"})
        run.held = False
        run.released = True
    wake_up(run, "put off until now" if put_off else "start time reached")
    advance(run)
    run.released = False
