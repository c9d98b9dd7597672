"""Setbacks: what a writer does after a commit that raised.

The cache is dropped and the heads are read again; they tell whether the commit happened all the
same (a connection may be lost after COMMIT). If it did not, everything that was to move goes back
to its place. A full or unreachable store makes the writer hold, a lost fence makes it acquire anew;
anything else is one instance's poison: the turn is halved until the culprit stands alone, and that
one is quarantined. One that cannot even be quarantined is left out until the next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.errors import DetentError
from detent.ports.store import Committed
from detent.runtime.holdings import can_go_on, leave
from detent.runtime.intake import barred, born_already
from detent.runtime.standstill import LOST, stand_still

if TYPE_CHECKING:
    from detent.runtime.batch import Batch
    from detent.runtime.parts import Parts

# An error of no known code, a row the store cannot keep, a rule broken: somebody's poison.
POISON = ("", "store.refused", "store.conflict", "invariant.broken")


def overcome(parts: Parts, batch: Batch, error: Exception) -> Committed | None:
    """Put things right after a commit error; what was committed, if it was after all."""
    parts.cache.clear()
    parts.seals.forget()
    parts.gates.drop()
    parts.dues.reset()
    parts.unsure = None
    code = error.code if isinstance(error, DetentError) else ""
    text = f"{type(error).__name__}: {error}"
    gone: list[int] = []
    landed: Committed | None = None
    try:
        gone = parts.lease.reread()
        if batch.roots and _happened(parts, batch):
            landed = _look_up(parts, batch)
    except Exception as unreadable:  # noqa: BLE001 - as the commit itself, and nothing is lost yet
        parts.unsure = batch
        stand_still(parts, "store.unavailable", f"{text}; then {unreadable}")
        parts.lost |= bool(gone)
        return None
    if landed is None:
        _put_back(parts, batch)
    if gone:
        leave(parts, gone)
    if landed is not None or (gone and can_go_on(parts)):
        return landed  # without what is gone the rest is decided anew, or it had happened before
    if gone or code in LOST:
        parts.lost = True
        stand_still(parts, "store.fenced", text)
    elif code == "store.conflict" and _overtaken(error):
        pass  # a call began elsewhere before it was withdrawn: the next turn is told so
    elif code == "store.conflict" and not parts.contradicted:
        _drop_born(parts, batch)
        parts.contradicted = True  # the cache was wrong: decide anew, once
    elif code in POISON and batch.done:
        _halve(parts, batch, text)
    else:
        stand_still(parts, code or "store.unavailable", text)
    return None


def _overtaken(error: Exception) -> bool:
    return isinstance(error, DetentError) and error.details.get("reason") == "flight"


def _happened(parts: Parts, batch: Batch) -> bool:
    """Whether the heads, read again, or the turns of what went to others, are the batch's."""
    heads = parts.lease.heads
    for p, left in batch.roots.items():
        if p in heads:
            if (heads[p].turn, heads[p].root) != left:
                return False
        elif [(row.n, row.root) for row in parts.store.turns(p, left[0] - 1, 1)] != [left]:
            return False
    return True


def _look_up(parts: Parts, batch: Batch) -> Committed:
    """What the store would have answered, had the answer arrived."""
    born = [change.id for change in batch.changes if change.n < 0]
    numbers = {id_: row.n for id_, row in parts.store.load(born).items()} if born else {}
    wanted = {flight.effect: flight for flight in batch.marks}
    stored = parts.store.flights(list(wanted)) if wanted else {}
    return Committed(numbers, [key for key, row in stored.items() if row == wanted[key]])


def _put_back(parts: Parts, batch: Batch) -> None:
    entries = [done.entry for done in batch.done]
    if batch.alone:
        parts.queue.set_aside(entries)
        parts.groups.append([entry.id for entry in entries])
    else:
        parts.queue.restore(entries)


def _drop_born(parts: Parts, batch: Batch) -> None:
    """Answer starts whose instance somebody else has made meanwhile; the rest is decided anew."""
    births = [done.entry for done in batch.done if done.entry.birth is not None]
    there = parts.store.load([entry.id for entry in births]) if births else {}
    for entry in births:
        if entry.id in there:
            entry.birth = None
            twins = parts.inbox.twins.pop(entry.id, [])
            for told in [*(told for told in entry.inputs if told.birth is not None), *twins]:
                parts.out.answer(told.ack, born_already(told))
                parts.inbox.held_ids.discard(told.id)
            entry.inputs = [told for told in entry.inputs if told.birth is None]


def _halve(parts: Parts, batch: Batch, reason: str) -> None:
    """Try each half alone; what fails alone is quarantined, then left out."""
    if batch.alone:
        parts.groups.pop()
    ids = [done.entry.id for done in batch.done]
    parts.queue.set_aside(parts.queue.take(ids))
    if len(ids) > 1:
        middle = len(ids) // 2
        parts.groups += [ids[middle:], ids[:middle]]
    elif ids[0] not in parts.condemned:
        parts.condemned[ids[0]] = reason
        parts.groups.append(ids)
    else:
        _bar(parts, ids[0], reason)


def _bar(parts: Parts, instance: str, reason: str) -> None:
    parts.condemned.pop(instance)
    parts.barred[instance] = reason
    entry = parts.queue.get(instance)
    parts.queue.drop(instance)
    for told in entry.inputs if entry is not None else ():
        parts.out.answer(told.ack, barred(parts, told))
