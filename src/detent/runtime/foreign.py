"""Inputs for partitions of other writers: left as arrivals, and answered when they were taken.

Whoever only needs durability is answered at once. Whoever asks needs the verdict of the turn that
takes the input in, so the arrival is looked at until that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from detent.model.decision import Verdict
from detent.model.ids import timed_id
from detent.model.limits import ASK_TIMEOUT_MS
from detent.ports.store import NewArrival
from detent.runtime.cache import SALT_BYTES

if TYPE_CHECKING:
    from detent.model.link import Submission
    from detent.runtime.parts import Parts

LOOK_MS = 20  # how often a verdict is looked for
_NEVER_S = 3_600.0


class Asked(NamedTuple):
    """A caller who waits for another writer's verdict."""

    ack: int
    until: int  # by the elapsed time; the caller waits no longer


def ours(parts: Parts, told: Submission, p: int) -> bool:
    """Whether this writer decides for a partition; the rest is left for the one who does."""
    if p in parts.lease.heads:
        return True
    if told.ask and not told.id:
        text = "another writer owns the partition of this instance; ask again"
        parts.out.answer(told.ack, Verdict(id=told.id, ok=False, code="store.fenced", message=text))
        return False
    made = told.id or timed_id(parts.clock.wall_ms(), parts.chance(10))
    salt = parts.chance(SALT_BYTES) if told.birth is not None else b""
    left = NewArrival(made, p, told.instance, told.body, told.birth, salt)
    if told.ask and told.ack:
        until = parts.clock.elapsed_ms() + ASK_TIMEOUT_MS
        parts.inbox.asked[made] = Asked(told.ack, until)
        parts.inbox.foreign.append((left, 0))
    else:
        parts.inbox.foreign.append((left, told.ack))
    return False


def leave_foreign(parts: Parts, tick: int) -> None:
    """Leave inputs for other writers' partitions as arrivals, and answer that they are durable."""
    foreign = parts.inbox.foreign
    if not foreign:
        return
    parts.store.enqueue([left for left, _ in foreign], tick)
    for left, ack in foreign:
        made = {"id": left.instance} if left.birth is not None else None
        parts.out.answer(ack, Verdict(id=left.id, result=made))
    parts.inbox.foreign = []


def answer_asked(parts: Parts) -> None:
    """Answer those whose input another writer has decided on."""
    inbox, now = parts.inbox, parts.clock.elapsed_ms()
    if not inbox.asked or now < inbox.ask_at:
        return
    inbox.ask_at = now + LOOK_MS
    for id, verdict in parts.store.verdicts(list(inbox.asked)).items():
        if verdict is not None:
            parts.out.answer(inbox.asked.pop(id).ack, verdict)
    inbox.asked = {id: asked for id, asked in inbox.asked.items() if now < asked.until}


def dismiss_asked(parts: Parts) -> None:
    """Tell those who still wait that nobody here will hear the answer."""
    text = "the engine is closed; another one decides what was asked"
    for id, asked in parts.inbox.asked.items():
        refused = Verdict(id=id, ok=False, code="engine.closed", message=text)
        parts.out.answer(asked.ack, refused)
    parts.inbox.asked = {}


def seconds_to_asked(parts: Parts) -> float:
    """How long until a verdict is looked for."""
    inbox = parts.inbox
    if not inbox.asked:
        return _NEVER_S
    return max(0, inbox.ask_at - parts.clock.elapsed_ms()) / 1000
