"""Rows that were written instead of a step: an instance that could not be stepped was set aside.

Such a row keeps its inputs untaken, says why, and leaves the snapshot as it was but for its state.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.recording import Body, Row, detail_of
from detent.kernel.standing import QUARANTINED
from detent.model.decision import Decision
from detent.model.inputs import Started, decode_input
from detent.model.snapshot import Snapshot, decode_snapshot, encode_snapshot


def is_quarantine(body: Body) -> bool:
    """Whether a row sets its instance aside."""
    entry = body.entries[0] if body.entries else []
    detail = detail_of(entry)
    if not isinstance(detail, dict) or entry[1] != "":
        return False
    reason, trigger = detail.get("reason"), detail.get("trigger")
    if entry[0] == "run.paused":
        return bool(reason == QUARANTINED and trigger == "quarantine")
    return bool(entry[0] == "error.occurred" and reason == QUARANTINED)


def stand_by(before: bytes | None, body: Body, inputs: list[bytes], row: Row) -> Decision:
    """What such a row leaves: nothing is taken in and nothing moves."""
    detail = body.entries[0][2]
    state = "paused" if body.entries[0][0] == "run.paused" else ""
    snapshot = first_snapshot(inputs, row.tick) if before is None else _read(before)
    stored = before or b""
    if snapshot is not None:
        snapshot.version = row.seq
        if state:
            snapshot.state = state
            snapshot.paused_reason = QUARANTINED
            snapshot.error = {"code": "invariant.broken", "message": detail.get("error", "")}
        stored = encode_snapshot(snapshot)
    shown = snapshot or Snapshot(id="", state=state)
    return Decision(
        instance=shown.id,
        snapshot=stored,
        version=row.seq,
        state=shown.state,
        priority=shown.priority,
        due=None,
        busy=bool(shown.effects),
        journal=row.body or b"",
        tick=row.tick,
        definition=shown.definition,
        more=shown.more and shown.state not in TERMINAL,
    )


def _read(body: bytes) -> Snapshot | None:
    try:
        return decode_snapshot(body)
    except msgspec.MsgspecError:
        return None  # unreadable bytes are kept as they are


def first_snapshot(inputs: Sequence[bytes], tick: int) -> Snapshot | None:
    """What an instance set aside before its first step is left with, from its start alone.

    None when there is no start to read. Writing and replaying both begin here: the encoder leaves a
    default out by identity, so equal values from elsewhere would give other bytes.
    """
    try:
        told = decode_input(inputs[0])
    except (msgspec.MsgspecError, IndexError):
        return None
    if not isinstance(told, Started):
        return None
    return Snapshot(
        id=told.instance,
        tenant=told.tenant,
        namespace=told.namespace,
        definition=told.definition,
        priority=told.priority,
        created=tick,
        parent=None if told.parent is None else msgspec.to_builtins(told.parent),
    )
