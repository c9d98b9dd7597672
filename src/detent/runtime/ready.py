"""The ready queue: which instances move next, and the inputs they wait with.

Order (CORE-SCH-2, CORE-SCH-3): priority first; within a priority what was left over from an
earlier turn, then the tick an instance became ready at (its due tick, or the tick of its oldest
input), then its id. So that nothing starves, every `LOWER_SLOT`-th slot goes to the oldest instance
of a lower priority: one with m older ones before it moves within LOWER_SLOT x (m + 1) slots,
whatever else comes. A slot counts only when it was used, so short turns do not skip it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import Birth
    from detent.model.link import Submission

LOWER_SLOT = 8
PRIORITIES = 4

_Key = tuple[int, int, str]  # round, tick, instance


class Ready:
    """An instance that is to move, with its inputs in the order of their sequence."""

    __slots__ = ("birth", "due", "id", "inputs", "priority", "round", "tick")

    def __init__(self, instance: str, priority: int, tick: int, round_: int) -> None:
        self.id = instance
        self.priority = priority
        self.tick = tick
        self.round = round_
        self.inputs: list[Submission] = []
        self.birth: Birth | None = None
        self.due = False  # found by the store's due index


class ReadyQueue:
    """Every ready instance once."""

    __slots__ = ("_entries", "_heaps", "_slot", "due_open", "round")

    def __init__(self) -> None:
        self._entries: dict[str, Ready] = {}
        self._heaps: list[list[_Key]] = [[] for _ in range(PRIORITIES)]
        self._slot = 0
        self.round = 0  # one per turn
        self.due_open = 0  # entries the due index gave that have not moved yet

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return any(self._heaps)

    def get(self, instance: str) -> Ready | None:
        """The entry of an instance."""
        return self._entries.get(instance)

    def entries(self) -> list[Ready]:
        """All entries, in the order they came."""
        return list(self._entries.values())

    def add(self, instance: str, priority: int, tick: int) -> Ready:
        """A new entry, ready as of a tick."""
        entry = Ready(instance, min(max(priority, 0), PRIORITIES - 1), tick, self.round)
        self._entries[instance] = entry
        heappush(self._heaps[entry.priority], (entry.round, tick, instance))
        return entry

    def wake(self, instance: str, priority: int, due: int) -> None:
        """Note that the due index named an instance."""
        entry = self._entries.get(instance)
        if entry is None:
            entry = self.add(instance, priority, due)
        elif due < entry.tick:
            entry.tick = due
            heappush(self._heaps[entry.priority], (entry.round, due, instance))
        if not entry.due:
            entry.due = True
            self.due_open += 1

    def push(self, entry: Ready) -> None:
        """Let an entry have a turn, whether or not it was set aside."""
        heappush(self._heaps[entry.priority], (entry.round, entry.tick, entry.id))

    def drop(self, instance: str) -> None:
        """Forget an entry."""
        entry = self._entries.pop(instance, None)
        if entry is not None and entry.due:
            self.due_open -= 1

    def pick(self, limit: int) -> list[Ready]:
        """Take up to `limit` entries out, in the order in which they are to be decided."""
        if len(self._entries) <= limit and sum(1 for heap in self._heaps if heap) == 1:
            return self._pick_all()
        picked: list[Ready] = []
        while len(picked) < limit:
            heap = self._next_heap()
            if heap is None:
                break
            key = heappop(heap)
            entry = self._entries.get(key[2])
            if entry is None or entry.tick != key[1] or entry.round != key[0]:
                continue  # a key that was replaced, or the entry is set aside
            del self._entries[entry.id]
            self._slot += 1
            picked.append(entry)
        return picked

    def take(self, instances: Sequence[str]) -> list[Ready]:
        """Take these entries out, whether or not they were set aside."""
        found = [self._entries.pop(instance, None) for instance in instances]
        return [entry for entry in found if entry is not None]

    def done(self, entries: Sequence[Ready]) -> None:
        """These entries have moved."""
        for entry in entries:
            if entry.due:
                self.due_open -= 1

    def restore(self, entries: Sequence[Ready]) -> None:
        """Put back what did not move; it keeps its place."""
        self._slot = max(0, self._slot - len(entries))
        self.set_aside(entries)
        for entry in entries:
            self.push(entry)

    def set_aside(self, entries: Sequence[Ready]) -> None:
        """Keep entries and collect their inputs, but give them no turn until pushed or taken."""
        for entry in entries:
            newer = self._entries.get(entry.id)
            if newer is not None:
                entry.inputs += newer.inputs
                self.due_open -= newer.due and entry.due
                entry.due = entry.due or newer.due
            self._entries[entry.id] = entry

    def _pick_all(self) -> list[Ready]:
        (heap,) = (heap for heap in self._heaps if heap)
        keys = sorted(heap)
        heap.clear()
        picked: list[Ready] = []
        for key in keys:
            entry = self._entries.get(key[2])
            if entry is not None and entry.tick == key[1] and entry.round == key[0]:
                del self._entries[entry.id]
                picked.append(entry)
        return picked

    def _next_heap(self) -> list[_Key] | None:
        heaps = self._heaps
        top = next((p for p in range(PRIORITIES - 1, -1, -1) if heaps[p]), None)
        if top is None:
            return None
        if self._slot % LOWER_SLOT == LOWER_SLOT - 1:
            lower = [heap for heap in heaps[:top] if heap]
            if lower:
                return min(lower, key=_first)
        return heaps[top]


def _first(heap: list[_Key]) -> _Key:
    return heap[0]
