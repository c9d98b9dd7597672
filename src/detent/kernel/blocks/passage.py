"""passage: the last stage before a step acts. Its windows must be open, then the gate is asked.

`clear` answers None when the step may act in this very turn; otherwise the frame stands (phase
"window", "line", or "breaker" where an open breaker was asked for too) or the step has failed.
Nothing that was true earlier is relied on: after each wait the windows are looked at again, at the
tick of the turn that acts.
"""

from __future__ import annotations

from typing import Any

from detent.expression import Template
from detent.kernel import asking, breaking, timing
from detent.kernel.blocks import seeing
from detent.kernel.blocks.result import give_up
from detent.kernel.bounds import rendered
from detent.kernel.builtin import MOVES
from detent.kernel.failure import Failure
from detent.kernel.gate.asks import PROBE, Answer, Ask
from detent.kernel.program import Node
from detent.kernel.run import Run, encode
from detent.kernel.walk import WAIT
from detent.model.errors import ExpressionError
from detent.model.snapshot import Frame, Wait

_BREAKER = "breaker"


def clear(run: Run, node: Node, frame: Frame, path: str) -> int | None:
    """Pass the windows and the gate; None when the step may act now."""
    stands = _windows(run, node, frame, path)
    if stands is not None:
        return stands
    pool = _pool(run, node)
    broken = breaking.holds(run, node, path)
    if (pool is None and not node.limits and not broken) or run.snapshot.dry_run:
        return None
    try:
        keys = _keys(run, node)
        name = "" if pool is None else _text(run, pool, "pool")
        if broken:
            seeing.params_of(run, node)  # what cannot be called must not be the probe
    except ExpressionError as error:
        return give_up(run, node, path, seeing.failure_of(error))
    frame.phase = _BREAKER if broken else "line"
    wanted = _ask(run, node, frame, keys, name)
    return _told(run, node, frame, path, wanted.token, asking.ask(run, wanted))


def called(run: Run, node: Node, frame: Frame, path: str) -> int | None:
    """The gate called the frame's ticket: take the grant, unless the step may not act now."""
    token: int = run.woken_value
    if run.held:
        asking.leave(run, token)
        frame.back = True
        frame.phase = "answered"
        return WAIT
    stands = _windows(run, node, frame, path)
    if stands is not None:
        asking.leave(run, token)
        frame.back = True
        return stands
    if frame.phase != _BREAKER and breaking.holds(run, node, path):  # it opened meanwhile
        asking.leave(run, token)
        frame.back = True
        return clear(run, node, frame, path)
    return _told(run, node, frame, path, token, asking.take(run, token))


def answered(run: Run, node: Node, frame: Frame, path: str) -> int | None:
    """A gate of another writer answered; a grant that cannot be used now is given back."""
    token, answer = run.woken_value
    if answer.state != "granted":
        return _told(run, node, frame, path, token, answer)
    if run.held:
        asking.leave(run, token)
        frame.back = True
        frame.phase = "answered"
        return WAIT
    stands = _windows(run, node, frame, path)
    if stands is not None:
        asking.leave(run, token)
        frame.back = True
        return stands
    if frame.phase != _BREAKER and breaking.holds(run, node, path):
        asking.leave(run, token)
        frame.back = True
        return clear(run, node, frame, path)
    return _told(run, node, frame, path, token, answer)


def foreseen(run: Run, node: Node, frame: Frame, path: str) -> tuple[int, Ask] | None:
    """When a step that goes on at a tick will ask, and what; None when it will not, or fails."""
    pool = _pool(run, node)
    if (pool is None and not node.limits) or run.snapshot.dry_run:
        return None
    if _windows(run, node, frame, path) is not None:
        wait = frame.wait
        if wait is None or wait.kind != "window" or wait.due is None or wait.due <= run.tick:
            return None
        run.tick = wait.due
    try:
        keys = _keys(run, node)
        name = "" if pool is None else _text(run, pool, "pool")
    except ExpressionError:
        return None
    return run.tick, _ask(run, node, frame, keys, name)


def close_after(run: Run, frame: Frame, failure: Failure) -> None:
    """A handler said when it may be called again: what the step used stays closed until then."""
    details = failure.details
    pause = details.get("retry_after_ms") if isinstance(details, dict) else None
    granted = frame.granted
    if not granted or type(pause) is not int or pause <= 0:
        return
    keys = tuple(dict.fromkeys((*granted["keys"], granted["key"])))
    keys = tuple(key for key in keys if key)
    until = run.after(pause)
    asking.close(run, keys, until)
    run.note("gate.closed", failure.node, {"keys": keys, "until": until})


def _windows(run: Run, node: Node, frame: Frame, path: str) -> int | None:
    if node.block.send_window is None:
        return None
    if frame.wanted is None:
        frame.wanted = run.tick
    opening = timing.window_due(run, node, frame, path, frame.wanted)
    if opening is None:
        return None
    if isinstance(opening, Failure):
        return give_up(run, node, path, opening)
    frame.phase = "window"
    frame.wanted = opening
    run.wait(frame, path, "window", opening)
    return WAIT


def _ask(run: Run, node: Node, frame: Frame, keys: tuple[str, ...], pool: str) -> Ask:
    snapshot = run.snapshot
    pinned = frame.granted["resource"] if frame.granted else ""
    if keys or pool:
        frame.granted = {"keys": keys, "pool": pool, "resource": pinned, "key": ""}
    window, hours = timing.hours(run, node) if node.block.send_window is not None else ("", None)
    return Ask(
        instance=snapshot.id,
        token=run.token(),
        priority=snapshot.priority,
        limits=keys,
        pool=pool,
        resource=pinned,
        sticky=snapshot.resources.get(pool, "") if pool and node.sticky else "",
        breaker=node.block.handler if frame.phase == _BREAKER else "",
        back=frame.back,
        window=window,
        hours=hours,
    )


def _told(run: Run, node: Node, frame: Frame, path: str, token: int, answer: Answer) -> int | None:
    match answer.state:
        case "granted":
            _granted(run, frame, path, token, answer)
            if answer.rule == PROBE:
                run.note("gate.granted", path, {"probe": node.block.handler})
            return None
        case "refused":
            asking.forget(run, token)
            message = f"{answer.rule.replace(':', ' ', 1)}: {answer.why}"
            failure = Failure(message=message, kind="definition", code="pool.unknown")
            return give_up(run, node, path, failure)
        case "late":
            frame.back = True
            return clear(run, node, frame, path)
        case _:
            frame.wait = Wait(kind="gate", token=token, since=run.tick, name=answer.rule)
            run.note("wait.started", path, {"kind": "gate", "for": answer.rule})
            return WAIT


def used_by_call(frame: Frame) -> tuple[Any, int]:
    """What the call of a step may use, and the ticket it was granted under, now its own."""
    granted = frame.granted
    if not granted:
        return None, 0
    ticket: int = granted.pop("ticket", 0)
    return granted, ticket


def unspent(run: Run, frame: Frame) -> None:
    """The step ended without a call: what it was granted counts all the same."""
    token = frame.granted.pop("ticket", 0)
    if token:
        asking.spend(run, token)


def _granted(run: Run, frame: Frame, path: str, token: int, answer: Answer) -> None:
    frame.back = False
    asked = frame.granted
    if asked:
        asked["ticket"] = token
    if answer.resource:
        frame.granted = {**asked, "resource": answer.resource, "key": answer.key}
        run.snapshot.resources[asked["pool"]] = answer.resource
        detail: dict[str, Any] = {"pool": asked["pool"], "resource": answer.key}
        run.note("gate.granted", path, {**detail, "why": answer.why} if answer.why else detail)
    elif answer.why:
        run.note("gate.granted", path, {"why": answer.why})


def _pool(run: Run, node: Node) -> Template | ExpressionError | None:
    if node.pool is not None:
        return node.pool
    return None if node.block.handler in MOVES else run.program.pool


def _keys(run: Run, node: Node) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(run, key, "rate_limit_key") for key in node.limits))


def _text(run: Run, template: Template | ExpressionError, what: str) -> str:
    if isinstance(template, ExpressionError):
        raise template
    value = template.value if template.constant else rendered(template, run.scope())
    text = value if isinstance(value, str) else encode(value).decode()
    if not text or value is None:
        raise ExpressionError(
            "expression.type", f"{what} came out empty; a limit that is not named cannot be kept"
        )
    return text
