"""Controls: orders to the writer itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.model.decision import HandlerSpec, Verdict
from detent.model.errors import DetentError, RequestError, StoreError
from detent.runtime.clock import VirtualClock

if TYPE_CHECKING:
    from detent.model.link import Control
    from detent.runtime.parts import Parts


def read_mail(parts: Parts) -> None:
    """Sort what was submitted: controls are obeyed at once, marks and inputs wait for the turn."""
    inbox = parts.inbox
    while inbox.batches:
        batch = inbox.batches.popleft()
        inbox.inputs.extend(batch.inputs)
        for request in batch.marks:
            parts.marks.request(request.keys, request.instances)
        for control in batch.control:
            _obey(parts, control)


def answer_watchers(parts: Parts) -> None:
    """Tell those who asked how things stand after the turn."""
    for ack in parts.watchers:
        parts.out.answer(ack, Verdict(id="", result=status(parts)))
    parts.watchers = []


def status(parts: Parts) -> dict[str, Any]:
    """How the writer stands, in plain values."""
    return {
        "tick": max(parts.clock.tick(), parts.lease.tick),
        "next_due": _next_due(parts),
        "queued": len(parts.queue) + len(parts.inbox.inputs),
        "idle": not has_work(parts),
        "recovering": parts.recovery.active,
        "held": parts.hold.code,
        "partitions": list(parts.lease.owned),
        "turns": parts.turns,
        "cached": len(parts.cache),
        "cached_bytes": parts.cache.bytes,
        "barred": sorted(parts.barred),
    }


def _next_due(parts: Parts) -> int | None:
    """The same for people; nothing is known while the store cannot be read."""
    try:
        return next_due(parts)
    except StoreError:
        return None


def next_due(parts: Parts) -> int | None:
    """The next tick at which something happens by itself; now while there is work, None if held."""
    now = max(parts.clock.tick(), parts.lease.tick)
    if parts.hold.code or not parts.lease.owned:
        return None
    if has_work(parts):
        return now
    if parts.settings.errand:
        return None
    dues = (parts.dues.earliest(parts.store, parts.lease.owned, now), parts.gates.next_due())
    due = min((each for each in dues if each is not None), default=None)
    return None if due is not None and due <= now and parts.barred else due


def any_due(parts: Parts) -> bool:
    """Whether a user's instance moves by itself some time; schedules do so for ever."""
    if has_work(parts):
        return True
    if parts.settings.errand:
        return False
    if parts.gates.next_due() is not None:
        return True
    return parts.store.any_due(parts.lease.owned)


def has_work(parts: Parts) -> bool:
    """Whether a turn would do something now."""
    inbox = parts.inbox
    return bool(
        inbox.batches
        or inbox.inputs
        or inbox.begun
        or inbox.own
        or inbox.refused
        or inbox.foreign
        or inbox.polled_full
        or inbox.look_now
        or parts.queue
        or parts.groups
        or parts.marks.pending
        or parts.gates.mail
        or (parts.recovery.active and parts.clock.wall_ms() >= parts.recovery.not_before_ms)
    )


def _obey(parts: Parts, control: Control) -> None:
    try:
        result = _carry_out(parts, control)
    except DetentError as error:
        refused = Verdict(id="", ok=False, code=error.code, message=error.message)
        parts.out.answer(control.ack, refused)
        return
    if control.verb == "status":
        parts.watchers.append(control.ack)
    else:
        parts.out.answer(control.ack, Verdict(id="", result=result))


def _carry_out(parts: Parts, control: Control) -> Any:
    match control.verb:
        case "register":
            specs = _converted(control.args, list[HandlerSpec])
            parts.register({spec.name: spec for spec in specs})
        case "begun":
            parts.inbox.begun += _converted(control.args, list[tuple[str, str]])
        case "wake":
            parts.inbox.look_now |= _concerns(parts, control.args)
        case "advance":
            return _advance(parts, control.args)
        case "accept_clock":
            parts.accepted_tick = parts.clock.tick()
            parts.hold.retry_at = 0
        case "close":
            parts.closing = True
        case "orphan":
            parts.orphaned = not parts.closing
            parts.closing = True
        case "status":
            pass
        case _:
            raise RequestError("request.invalid", f"a writer knows no control {control.verb!r}")
    return None


def _concerns(parts: Parts, partitions: Any) -> bool:
    """Whether one of the partitions that somebody left something for is ours; none: all of them."""
    return not partitions or any(p in parts.lease.heads for p in partitions)


def _advance(parts: Parts, args: Any) -> dict[str, int]:
    if not isinstance(parts.clock, VirtualClock):
        raise RequestError("engine.running", "only virtual time can be advanced")
    parts.clock.advance(_converted(args, dict[str, int]).get("to", 0))
    return {"tick": parts.clock.tick()}


def _converted(args: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(args, kind)
    except msgspec.ValidationError as error:
        raise RequestError(
            "request.invalid", f"the control's arguments are wrong: {error}"
        ) from None
