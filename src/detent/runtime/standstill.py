"""Standing still: callers are refused, what nobody can send again is kept, and the rest is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.decision import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.model.link import Submission
    from detent.runtime.parts import Parts
    from detent.runtime.ready import Ready

LOST = ("store.fenced", "store.owned")  # another writer has the partitions


def stand_still(parts: Parts, code: str, message: str) -> None:
    """Hold from now on, or hold longer."""
    pause_ms = parts.settings.lease_retry_ms if code in LOST else 0
    if parts.hold.begin(code, message, parts.clock.elapsed_ms(), pause_ms):
        parts.out.news = True
    refuse_callers(parts)


def go_on(parts: Parts) -> None:
    """The hold, if there was one, is over."""
    if parts.hold.code and parts.hold.end():
        parts.out.news = True


def refuse_callers(parts: Parts) -> None:
    """Answer everybody who waits with the code of the hold; nothing of theirs was written."""
    inbox = parts.inbox
    _refuse(parts, [told for told in inbox.inputs if told.ack > 0])
    kept = [told for told in inbox.inputs if told.ack <= 0]
    inbox.inputs.clear()
    inbox.inputs.extend(kept)
    for entry in parts.queue.entries():
        if any(told.ack > 0 for told in entry.inputs):
            _refuse_entry(parts, entry)
    for twins in inbox.twins.values():
        _refuse(parts, twins)
    inbox.twins.clear()
    for told_id, acks in inbox.followers.items():
        for ack in acks:
            parts.out.answer(ack, _verdict(parts, told_id))
    inbox.followers.clear()


def _refuse_entry(parts: Parts, entry: Ready) -> None:
    refused = [told for told in entry.inputs if told.ack > 0]
    kept = [told for told in entry.inputs if told.ack <= 0]
    if entry.birth is not None and any(told.birth is not None for told in refused):
        refused, kept = entry.inputs, []  # what was sent to one that is not born goes with it
    entry.inputs = kept
    _refuse(parts, refused)
    if not kept and (entry.birth is not None or not entry.due):
        parts.queue.drop(entry.id)


def _refuse(parts: Parts, refused: Iterable[Submission]) -> None:
    for told in refused:
        parts.inbox.held_ids.discard(told.id)
        parts.out.answer(told.ack, _verdict(parts, told.id))


def _verdict(parts: Parts, told_id: str) -> Verdict:
    return Verdict(id=told_id, ok=False, code=parts.hold.code, message=parts.hold.message)
