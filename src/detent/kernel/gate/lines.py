"""Lines: who waits at a gate, in which order, and for which rule.

Tickets that need the same things stand in one line. A line watches a single rule, the one that will
be free last; only when that one frees is the line looked at again. So the cost of serving a ticket
depends neither on how many wait nor on how many rules there are.

Order at a rule: priority, then those who had a place before, then first come. So that nothing
starves, every LOWER_SLOT-th ticket served at a rule is of a lower priority, if one waits; and a
ticket that needs several rules, and found one or another of them taken PATIENCE times, *holds*
those that are free: nobody else passes them until it was served. It holds only while it has no
longer to wait than the shortest of its windows, so that little is left unused for its sake.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.meters import Grant, Rule

LOWER_SLOT = 8
PATIENCE = 8

Order = tuple[int, int]  # 0 for who had a place before, then the number


class Needs(NamedTuple):
    """What a line waits for; equal needs, one line."""

    priority: int
    limits: tuple[str, ...]
    pool: str
    resource: str
    slot: str
    slots: int
    breaker: str = ""

    def rules(self) -> list[Rule]:
        """Everything that must be free at once."""
        rules: list[Rule] = [("limit", key, "") for key in self.limits]
        if self.resource:
            rules.append(("resource", self.resource, self.pool))
        elif self.pool:
            rules.append(("pool", self.pool, ""))
        if self.slot:
            rules.append(("slot", self.slot, ""))
        if self.breaker:
            rules.append(("breaker", self.breaker, ""))
        return rules


Entry = tuple[Order, int, Needs]  # a line at a bar: its first ticket's place, stamp, which line


class Ticket:
    """One ask that waits, or was called."""

    __slots__ = ("ask", "grant", "n", "needs", "passed", "rule")

    def __init__(self, ask: Ask, n: int, rule: str, needs: Needs, passed: int = 0) -> None:
        self.ask = ask
        self.n = n
        self.rule = rule  # what held it when it came
        self.needs = needs
        self.passed = passed  # how often one of its rules was free and another was not
        self.grant: Grant | None = None

    @property
    def order(self) -> Order:
        """Its place."""
        return (0 if self.ask.back else 1, self.n)


class Line:
    """Tickets with equal needs, in order; those who left are passed over."""

    __slots__ = ("_heap", "needs", "rules", "stamp", "watches")

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.rules = needs.rules()
        self.watches: Rule = ("", "", "")
        self.stamp = 0  # of its newest entry at the rule it watches; older ones are void
        self._heap: list[tuple[Order, str]] = []

    def join(self, ticket: Ticket) -> bool:
        """Take a place; True when it is the first."""
        heappush(self._heap, (ticket.order, ticket.ask.ticket))
        return self._heap[0][1] == ticket.ask.ticket

    def first(self, waiting: dict[str, Ticket]) -> Ticket | None:
        """The first that still waits."""
        heap = self._heap
        while heap:
            ticket = waiting.get(heap[0][1])
            if ticket is not None and ticket.needs == self.needs and ticket.order == heap[0][0]:
                return ticket
            heappop(heap)
        return None

    def leave_first(self) -> None:
        """The first is served."""
        heappop(self._heap)


class Bar:
    """The lines that watch one rule, by priority and the place of their first ticket."""

    __slots__ = ("_heaps", "due", "holder")

    def __init__(self) -> None:
        self._heaps: dict[int, list[Entry]] = {}
        self.due = -1  # the tick of its event; -1 when there is none
        self.holder: Needs | None = None  # the line that this rule is kept for

    def add(self, line: Line, order: Order) -> None:
        """A line watches this rule, its first ticket in this place."""
        line.stamp += 1
        heappush(self._heaps.setdefault(line.needs.priority, []), (order, line.stamp, line.needs))

    def front(self, place: Callable[[Entry], Order | None], streak: int) -> Needs | None:
        """The line to serve next, after `streak` of a higher priority than one that waits.

        `place` tells where the first of an entry's line stands now; None: it is here no longer.
        """
        for heap in self._heaps.values():
            while heap:
                order = place(heap[0])
                if order == heap[0][0]:
                    break
                if order is None:
                    heappop(heap)
                else:  # the one before it has left
                    heapreplace(heap, (order, *heap[0][1:]))
        priorities = sorted((p for p, heap in self._heaps.items() if heap), reverse=True)
        if not priorities:
            return None
        chosen = priorities[0]
        if len(priorities) > 1 and streak >= LOWER_SLOT - 1:
            chosen = min(priorities[1:], key=lambda p: self._heaps[p][0][0])
        return self._heaps[chosen][0][2]

    def highest(self) -> int:
        """The highest priority that waits here."""
        return max(p for p, heap in self._heaps.items() if heap)

    def streak_after(self, priority: int, streak: int) -> int:
        """How many of a higher priority are served in a row once one of this priority was."""
        waiting = [p for p, heap in self._heaps.items() if heap]
        passed_over = min(waiting, default=priority) < priority
        return streak + 1 if passed_over and priority >= max(waiting) else 0

    def __bool__(self) -> bool:
        return any(self._heaps.values())
