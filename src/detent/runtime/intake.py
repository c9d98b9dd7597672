"""Intake: submissions, arrivals and due waits become ready instances with ordered inputs.

An input is checked against the committed row before it is queued: unknown instances and signals to
ended ones are refused at once, an id seen before is answered as the first time. What is queued here
is numbered and journaled by the commit that steps it; until then nothing is promised to anybody.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from detent.kernel.lifecycle import TERMINAL
from detent.model.decision import Verdict
from detent.model.errors import StoreError
from detent.model.ids import is_timed, partition_of
from detent.model.limits import BATCH_STARTS, TENANT_QUANTUM
from detent.model.link import Submission
from detent.ports.due import DueQuery
from detent.ports.store import Arrival
from detent.runtime.cache import Hot, hot_of
from detent.runtime.dues import AHEAD
from detent.runtime.foreign import ours
from detent.runtime.gate_mail import Mail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from detent.runtime.dues import DueStretch
    from detent.runtime.parts import Parts
    from detent.runtime.ready import Ready

Rows = dict[str, Hot]


TO_GATE = ("ask", "back", "begun", "report")  # left for a gate here, not for an instance


class _Tag(Struct):
    t: str


_tag = msgspec.json.Decoder(_Tag).decode


def kind_of(body: bytes) -> str:
    """The tag of an encoded input."""
    return _tag(body).t


def take_submissions(parts: Parts, tick: int) -> None:
    """Queue what was submitted since the last turn, in the order it came."""
    waiting = parts.inbox.inputs
    if not waiting:
        return
    batch = list(islice(waiting, BATCH_STARTS))
    known = _known_ids(parts, batch)
    rows = fetch(parts, (s.instance for s in batch if s.birth is None or not is_timed(s.instance)))
    for _ in batch:
        waiting.popleft()  # only now: a store that could not be read must not lose them
    get, held = parts.queue.get, parts.inbox.held_ids
    for told in batch:
        if told.id and _seen(parts, told, known):
            continue
        entry = get(told.instance)
        if told.birth is not None:
            entry = _bear(parts, told, entry, rows, tick)
        elif entry is None:
            entry = _admit(parts, told, rows, tick)
        if entry is not None:
            entry.inputs.append(told)
            if told.id:
                held.add(told.id)


def take_arrivals(parts: Parts, tick: int) -> None:
    """Queue our own messages, and what others left if it is time to look."""
    inbox = parts.inbox
    rows = list(inbox.own)
    now, enough = parts.clock.elapsed_ms(), parts.settings.max_instances_per_turn
    # What is queued is read again: so there is no look for more while there is plenty of it.
    more = inbox.polled_full and len(inbox.arrivals) < enough * AHEAD
    if inbox.look_now or more or now >= inbox.poll_at:
        limit = enough + len(inbox.arrivals)
        found = parts.store.arrivals(parts.lease.owned, limit, inbox.after)
        inbox.look_now = False
        inbox.after = found[-1].tenant if found else ""
        inbox.poll_at = now + parts.settings.tick_interval_ms
        inbox.polled_full = len(found) >= limit
        rows += [row for row in found if row.id not in inbox.held_ids]
    if rows:
        _queue_arrivals(parts, rows, tick)
    inbox.own = []


def take_due(parts: Parts, tick: int) -> None:
    """Queue instances whose due tick has come, of every tenant that has some."""
    dues, enough = parts.dues, parts.settings.max_instances_per_turn
    if tick < dues.next:
        return
    try:
        if not dues.known:
            dues.seed(parts.store.stretches(parts.lease.owned))
        fallen = dues.fallen_due(tick, enough)
        if fallen:
            limit = max(enough * AHEAD // len(fallen), TENANT_QUANTUM)
            _read_stretches(parts, [(stretch, limit) for stretch in fallen], tick)
        hungry = dues.hungry(enough)
        if hungry:
            _read_stretches(parts, hungry, tick)
    except StoreError:
        dues.reset()  # what was to be read now is in no list any more
        raise


def _read_stretches(parts: Parts, wanted: Sequence[tuple[DueStretch, int]], tick: int) -> None:
    dues, wake, barred = parts.dues, parts.queue.wake, parts.barred
    queries = [
        DueQuery(stretch.tenant, stretch.priority, stretch.after, limit)
        for stretch, limit in wanted
    ]
    pages = parts.store.due(parts.lease.owned, tick, queries)
    for (stretch, limit), page in zip(wanted, pages, strict=True):
        for row in page.rows:
            if row.id not in barred:
                wake(row.id, row.due, stretch)
        dues.read(stretch, limit, page, tick)


def fetch(parts: Parts, instances: Iterable[str]) -> Rows:
    """The stored state of those that exist, whether or not the cache has room for all of it."""
    rows, missing = parts.cache.split(instances)
    if missing:
        for row in parts.store.load(missing).values():
            hot = rows[row.id] = hot_of(row)
            parts.cache.put(hot)
    return rows


def _known_ids(parts: Parts, batch: Sequence[Submission]) -> dict[str, Verdict | None]:
    ids = [told.id for told in batch if told.id and told.id not in parts.inbox.held_ids]
    return parts.store.verdicts(ids) if ids else {}


def _seen(parts: Parts, told: Submission, known: dict[str, Verdict | None]) -> bool:
    """Whether the id was sent before; its caller gets the first one's answer, now or later."""
    inbox = parts.inbox
    if told.id not in inbox.held_ids and told.id not in known:
        return False
    verdict = known.get(told.id)
    if verdict is not None:
        parts.out.answer(told.ack, verdict)
    else:
        inbox.look_now = True  # it may be an arrival that nobody has looked at yet
        if told.ack:
            inbox.followers.setdefault(told.id, []).append(told.ack)
    return True


def _bear(
    parts: Parts, told: Submission, entry: Ready | None, rows: Rows, tick: int
) -> Ready | None:
    """A start: a new entry, unless its key has made the instance already."""
    instance = told.instance
    if entry is not None and entry.birth is not None:
        parts.inbox.twins.setdefault(instance, []).append(told)
        return None
    if entry is not None or instance in rows:
        parts.out.answer(told.ack, born_already(told))
        return None
    if told.birth is None or not ours(parts, told, partition_of(instance, parts.meta.partitions)):
        return None
    entry = parts.queue.add(instance, told.birth.tenant, told.birth.priority, tick)
    entry.birth = told.birth
    return entry


def _admit(parts: Parts, told: Submission, rows: Rows, tick: int) -> Ready | None:
    """An input for an instance that is not queued: check it against the committed row."""
    hot = rows.get(told.instance)
    if hot is None:
        text = f"there is no instance {told.instance}"
        parts.out.answer(
            told.ack, Verdict(id=told.id, ok=False, code="instance.not_found", message=text)
        )
        return None
    if hot.state in TERMINAL and told.ack and kind_of(told.body) == "signal":
        text = f"the instance is {hot.state}; it takes no signals"
        parts.out.answer(
            told.ack, Verdict(id=told.id, ok=False, code="instance.terminal", message=text)
        )
        return None
    if told.instance in parts.barred:
        parts.out.answer(told.ack, barred(parts, told))
        return None
    if hot.p not in parts.lease.heads and not ours(parts, told, hot.p):
        return None
    return parts.queue.add(told.instance, hot.tenant, hot.priority, tick)


def _queue_arrivals(parts: Parts, rows: Sequence[Arrival], tick: int) -> None:
    inbox, queue = parts.inbox, parts.queue
    loaded = fetch(parts, [row.instance for row in rows])
    for row in rows:
        if row.instance in parts.barred:
            continue
        inbox.held_ids.add(row.id)
        inbox.arrivals.add(row.id)
        if kind_of(row.body) in TO_GATE:
            parts.gates.mail.append(Mail(row.n, row.id, row.body))
            continue
        entry = queue.get(row.instance)
        if entry is not None:
            queue.push(entry)  # it may have been set aside until its start arrives
        else:
            hot = loaded.get(row.instance)
            if hot is None:
                text = f"there is no instance {row.instance}"
                verdict = Verdict(id=row.id, ok=False, code="instance.not_found", message=text)
                inbox.refused.append((row.id, verdict))
                continue
            entry = queue.add(row.instance, hot.tenant, hot.priority, tick)
        entry.inputs.append(Submission(row.instance, row.body, 0, row.id))


def born_already(told: Submission) -> Verdict:
    """The answer to a start whose key was used before."""
    return Verdict(id=told.id, result={"id": told.instance, "deduplicated": True})


def barred(parts: Parts, told: Submission) -> Verdict:
    """The answer to an input for an instance that could not even be quarantined."""
    text = f"the instance cannot be written: {parts.barred[told.instance]}"
    return Verdict(id=told.id, ok=False, code="invariant.broken", message=text)
