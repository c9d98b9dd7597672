"""Batch: the decisions of a turn gathered into one `Commit` value, all bytes and digests ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.definition.system import WEBHOOK
from detent.kernel.chain import digest_of, head_of, root_of, snapshot_digest_of
from detent.model.decision import Decision, Doubt, Message, Order, Verdict, WorkItem
from detent.model.ids import partition_of, work_id
from detent.ports.store import (
    Commit,
    Flight,
    GateDue,
    GateRow,
    InstanceChange,
    NewArrival,
    PartitionTurn,
    Seal,
)
from detent.runtime.cache import SALT_BYTES, Hot
from detent.runtime.intake import born_already
from detent.runtime.own_lists import add_birth, add_standing
from detent.runtime.routing import routed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.own import DeliveryRow, EventRow
    from detent.runtime.decide import Done
    from detent.runtime.parts import Parts
    from detent.runtime.ready import Ready


MOVED = b'["run.'  # in a journal body: the instance may have changed its state


class Batch:
    """What one commit writes, and what may be told once it is durable."""

    __slots__ = (
        "alone",
        "arrivals",
        "blobs",
        "called_off",
        "changes",
        "deliveries",
        "done",
        "doubts",
        "dues",
        "events",
        "gate_dues",
        "gate_rows",
        "heads",
        "marks",
        "orders",
        "recalled",
        "receipts",
        "replies",
        "roots",
        "seal",
        "settled",
        "taken",
        "tick",
        "withdrawn",
        "work",
    )

    def __init__(self, done: Sequence[Done], tick: int, *, alone: bool) -> None:
        self.done = done
        self.tick = tick
        self.alone = alone  # one half of a turn that failed: it carries nothing but its instances
        self.changes: list[InstanceChange] = []
        self.heads: dict[int, list[bytes]] = {}
        self.roots: dict[int, tuple[int, bytes]] = {}  # turn and root it leaves
        self.dues: list[tuple[int, int | None]] = []
        self.arrivals: list[NewArrival] = []
        self.taken: list[tuple[str, Verdict | None]] = []
        self.replies: list[tuple[int, Verdict]] = []
        self.receipts: list[int] = []  # of outcomes this commit takes in
        self.orders: list[Order] = []
        self.withdrawn: list[str] = []
        self.recalled: list[str] = []
        self.settled: list[str] = []
        self.doubts: list[tuple[str, Doubt]] = []
        self.blobs: list[tuple[str, str, bytes]] = []
        self.marks: list[Flight] = []
        self.seal: Seal | None = None
        self.gate_rows: list[GateRow] = []
        self.gate_dues: list[GateDue] = []
        self.work: list[WorkItem] = []
        self.called_off: list[str] = []  # ids of work items
        self.events: list[EventRow] = []
        self.deliveries: list[DeliveryRow] = []

    def empty(self) -> bool:
        """Whether there is nothing to write."""
        written = self.changes or self.dues or self.taken or self.marks
        return not (written or self.gate_rows or self.gate_dues or self.arrivals)


def gather(parts: Parts, batch: Batch) -> None:
    """Lay out what the decisions write, in turn order."""
    messages: list[Message] = []
    twins = parts.inbox.twins
    for done in batch.done:
        entry, hot, decision = done.entry, done.hot, done.decision
        if decision.journal:
            _add_change(batch, hot, decision)
        elif decision.due != hot.due:
            batch.dues.append((hot.n, decision.due))
            batch.heads.setdefault(hot.p, [])
        answers = False
        for told in entry.inputs:
            if told.ack < 0:
                batch.receipts.append(told.ack)
            elif told.id or told.ack:
                answers = True
        if answers:
            _add_answers(parts, batch, entry, decision)
        if twins and entry.id in twins:
            batch.replies += [
                (twin.ack, born_already(twin)) for twin in twins[entry.id] if twin.ack
            ]
        if decision.messages:
            messages += decision.messages
    if messages:
        _add_messages(parts, batch, messages)
    if batch.work:
        batch.work = routed(parts.store, batch.work)
    _add_gates(parts, batch)
    if not batch.alone:
        batch.taken += parts.inbox.refused
        if parts.marks.pending:
            _add_marks(parts, batch)


def commit_value(parts: Parts, batch: Batch) -> Commit:
    """The value the store commits, fenced on every partition it touches."""
    lease = parts.lease
    turns: list[PartitionTurn] = []
    # Ids alone belong to no partition's chain. One fence of ours is enough for them: it proves that
    # this process still holds a lease.
    touched = batch.heads or {lease.owned[0]: []}
    for p in sorted(touched):
        head = lease.heads[p]
        heads = b"".join(touched[p])
        root = root_of(head.root, p, head.turn + 1, batch.tick, heads)
        batch.roots[p] = (head.turn + 1, root)
        turns.append(PartitionTurn(p, head.fence_epoch, head.turn, root, heads))
    if parts.seals.due(lease.turns(), len(turns)):
        roots = {p: head.root for p, head in lease.heads.items()}
        roots |= {p: root for p, (_, root) in batch.roots.items()}
        batch.seal = parts.seals.next(batch.tick, roots)
    wall = parts.clock.wall_ms()
    return Commit(
        tick=batch.tick,
        wall_ms=wall,
        lease_until_ms=wall + parts.settings.lease_ttl_ms,
        partitions=turns,
        changes=batch.changes,
        arrivals=batch.arrivals,
        taken=batch.taken,
        marks=batch.marks,
        tombstones=batch.withdrawn,
        settled=batch.settled,
        doubts=batch.doubts,
        blobs=batch.blobs,
        seal=batch.seal,
        dues=batch.dues,
        gate_rows=batch.gate_rows,
        gate_dues=batch.gate_dues,
        work=batch.work,
        called_off=batch.called_off,
        events=batch.events,
        deliveries=batch.deliveries,
    )


def _add_marks(parts: Parts, batch: Batch) -> None:
    """Start marks, each fenced by the partition of its effect.

    Without that fence a writer that lost the partition could mark what its new owner has called and
    settled already, and call it again.
    """
    marks, of = parts.marks, parts.meta.partitions
    parts.out.lost += marks.strays(parts.lease.heads, of)
    gone = [*batch.withdrawn, *batch.settled]
    batch.marks = marks.flights(parts.lease.owner.id, batch.tick, gone)
    for p in sorted(marks.partitions(of)):
        batch.heads.setdefault(p, [])


def _add_gates(parts: Parts, batch: Batch) -> None:
    """What gates changed, and what they have to say to other writers."""
    gates = parts.gates
    batch.gate_rows, batch.gate_dues, homes = gates.rows()
    for home in sorted(homes):
        batch.heads.setdefault(home, [])
    batch.arrivals += gates.outgoing
    batch.taken += [(mail.id, Verdict(id=mail.id)) for mail in gates.read]


def _add_change(batch: Batch, hot: Hot, decision: Decision) -> None:
    tick, due, journal, snapshot = batch.tick, decision.due, decision.journal, decision.snapshot
    version = decision.version
    snapshot_digest = snapshot_digest_of(snapshot)
    digest = digest_of(hot.salt, journal)
    head = head_of(hot.head, version, tick, snapshot_digest, digest)
    heads = batch.heads.get(hot.p)
    if heads is None:
        batch.heads[hot.p] = [head]
    else:
        heads.append(head)
    stored = hot.due
    # A stored due tick may be too early, never too late: moving it later is left to the wake-up.
    changed = (
        decision.state != hot.state
        or decision.busy != hot.busy
        or (due is not None and (stored is None or due < stored))
        or (stored is not None and stored <= tick)
        or decision.priority != hot.priority
        or decision.definition != hot.definition
        or hot.n < 0
    )
    batch.changes.append(
        InstanceChange(
            hot.n,
            hot.id,
            hot.p,
            (decision.birth or hot.birth) if hot.n < 0 else None,
            hot.salt,
            changed,
            decision.state,
            decision.priority,
            due,
            decision.busy,
            decision.definition,
            version,
            snapshot,
            snapshot_digest,
            tick,
            digest,
            journal,
            head,
            hot.tenant if MOVED in journal else None,
        )
    )
    if decision.orders:
        batch.orders += decision.orders
    _add_rest(batch, hot, decision)


def _add_rest(batch: Batch, hot: Hot, decision: Decision) -> None:
    """What most steps do not have."""
    if decision.settled:
        batch.settled += decision.settled
    if decision.withdrawn:
        batch.withdrawn += decision.withdrawn
    if decision.recalled:
        batch.recalled += decision.recalled
    if decision.doubts:
        batch.doubts += [(hot.id, doubt) for doubt in decision.doubts]
    if decision.blobs:
        batch.blobs += [(hot.id, digest, body) for digest, body in decision.blobs.items()]
    if decision.work:
        batch.work += decision.work
    if decision.called_off:
        batch.called_off += map(work_id, decision.called_off)
    if decision.events or hot.definition == WEBHOOK.hash:
        add_standing(batch, hot, decision)


def _add_answers(parts: Parts, batch: Batch, entry: Ready, decision: Decision) -> None:
    """The kernel's verdict where it gave one, else that the input is durable."""
    followers = parts.inbox.followers
    given = {verdict.id: verdict for verdict in decision.verdicts}
    for told in entry.inputs:
        verdict = given.get(told.id) if told.id else None
        if verdict is None:
            made = {"id": told.instance} if told.birth is not None else None
            verdict = Verdict(id=told.id, result=made)
        if told.ack > 0:
            batch.replies.append((told.ack, verdict))
        if told.id:
            batch.taken.append((told.id, verdict))
            batch.replies += [(ack, verdict) for ack in followers.get(told.id, ())]


def _add_messages(parts: Parts, batch: Batch, messages: Sequence[Message]) -> None:
    """Messages as arrivals; one whose id was left before is not left again."""
    wanted = {message.id: message for message in messages}
    known = parts.store.verdicts(list(wanted))
    for message in wanted.values():
        if message.id not in known:
            salt = parts.chance(SALT_BYTES) if message.start is not None else b""
            p = partition_of(message.to, parts.meta.partitions)
            add_birth(batch, message)
            batch.arrivals.append(
                NewArrival(message.id, p, message.to, message.body, message.start, salt)
            )
