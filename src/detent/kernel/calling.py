"""Calling: how an open effect becomes an order, the first time and again.

A call that is made once more passes what the first one passed: a repeat is a call like any other to
whoever set a limit, and what was decided before the process died may be decided too late for a
window. While it stands in line, or until its windows open, the effect has no order out and no
deadline; its node waits for the outcome as before.
"""

from __future__ import annotations

from detent.kernel import asking, timing
from detent.kernel.failure import Failure
from detent.kernel.gate.asks import Answer, Ask
from detent.kernel.orders import order_of
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.work import item_of
from detent.model import limits
from detent.model.snapshot import Frame, OpenEffect


def make(run: Run, effect: OpenEffect) -> None:
    """Order the call now, or hand it out to workers."""
    effect.asked = 0
    if effect.worker:
        run.work.append(item_of(run, effect))
        return
    effect.deadline = deadline_of(run, effect.timeout_ms)
    run.orders.append(order_of(run.snapshot, effect, run.program))


def again(run: Run, effect: OpenEffect, *, called: bool) -> Failure | None:
    """Order a call once more; why not, when its windows never open again.

    If it may have been `called`, that counts, and so does this. Else what it had is free.
    """
    if called:
        asking.begin(run, effect)
    else:
        asking.give_up(run, effect)
    opening = _opening(run, effect)
    if opening is not None:
        return _put_off(run, effect, opening)
    _ask(run, effect)
    return None


def called(run: Run, effect: OpenEffect, said: Answer | None) -> Failure | None:
    """The gate calls an effect that stands in line; `said` is what one elsewhere has answered."""
    token = effect.asked
    opening = _opening(run, effect)
    if opening is not None:
        asking.leave(run, token)
        return _put_off(run, effect, opening)
    answer = asking.take(run, token) if said is None else said
    if answer.state == "late":
        _ask(run, effect)
    elif answer.state not in ("deferred", "sent"):
        _granted(run, effect, token, answer)
    return None


def in_line(run: Run, token: int) -> OpenEffect | None:
    """The effect that stands in line with a ticket."""
    return next((each for each in run.snapshot.effects if each.asked == token), None)


def deadline_of(run: Run, timeout_ms: int | None) -> int:
    """When a call made now counts as lost, though no dispatcher ever says so."""
    if timeout_ms is None:
        return run.after(limits.EFFECT_DEADLINE_MS)
    return run.after(timeout_ms + limits.DEADLINE_GRACE_MS)


def find_frame(frame: Frame | None, token: int) -> Frame | None:
    """The open frame that waits with a token."""
    if frame is None:
        return None
    if frame.wait is not None and frame.wait.token == token:
        return frame
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            found = find_frame(lane.open, token)
            if found is not None:
                return found
    return None


def _opening(run: Run, effect: OpenEffect) -> int | Failure | None:
    """When the send windows of its step open; None while they let it act."""
    frame = find_frame(run.snapshot.root, effect.token) if effect.token else None
    node = _windowed(run, effect)
    if frame is None or node is None:
        return None
    return timing.window_due(run, node, frame, effect.node, effect.since)


def _windowed(run: Run, effect: OpenEffect) -> Node | None:
    """The step of a call that has send windows."""
    node = run.program.nodes.get(effect.block) if effect.kind == "call" else None
    return None if node is None or node.block.send_window is None else node


def _put_off(run: Run, effect: OpenEffect, opening: int | Failure) -> Failure | None:
    if isinstance(opening, Failure):
        return opening
    _stand(effect, opening)
    run.note("wait.started", effect.node, {"kind": "window", "due": opening})
    return None


def _ask(run: Run, effect: OpenEffect) -> None:
    granted = effect.granted
    if granted is None:
        make(run, effect)
        return
    node = _windowed(run, effect)
    window, hours = ("", None) if node is None else timing.hours(run, node)
    wanted = Ask(
        instance=run.snapshot.id,
        token=run.token(),
        priority=run.snapshot.priority,
        limits=tuple(granted["keys"]),
        pool=granted["pool"],
        resource=granted["resource"],
        back=True,
        window=window,
        hours=hours,
    )
    answer = asking.ask(run, wanted)
    if answer.state in ("deferred", "sent"):
        _stand(effect, None)
        effect.asked = wanted.token
        run.note("wait.started", effect.node, {"kind": "gate", "for": answer.rule})
    else:
        _granted(run, effect, wanted.token, answer)


def _granted(run: Run, effect: OpenEffect, token: int, answer: Answer) -> None:
    """Refused is a pool that is gone: what it was to use limits it no longer."""
    if answer.state == "granted":
        effect.ticket = token
        if answer.key:
            effect.granted = {**effect.granted, "resource": answer.resource, "key": answer.key}
            effect.resource = answer.key
        run.note("gate.granted", effect.node, {"again": effect.key, "resource": effect.resource})
    make(run, effect)


def _stand(effect: OpenEffect, until: int | None) -> None:
    effect.asked = 0
    effect.next_try = until
    effect.deadline = None
