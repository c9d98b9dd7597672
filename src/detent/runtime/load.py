"""Load: the stored bytes of every instance that is to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from detent.model.decision import Verdict
from detent.model.errors import StoreError
from detent.model.ids import partition_of
from detent.runtime.cache import SALT_BYTES, Hot, unborn
from detent.runtime.foreign import ours
from detent.runtime.intake import fetch, kind_of
from detent.runtime.ready import Ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.runtime.parts import Parts


class Loaded(Struct, frozen=True, gc=False):
    """A ready instance with what is stored of it."""

    entry: Ready
    hot: Hot


def load(parts: Parts, picked: Sequence[Ready]) -> list[Loaded]:
    """Pair entries with their stored state; those that cannot move yet are set aside."""
    heads = parts.lease.heads
    try:
        rows = fetch(parts, [entry.id for entry in picked if entry.birth is None])
    except StoreError:
        parts.queue.restore(picked)
        raise
    loaded: list[Loaded] = []
    for entry in picked:
        if entry.birth is not None:
            p = partition_of(entry.id, parts.meta.partitions)
            hot: Hot | None = unborn(entry.birth, p, parts.chance(SALT_BYTES))
        else:
            hot = rows.get(entry.id)
        if hot is None:
            _vanished(parts, entry)
        elif hot.p not in heads:
            _pass_on(parts, entry, hot.p)
        elif hot.version == 0 and entry.birth is None and not _starts(entry):
            parts.queue.set_aside([entry])
            parts.inbox.look_now = True
        else:
            loaded.append(Loaded(entry, hot))
    return loaded


def _starts(entry: Ready) -> bool:
    """Bring the start to the front; False while it has not arrived."""
    inputs = entry.inputs
    for index, told in enumerate(inputs):
        if kind_of(told.body) in ("started", "forked"):
            inputs.insert(0, inputs.pop(index))
            return True
    return False


def _pass_on(parts: Parts, entry: Ready, p: int) -> None:
    """The partition was lost since the input was accepted: its owner gets what we took."""
    parts.queue.done([entry])
    for told in entry.inputs:
        if told.id not in parts.inbox.arrivals:
            ours(parts, told, p)
        parts.inbox.held_ids.discard(told.id)
        parts.inbox.arrivals.discard(told.id)


def _vanished(parts: Parts, entry: Ready) -> None:
    """The row is gone since the input was accepted."""
    parts.queue.done([entry])
    for told in entry.inputs:
        text = f"there is no instance {told.instance}"
        verdict = Verdict(id=told.id, ok=False, code="instance.not_found", message=text)
        parts.out.answer(told.ack, verdict)
        if told.id in parts.inbox.arrivals:
            parts.inbox.refused.append((told.id, verdict))
        else:
            parts.inbox.held_ids.discard(told.id)
