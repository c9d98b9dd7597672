"""Commit: one transaction per turn, and what follows from its success or failure.

Nothing is told to anybody, and no cached entry changes, before the store has said yes. After an
error the cache is dropped and the heads are read again: they tell whether the commit happened all
the same (see `setback`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.kernel.lifecycle import TERMINAL
from detent.model.errors import StoreError
from detent.ports.store import Arrival, Committed
from detent.runtime import failpoints
from detent.runtime.batch import Batch, commit_value, gather
from detent.runtime.cache import unborn
from detent.runtime.figures import count_turn
from detent.runtime.setback import overcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.runtime.decide import Done
    from detent.runtime.parts import Parts


def commit(parts: Parts, done: Sequence[Done], tick: int, *, alone: bool) -> bool:
    """Write a turn; True when something was written."""
    batch = Batch(done, tick, alone=alone)
    try:
        gather(parts, batch)
        if batch.empty():
            parts.queue.done([each.entry for each in done])
            parts.gates.committed()
            return False
        value = commit_value(parts, batch)
        failpoints.hit("between_outcome_and_commit")
        failpoints.hit("before_begin")
        committed = parts.store.commit(value)
    except Exception as error:  # noqa: BLE001 - an adapter may raise anything; none may be lost
        landed = overcome(parts, batch, error)
        if landed is None:
            return False
        committed = landed
    parts.contradicted = False
    failpoints.hit("after_commit")
    settle(parts, batch, committed)
    if committed.marked:
        failpoints.hit("after_mark")
    return True


def settle_unsure(parts: Parts) -> bool:
    """Find out whether a commit of unknown fate happened; True when that is known."""
    batch = parts.unsure
    if batch is None:
        return True
    asked = StoreError("store.unavailable", "the last commit's answer was lost")
    landed = overcome(parts, batch, asked)
    if landed is not None:
        settle(parts, batch, landed)
    return landed is not None


def settle(parts: Parts, batch: Batch, committed: Committed) -> None:
    """The commit is durable: move the heads, the cache and the queue on, and fill the outbox."""
    lease, cache, out = parts.lease, parts.cache, parts.out
    for p, (turn, root) in batch.roots.items():
        head = lease.heads.get(p)
        if head is not None:  # else it was taken over right after this commit
            head.turn = turn
            head.root = root
    lease.tick = max(lease.tick, batch.tick)
    if batch.seal is not None:
        parts.seals.committed(batch.seal)
    numbers, note = committed.numbers, parts.dues.note
    changes = iter(batch.changes)
    for done in batch.done:
        hot, decision = done.hot, done.decision
        written = True
        if not decision.journal:
            hot.due = decision.due
        else:
            change = next(changes)
            hot.head = change.head
            hot.version = change.version
            hot.body = change.snapshot
            written = change.row_changed
            if written:
                if decision.state != hot.state or hot.n < 0:
                    out.moved.append((hot.id, decision.state))
                if hot.n < 0:
                    hot.n = numbers[hot.id]
                    hot.birth = None
                hot.state = change.state
                hot.definition = change.definition
                hot.busy = change.busy
                hot.priority = change.priority
                hot.due = change.due
            if change.state in TERMINAL:
                cache.drop(hot.id)
            else:
                cache.put(hot)
        if decision.more:
            stretch = parts.dues.stretch(hot.tenant, hot.priority)
            parts.queue.wake(hot.id, batch.tick, stretch)
        elif written and decision.due is not None:
            note(hot.tenant, hot.priority, decision.due, batch.tick)
    out.orders += batch.orders
    if parts.recovery.active:
        parts.recovery.ordered.update(order.key for order in batch.orders)
    out.recalled += batch.recalled
    out.work += [(item.handler, item.queue, item.tenant) for item in batch.work]
    out.acks += batch.replies
    out.taken += batch.receipts
    count_turn(parts, batch.done)
    _settle_inbox(parts, batch)
    _settle_marks(parts, batch, committed.marked)
    parts.gates.committed(batch.gate_dues)
    if batch.arrivals:
        _keep_messages(parts, batch, committed)


def _settle_inbox(parts: Parts, batch: Batch) -> None:
    """Forget the ids and callers that are answered."""
    inbox = parts.inbox
    parts.queue.done([done.entry for done in batch.done])
    for told_id, _ in batch.taken:
        inbox.held_ids.discard(told_id)
        inbox.arrivals.discard(told_id)
        inbox.followers.pop(told_id, None)
    if not batch.alone:
        inbox.refused = []
    if inbox.twins:
        for done in batch.done:
            inbox.twins.pop(done.entry.id, None)
    for done in batch.done if parts.condemned else ():
        parts.condemned.pop(done.entry.id, None)


def _settle_marks(parts: Parts, batch: Batch, won: Sequence[str]) -> None:
    if batch.alone or not parts.marks.pending:
        return
    marked, lost = parts.marks.settle(won)
    parts.out.marked += marked
    if lost:
        _answer_again(parts, lost)


def _answer_again(parts: Parts, wanted: Sequence[str]) -> None:
    """Marks not won: those our dispatcher has already are answered with their number.

    It asks only for calls it has not made, so it asked an earlier writer and was not answered.
    """
    try:
        stored = parts.store.flights(wanted)
    except StoreError:
        parts.marks.request(wanted)  # the turn itself is durable: these are asked again by the next
        return
    for key in wanted:
        flight = stored.get(key)
        if flight is not None and parts.our_mark(flight):
            parts.out.marked.append((key, flight.dispatch))
        else:
            parts.out.lost.append(key)


def _keep_messages(parts: Parts, batch: Batch, committed: Committed) -> None:
    """Messages to our own partitions are taken next turn without reading them back."""
    inbox = parts.inbox
    born = frozenset(committed.born)
    for left in batch.arrivals:
        if left.p not in parts.lease.heads:
            continue
        n = committed.numbers.get(left.instance)
        if left.birth is not None and n is not None and left.instance in born:
            parts.cache.put(unborn(left.birth, left.p, left.salt, n))
        inbox.own.append(Arrival(0, left.id, left.p, left.instance, left.body))
        inbox.held_ids.add(left.id)
        inbox.arrivals.add(left.id)
