"""Steering by people: set the data or the state of an instance, and move its due time.

A state can be set only as the table of the life cycle allows. What follows is what the engine does
by itself in that state: `scheduled` resumes or retries (at once, or at a tick), `paused` holds,
`cancelled` cancels, `failed` and `completed` stop what may be stopped and end. Running and waiting
are what the engine finds an instance to be; nobody sets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from detent.kernel.ending import advance, end_instance
from detent.kernel.failure import Failure
from detent.kernel.lifecycle import INSTANCE
from detent.kernel.lifecycle_moves import cancel, go_on, pause, put_off, resume_instance
from detent.kernel.places import frontier
from detent.kernel.retrying import renew
from detent.kernel.run import Run, encode
from detent.kernel.slot import wake_up
from detent.kernel.survey import SHOWN, next_due, shown_state
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.snapshot import Frame

_OPERATOR = "operator"
_ENGINES = ("running", "waiting")


def set_data(run: Run, args: dict[str, Any], index: int) -> None:
    """Replace the data, in any state; config, audit and runtime are not a caller's to write."""
    data = args.get("data")
    size = len(encode(data)) if run.bulk >= limits.CONTEXT_BYTES else 0
    if size > limits.CONTEXT_BYTES:
        raise RequestError(
            "payload.too_large", f"data would be {size} bytes; the limit is {limits.CONTEXT_BYTES}"
        )
    run.snapshot.data = data
    run.note("data.replaced", "", {"in": index})


def set_state(run: Run, args: dict[str, Any]) -> None:
    """Move the instance to a state as the table allows, or refuse."""
    target, at = args.get("state"), args.get("next_fire_at")
    if target not in INSTANCE:
        names = ", ".join(state for state in INSTANCE if state not in _ENGINES)
        raise RequestError("request.invalid", f"state must be one of {names}; got {target!r}")
    if at is not None and (type(at) is not int or target != "scheduled"):
        raise RequestError(
            "request.invalid", "next_fire_at goes with the state scheduled, and is a tick or null"
        )
    if at is not None and at > run.after(limits.DURATION_MS):
        raise RequestError("request.invalid", "next_fire_at is more than 100 years from now")
    _settle(run)
    source = run.snapshot.state
    if target in _ENGINES:
        raise _no_move(run, target, f"only the engine sets an instance {target}")
    if target not in INSTANCE[source]:
        raise _no_move(run, target, "the life cycle has no such move")
    match target:
        case "scheduled":
            _schedule(run, source, at)
        case "paused":
            pause(run, _OPERATOR)
        case "cancelled":
            if not cancel(run, _OPERATOR):
                raise _no_move(run, target, "it is being cancelled already")
        case _:
            _end(run, target)


def reschedule(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """Move the due time of a scheduled instance; places in line at the gate stay as they are."""
    offset = args.get("offset_ms")
    if type(offset) is not int or abs(offset) > limits.DURATION_MS:
        raise RequestError(
            "request.invalid",
            f"offset_ms must be whole milliseconds, at most {limits.DURATION_MS} either way; "
            f"got {offset!r}",
        )
    _settle(run)
    snapshot = run.snapshot
    if snapshot.state != "scheduled":
        raise RequestError(
            "instance.transition",
            f"only a scheduled instance has a due time to move; this one is {snapshot.state}",
            source=snapshot.state,
            verb="reschedule",
        )
    moved = False
    for path, frame in _put_off_frames(run):
        moved |= _move_due(run, path, frame, offset)
    if not moved:
        raise RequestError(
            "instance.transition",
            "it stands in line at the gate, which has no due time to move; "
            "change the limit or the pool instead",
            source=snapshot.state,
            verb="reschedule",
        )
    return {"next_fire_at": next_due(snapshot, run.tick)}


def _settle(run: Run) -> None:
    """Show the state it really is in: an input before this one, in the same turn, moved it."""
    snapshot = run.snapshot
    if snapshot.state == "running" and not run.more:
        run.move(shown_state(snapshot), "run to wait")


def _schedule(run: Run, source: str, at: int | None) -> None:
    if source == "paused":
        resume_instance(run, _OPERATOR, at)
        return
    if source == "failed":
        renew(run)
        go_on(run, "retry", at)
        return
    if run.snapshot.pause_requested:
        raise _no_move(run, "scheduled", "it is to pause when its wait ends; resume it first")
    run.move("scheduled", _OPERATOR)
    if at is not None and at > run.tick:
        put_off(run, at)
    else:  # it looks again whether it can go on, and waits as before where it cannot
        wake_up(run, _OPERATOR)
        advance(run)


def _end(run: Run, target: str) -> None:
    snapshot = run.snapshot
    root = snapshot.root
    if root is None or root.phase or snapshot.cancel_requested or snapshot.end_requested:
        raise _no_move(run, target, "it is ending already")
    if target == "failed":
        snapshot.error = Failure(message="set to failed by an operator", kind=_OPERATOR).plain()
    run.note("run.end_requested", "", {"trigger": _OPERATOR, "state": target})
    end_instance(run, target, _OPERATOR)


def _put_off_frames(run: Run) -> Iterator[tuple[str, Frame]]:
    root = run.snapshot.root
    if root is not None and root.wait is not None:
        yield "", root
    for path, frame, _ in frontier(run.snapshot, run.program):
        yield path, frame


def _move_due(run: Run, path: str, frame: Frame, offset: int) -> bool:
    wait = frame.wait
    if wait is None or wait.due is None or SHOWN[wait.kind] != "scheduled":
        return False
    due = run.at_ms(run.ms_of(wait.due) + offset)
    if due > run.after(limits.DURATION_MS):
        raise RequestError("request.invalid", "the due time would be more than 100 years from now")
    run.note("wait.moved", path, {"kind": wait.kind, "due": due, "was": wait.due})
    if frame.wanted is not None:
        frame.wanted = max(run.tick, frame.wanted + due - wait.due)
    wait.due = due
    return True


def _no_move(run: Run, target: str, why: str) -> RequestError:
    source = run.snapshot.state
    allowed = ", ".join(sorted(INSTANCE[source] - {*_ENGINES})) or "no other state"
    return RequestError(
        "instance.transition",
        f"{why}; this one is {source} and can be set to {allowed}",
        source=source,
        target=target,
    )
