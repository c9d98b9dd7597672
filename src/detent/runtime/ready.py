"""The ready queue: which instances move next, and the inputs they wait with.

Order (CORE-SCH-2, CORE-SCH-3, SEQ-LIM-5): priority first; within a priority the tenants take turns
(see `shares`); of a tenant first what was left over from an earlier turn, then by the tick an
instance became ready at (its due tick, or the tick of its oldest input), then by id. So that
nothing starves, every `LOWER_SLOT`-th slot goes to a lower priority, to the one whose next instance
is oldest: among instances of one tenant, one with m older ones before it moves within
LOWER_SLOT x (m + 1) slots, whatever else comes; t tenants of its priority make that t times as
many, and a quantum of each. A slot counts only when it was used, so short turns do not skip it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from msgspec import Struct, field

from detent.model.decision import Birth
from detent.model.link import Submission
from detent.runtime.dues import DueStretch
from detent.runtime.shares import PRIORITIES, Share, Shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.runtime.shares import Key

LOWER_SLOT = 8


class Ready(Struct, gc=False, eq=False):
    """An instance that is to move, with its inputs in the order of their sequence."""

    id: str
    tenant: str
    priority: int
    tick: int
    round: int
    inputs: list[Submission] = field(default_factory=list)
    birth: Birth | None = None
    due: DueStretch | None = None  # where the store's due index has it, if that named it
    share: Share | None = None  # which was charged for its place, while it is out


class ReadyQueue:
    """Every ready instance once."""

    __slots__ = ("_entries", "_shares", "_slot", "round")

    def __init__(self) -> None:
        self._entries: dict[str, Ready] = {}
        self._shares = [Shares() for _ in range(PRIORITIES)]
        self._slot = 0
        self.round = 0  # one per turn

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return any(shares.tenants for shares in self._shares)

    def get(self, instance: str) -> Ready | None:
        """The entry of an instance."""
        return self._entries.get(instance)

    def entries(self) -> list[Ready]:
        """All entries, in the order they came."""
        return list(self._entries.values())

    def add(self, instance: str, tenant: str, priority: int, tick: int) -> Ready:
        """A new entry, ready as of a tick."""
        rank = priority if 0 <= priority < PRIORITIES else min(max(priority, 0), PRIORITIES - 1)
        entry = self._entries[instance] = Ready(instance, tenant, rank, tick, self.round)
        heappush(self._shares[rank].of(tenant).heap, (self.round, tick, instance))
        return entry

    def wake(self, instance: str, due: int, stretch: DueStretch) -> None:
        """Note that an instance is due, by its row in a stretch of the due index."""
        entry = self._entries.get(instance)
        if entry is None:
            entry = self.add(instance, stretch.tenant, stretch.priority, due)
        elif due < entry.tick:
            entry.tick = due
            self.push(entry)
        if entry.due is not stretch:
            if entry.due is not None:
                entry.due.open -= 1
            entry.due = stretch
            stretch.open += 1

    def push(self, entry: Ready) -> None:
        """Let an entry have a turn, whether or not it was set aside."""
        share = self._shares[entry.priority].of(entry.tenant)
        heappush(share.heap, (entry.round, entry.tick, entry.id))

    def drop(self, instance: str) -> None:
        """Forget an entry."""
        entry = self._entries.pop(instance, None)
        if entry is not None:
            self.done([entry])

    def pick(self, limit: int) -> list[Ready]:
        """Take up to `limit` entries out, in the order in which they are to be decided."""
        entries = self._entries
        used = [shares for shares in self._shares if shares.tenants]
        if not used:
            return []
        if len(used) == 1 and len(used[0].tenants) == 1:
            if len(entries) <= limit:
                return self._pick_all(used[0])
            return self._pick_only(used[0], limit)
        picked: list[Ready] = []
        while len(picked) < limit:
            shares = self._next_shares()
            if shares is None:
                break
            share = shares.next()
            key = heappop(share.heap)
            if not share.heap:
                shares.leave(share)
            entry = entries.get(key[2])
            if entry is None or entry.tick != key[1] or entry.round != key[0]:
                continue  # a key that was replaced, or the entry is set aside
            del entries[entry.id]
            shares.charge(share)
            self._slot += 1
            entry.share = share
            picked.append(entry)
        return picked

    def take(self, instances: Sequence[str]) -> list[Ready]:
        """Take these entries out, whether or not they were set aside."""
        found = [self._entries.pop(instance, None) for instance in instances]
        return [entry for entry in found if entry is not None]

    def done(self, entries: Sequence[Ready]) -> None:
        """These entries have moved."""
        for entry in entries:
            if entry.due is not None:
                entry.due.open -= 1
                entry.due = None

    def restore(self, entries: Sequence[Ready]) -> None:
        """Put back what did not move; it keeps its place."""
        self._slot = max(0, self._slot - len(entries))
        for priority, shares in enumerate(self._shares):
            out = [each.share for each in entries if each.share and each.priority == priority]
            if out:
                shares.give_back(out)
        self.set_aside(entries)
        for entry in entries:
            self.push(entry)

    def set_aside(self, entries: Sequence[Ready]) -> None:
        """Keep entries and collect their inputs, but give them no turn until pushed or taken."""
        for entry in entries:
            entry.share = None
            newer = self._entries.get(entry.id)
            if newer is not None:
                entry.inputs += newer.inputs
                if entry.due is None:
                    entry.due = newer.due
                else:
                    self.done([newer])
            self._entries[entry.id] = entry

    def _pick_all(self, shares: Shares) -> list[Ready]:
        """All there is, of one tenant and priority: nobody has to be served before another."""
        share = shares.next()
        shares.leave(share)
        picked: list[Ready] = []
        for key in sorted(share.heap):
            entry = self._entries.get(key[2])
            if entry is not None and entry.tick == key[1] and entry.round == key[0]:
                del self._entries[entry.id]
                picked.append(entry)
        return picked

    def _pick_only(self, shares: Shares, limit: int) -> list[Ready]:
        """The next ones of the only tenant and priority there is."""
        share = shares.next()
        heap, entries = share.heap, self._entries
        picked: list[Ready] = []
        while heap and len(picked) < limit:
            round_, tick, instance = heappop(heap)
            entry = entries.get(instance)
            if entry is not None and entry.tick == tick and entry.round == round_:
                del entries[instance]
                entry.share = share
                picked.append(entry)
        if picked:
            shares.charge_only(share, len(picked))
            self._slot += len(picked)
        if not heap:
            shares.leave(share)
        return picked

    def _next_shares(self) -> Shares | None:
        every = self._shares
        top = PRIORITIES - 1
        while not every[top].tenants:
            if not top:
                return None
            top -= 1
        if self._slot % LOWER_SLOT == LOWER_SLOT - 1:
            lower = [shares for shares in every[:top] if shares.tenants]
            if lower:
                return min(lower, key=_first)
        return every[top]


def _first(shares: Shares) -> Key:
    return shares.next().heap[0]
