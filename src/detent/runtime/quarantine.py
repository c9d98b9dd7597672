"""Quarantine: what becomes of an instance that cannot be stepped or committed.

Its row turns `paused` and one journal row says why and keeps the inputs; the snapshot keeps its
frontier and nothing due moves it, until a person resumes it. An instance that has ended stays
ended. A start that cannot be stepped is refused: nothing of it was ever durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.quarantined import first_snapshot
from detent.kernel.spill import pack_input
from detent.kernel.standing import QUARANTINED
from detent.model.decision import Decision, Verdict
from detent.model.snapshot import Snapshot, decode_snapshot, encode_snapshot
from detent.runtime.intake import born_already

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.runtime.cache import Hot
    from detent.runtime.parts import Parts
    from detent.runtime.ready import Ready

_REASON_CHARS = 2_000
_encode = msgspec.json.Encoder().encode


def quarantine(store: Store, entry: Ready, hot: Hot, tick: int, reason: str) -> Decision:
    """The decision that takes an instance out of the way with its inputs kept."""
    state = hot.state if hot.state in TERMINAL else "paused"
    reason = _plain(reason)
    snapshot = _first_snapshot(store, entry, hot, tick) if hot.body is None else _read(hot.body)
    body = hot.body or b""
    if snapshot is not None:
        body = _standing(snapshot, hot.version + 1, state, reason)
    blobs: dict[str, bytes] = {}
    return Decision(
        instance=hot.id,
        snapshot=body,
        version=hot.version + 1,
        state=state,
        priority=hot.priority,
        due=None,
        busy=hot.busy,
        journal=_journal(entry, hot.state, state, reason, blobs),
        tick=tick,
        definition=hot.definition,
        verdicts=[_verdict(told.id, reason) for told in entry.inputs if told.ask],
        blobs=blobs,
        more=False,
        actions=("instance.quarantined",),
    )


def refuse_birth(parts: Parts, entry: Ready, reason: str) -> None:
    """Answer a start that cannot be made, and everything sent to it meanwhile."""
    parts.queue.done([entry])
    parts.condemned.pop(entry.id, None)
    reason = _plain(reason)
    exists = bool(parts.store.load([entry.id]))
    for told in [*entry.inputs, *parts.inbox.twins.pop(entry.id, ())]:
        parts.inbox.held_ids.discard(told.id)
        if exists and told.birth is None:
            parts.inbox.inputs.append(told)  # it was meant for the one that exists
            continue
        verdict = born_already(told) if exists else _verdict(told.id, reason)
        parts.out.answer(told.ack, verdict)
        for ack in parts.inbox.followers.pop(told.id, ()):
            parts.out.answer(ack, verdict)


def _standing(snapshot: Snapshot, version: int, state: str, reason: str) -> bytes:
    """The snapshot as it was, but for its state and version."""
    snapshot.version = version
    if state == "paused":
        snapshot.state = state
        snapshot.paused_reason = QUARANTINED
        snapshot.error = {"code": "invariant.broken", "message": reason}
    return encode_snapshot(snapshot)


def _read(body: bytes) -> Snapshot | None:
    """None for unreadable bytes, which are kept as they are."""
    try:
        return decode_snapshot(body)
    except msgspec.MsgspecError:
        return None


def _first_snapshot(store: Store, entry: Ready, hot: Hot, tick: int) -> Snapshot:
    """What is known of an instance whose row somebody left and whose first step failed."""
    snapshot = first_snapshot([told.body for told in entry.inputs], tick)
    if snapshot is not None:
        return snapshot
    row = store.instance(hot.id)  # says enough to show it
    return Snapshot(
        id=hot.id,
        tenant="default" if row is None else row.tenant,
        namespace="default" if row is None else row.namespace,
        definition=hot.definition,
        priority=hot.priority,
        created=tick,
    )


def _journal(entry: Ready, source: str, state: str, reason: str, blobs: dict[str, bytes]) -> bytes:
    inputs = [pack_input(_readable(told.body), blobs) for told in entry.inputs]
    detail: dict[str, Any] = {"reason": QUARANTINED, "error": reason}
    if state == "paused":
        action = "run.paused"
        detail |= {"from": source, "to": state, "trigger": "quarantine"}
    else:
        action = "error.occurred"
    entries = _encode([(action, "", detail)])
    return b'{"in":[%b],"facts":{},"entries":%b}' % (b",".join(inputs), entries)


def _readable(body: bytes) -> bytes:
    """The input itself, or as base64 when it is what made the row unreadable."""
    try:
        msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return _encode({"t": "unreadable", "base64": body})
    return body


def _plain(reason: str) -> str:
    """A text that can be stored whatever is in it."""
    return reason[:_REASON_CHARS].encode("utf-8", "replace").decode()


def _verdict(told_id: str, reason: str) -> Verdict:
    return Verdict(id=told_id, ok=False, code="invariant.broken", message=reason)
