"""pause, resume and cancel: signals may have no effect, commands may be refused."""

from __future__ import annotations

from detent.kernel import budget
from detent.kernel.ending import advance, cancel_instance
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.run import Run
from detent.kernel.slot import wake_up
from detent.kernel.survey import shown_state


def pause(run: Run, why: str) -> bool:
    """Pause now, or hold the pause until the wait ends; False when it changes nothing."""
    snapshot = run.snapshot
    if snapshot.state == "running" and not run.more and shown_state(snapshot) == "waiting":
        run.move("waiting", "run to wait")  # an input before this one, in the same turn, moved it
    if snapshot.state in ("scheduled", "running"):
        run.held = True
        _call_off(run)
        snapshot.pause_requested = False
        snapshot.paused_reason = why
        run.move("paused", why)
        return True
    if snapshot.state == "waiting":
        if not snapshot.pause_requested:
            run.note("run.pause_requested", "", {"trigger": why})
        snapshot.pause_requested = True
        return True
    return False


def resume_instance(run: Run, why: str, at: int | None = None) -> bool:
    """Go on from a pause, or withdraw one that is still held; False when it changes nothing."""
    snapshot = run.snapshot
    if snapshot.state == "paused":
        budget.lift(run)
        snapshot.paused_reason = ""
        run.move("scheduled", why, "run.resumed")
        go_on(run, why, at)
        return True
    if snapshot.pause_requested:
        snapshot.pause_requested = False
        run.note("run.pause_withdrawn", "", {"trigger": why})
        return True
    return False


def go_on(run: Run, why: str, at: int | None) -> None:
    """Let an instance that a person set to scheduled move: now, or at a tick."""
    root = run.snapshot.root
    run.held = False
    if root is None:
        return
    if at is not None and at > run.tick:
        put_off(run, at)
    elif root.wait is None:  # else its start is to come
        run.released = True
        wake_up(run, why)
        advance(run)
        run.released = False


def put_off(run: Run, at: int) -> None:
    """Hold everything until a tick; what comes in meanwhile is taken as in a pause."""
    root = run.snapshot.root
    if root is None:
        return
    if root.wait is not None and root.wait.kind == "start":
        run.wait(root, "", "start", at)
        return
    run.held = True
    run.wait(root, "", "later", at)


def begin(run: Run, at: int | None) -> bool:
    """Let an instance that was only enrolled start, now or at a tick; False when it has started."""
    snapshot, root = run.snapshot, run.snapshot.root
    waits = root is not None and root.wait is not None and root.wait.kind == "start"
    if root is None or not waits or snapshot.state != "scheduled":
        return False
    if at is not None and at > run.tick:
        run.wait(root, "", "start", at)
        return True
    root.wait = None
    run.note("wait.completed", "", {"kind": "start"})
    wake_up(run, "begin")
    advance(run)
    return True


def cancel(run: Run, why: str, reason: str = "") -> bool:
    """Cancel; False when the instance has ended or is being cancelled already."""
    snapshot = run.snapshot
    if snapshot.state in TERMINAL or snapshot.cancel_requested:
        return False
    detail = {"trigger": why, "reason": reason} if reason else {"trigger": why}
    run.note("run.cancel_requested", "", detail)
    snapshot.reason = reason
    cancel_instance(run, why)
    return True


def _call_off(run: Run) -> None:
    """A pause ends the time it was put off for: a resume goes on at once."""
    root = run.snapshot.root
    if root is not None and root.wait is not None and root.wait.kind == "later":
        root.wait = None
