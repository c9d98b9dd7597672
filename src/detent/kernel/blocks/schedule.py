"""schedule: one cron schedule as an instance; each fire is a message that starts an instance.

It stands with the tick of its next fire as due tick, so a schedule sleeps like anything else. The
id of what a fire starts derives from the schedule and the fire's instant, and the start leaves in
the commit that moves the schedule on: whatever crashes, a fire happens once. What it started tells
its end, and a retry after it, to the parent token 0, which belongs to no wait.

The inputs of a turn come before its fires, also those that are overdue (`step`): a schedule that is
disabled or deleted starts nothing any more, and what it would have started counts as skipped.
"""

from __future__ import annotations

from typing import Any

import msgspec

from detent.kernel.cron import Cron, check, kept_cron, read_cron
from detent.kernel.cron_times import due_fires, next_fire
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import FAILED, WAIT
from detent.model import limits
from detent.model.decision import Birth, Message
from detent.model.errors import RequestError
from detent.model.ids import derived_id
from detent.model.inputs import (
    ChildEnded,
    ChildRetried,
    Parent,
    SignalReceived,
    Started,
    encode_input,
)
from detent.model.labels import labels_of
from detent.model.snapshot import Frame

TOKEN = 0  # of the parent in what a schedule starts
_SETTINGS = ("cron_expr", "timezone", "overlap_policy", "missed_policy", "missed_limit")
_TIMES = ("cron_expr", "timezone", "enabled")


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Take the schedule out of the data, where a signal could reach it, and wait for its fire."""
    snapshot = run.snapshot
    try:
        cron = read_cron(snapshot.data)
        check({name: getattr(cron, name) for name in _SETTINGS})
    except (RequestError, msgspec.ValidationError) as error:
        code = error.code if isinstance(error, RequestError) else "request.invalid"
        text = error.message if isinstance(error, RequestError) else str(error)
        run.fail(Failure(message=text, kind="definition", code=code, block=node.id, node=path))
        return FAILED
    snapshot.data = None
    cron.created_at = cron.updated_at = run.now_ms()
    _arm(run, frame, path, cron)
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Fire what is due; while it is paused nothing fires, and what passes meanwhile is missed."""
    if frame is run.woken:
        run.woken = None
    if run.held:
        return WAIT
    cron = read_cron(run.snapshot.kv)
    _release(run, path, cron)
    if frame.wait is None:
        _fire(run, path, cron)
        _arm(run, frame, path, cron)
    else:
        run.snapshot.kv = kept_cron(cron)
    return WAIT


def configure(run: Run, frame: Frame, verb: str, args: dict[str, Any]) -> Any:
    """Change settings of the schedule; its next fire is then after now.

    What is due by now was promised by the old settings. A pause holds it back, and a change that
    leaves the times as they are leaves it for the end of the pause.
    """
    if verb != "cron.update":
        raise RequestError("request.invalid", f"a schedule knows cron.update; got {verb!r}")
    check(args)
    cron = read_cron(run.snapshot.kv)
    path = run.program.nodes[frame.b].id
    retimed = any(args[name] != getattr(cron, name) for name in _TIMES if name in args)
    left = not retimed and _paused(run) and _is_due(run, cron)
    if args.get("enabled") is False:
        _drop(run, path, cron, "disabled")
    elif not _paused(run):
        _release(run, path, cron)
        _fire(run, path, cron)
    elif retimed:
        _drop(run, path, cron, "changed")
    for name, value in args.items():
        setattr(cron, name, value)
    if cron.held_fire_at is not None and (cron.overlap_policy != "buffer_one" or not cron.enabled):
        _skip(run, path, cron, cron.held_fire_at, "changed")
        cron.held_fire_at = None
    cron.updated_at = run.now_ms()
    if left:
        run.snapshot.kv = kept_cron(cron)
    else:
        _arm(run, frame, path, cron)
    return {"next_fire_at": cron.next_fire_at}


def child_ended(run: Run, told: ChildEnded, index: int) -> None:
    """An instance it started has ended: a fire that is held may start after this turn's inputs."""
    root = run.snapshot.root
    frame = root.lanes[0].open if root is not None and root.lanes else None
    cron = read_cron(run.snapshot.kv) if frame is not None else None
    if frame is None or cron is None or told.child not in cron.running:
        why = "the schedule does not wait for this instance"
        run.note("event.ignored", "", {"in": index, "why": why})
        return
    path = run.program.nodes[frame.b].id
    cron.running.remove(told.child)
    cron.stopping = [child for child in cron.stopping if child != told.child]
    run.note("cron.ended", path, {"child": told.child, "state": told.state})
    if cron.held_fire_at is not None and not cron.running and frame.wait is not None:
        frame.wait.due = run.tick
    run.snapshot.kv = kept_cron(cron)


def child_retried(run: Run, told: ChildRetried) -> None:
    """An instance it started had failed and runs again: it counts until it ends once more."""
    cron = read_cron(run.snapshot.kv)
    cron.running = [child for child in cron.running if child != told.child]
    _track(cron, told.child)
    run.note("cron.retried", "", {"child": told.child})
    run.snapshot.kv = kept_cron(cron)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """It ends at once; what it started goes on, and what is due or held starts no more."""
    cron = read_cron(run.snapshot.kv)
    _drop(run, path, cron, "deleted")
    if cron.held_fire_at is not None:
        _skip(run, path, cron, cron.held_fire_at, "deleted")
    cron.next_fire_at = cron.held_fire_at = None
    run.snapshot.kv = kept_cron(cron)
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It is entered afresh."""
    return False


def _arm(run: Run, frame: Frame, path: str, cron: Cron) -> None:
    """Wait for the first fire after now, and keep what has become of the schedule."""
    cron.next_fire_at = next_fire(run, cron, run.now_ms()) if cron.enabled else None
    run.snapshot.kv = kept_cron(cron)
    if cron.next_fire_at is not None:
        run.wait(frame, path, "cron", run.at_ms(cron.next_fire_at))
    else:
        run.wait(frame, path, "cron", None, "over" if cron.enabled else "disabled")


def _fire(run: Run, path: str, cron: Cron) -> None:
    """Carry out every fire whose time has come, each by the policy for overlaps."""
    due = due_fires(run, cron)
    if due.dropped:
        _skip(run, path, cron, cron.next_fire_at, "missed", due.dropped)
    for fire in due.fires:
        _carry_out(run, path, cron, fire, last=fire == due.fires[-1])


def _drop(run: Run, path: str, cron: Cron, why: str) -> None:
    """Count every fire whose time has come as skipped."""
    due = due_fires(run, cron)
    count = len(due.fires) + due.dropped
    if count:
        _skip(run, path, cron, cron.next_fire_at, why, count)


def _carry_out(run: Run, path: str, cron: Cron, fire: int, *, last: bool) -> None:
    policy = cron.overlap_policy
    if policy == "cancel_previous" and not last:
        _skip(run, path, cron, fire, "overlap")  # the next one would cancel it at once
    elif policy == "skip" and cron.running:
        _skip(run, path, cron, fire, "overlap")
    elif policy == "buffer_one" and cron.running:
        if cron.held_fire_at is None:
            cron.held_fire_at = fire
            run.note("cron.held", path, {"fire_ms": fire})
        else:
            _skip(run, path, cron, fire, "overlap")
    else:
        _start(run, path, cron, fire)


def _release(run: Run, path: str, cron: Cron) -> None:
    """Start the fire that is held, when nothing runs any more."""
    if cron.held_fire_at is not None and not cron.running:
        fire, cron.held_fire_at = cron.held_fire_at, None
        _start(run, path, cron, fire)


def _start(run: Run, path: str, cron: Cron, fire: int) -> None:
    target = cron.definition or run.fact("sequence", cron.sequence, cron.namespace)
    if target is None:
        cron.failed_fires += 1
        cron.last_error = f"there is no sequence named {cron.sequence!r}"
        run.note("cron.failed", path, {"fire_ms": fire, "why": cron.last_error})
        return
    if cron.overlap_policy == "cancel_previous":
        _cancel_running(run, cron, fire)
    child = derived_id(run.snapshot.tenant, "cron", f"{cron.id}:{fire}")
    _send_start(run, path, cron, child, target)
    _track(cron, child)
    cron.fires += 1
    cron.last_triggered_at = run.now_ms()
    run.note("cron.fired", path, {"fire_ms": fire, "child": child, "definition": target})


def _cancel_running(run: Run, cron: Cron, fire: int) -> None:
    """Ask what runs to end; it counts until it has, which may take what it protects a while."""
    for child in cron.running:
        if child not in cron.stopping:
            told = SignalReceived(
                name="cancel", id=f"cancel:{child}:{fire}", sender=run.snapshot.id
            )
            run.messages.append(Message(id=told.id, to=child, body=encode_input(told)))
    cron.stopping = list(cron.running)


def _track(cron: Cron, child: str) -> None:
    """Follow the newest instances to their end."""
    cron.running = [*cron.running, child][-limits.CRON_TRACKED :]
    cron.stopping = [each for each in cron.stopping if each != child and each in cron.running]


def _send_start(run: Run, path: str, cron: Cron, child: str, target: str) -> None:
    snapshot = run.snapshot
    started = Started(
        instance=child,
        tenant=snapshot.tenant,
        namespace=cron.namespace,
        definition=target,
        priority=cron.priority,
        timezone=cron.timezone,
        data=cron.data,
        config=cron.config,
        metadata={**(cron.metadata or {}), "cron_schedule_id": cron.id},
        policies=tuple(snapshot.policies[len(run.program.definition.body.policies) :]),
        parent=Parent(instance=snapshot.id, token=TOKEN, block=path, depth=0),
        seed=snapshot.seed,
        id=f"start:{child}",
    )
    birth = Birth(
        id=child,
        tenant=snapshot.tenant,
        namespace=cron.namespace,
        definition=target,
        priority=cron.priority,
        parent=snapshot.id,
        labels=labels_of(started.metadata),
    )
    run.messages.append(
        Message(id=f"start:{child}", to=child, body=encode_input(started), start=birth)
    )


def _skip(run: Run, path: str, cron: Cron, fire: int | None, why: str, count: int = 1) -> None:
    cron.skipped_fires += count
    cron.last_skipped_at = run.now_ms()
    detail: dict[str, Any] = {"fire_ms": fire, "why": why}
    run.note("cron.skipped", path, detail if count == 1 else {**detail, "count": count})


def _is_due(run: Run, cron: Cron) -> bool:
    return cron.next_fire_at is not None and cron.next_fire_at <= run.now_ms()


def _paused(run: Run) -> bool:
    return run.held or run.snapshot.pause_requested
