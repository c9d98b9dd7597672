"""Lines: who waits at a gate, in which order, and for which rule.

Tickets that need the same things stand in one line. A line watches a single rule, the one that will
be free last; only when that one frees is the line looked at again. So the cost of serving a ticket
depends neither on how many wait nor on how many rules there are.

Order at a rule: priority, then those who had a place before, then first come. So that nothing
starves, every LOWER_SLOT-th ticket served at a rule is of a lower priority, if one waits; and a
ticket that needs several rules, and found one or another of them taken PATIENCE times, *holds*
those that are free: nobody else passes them until it was served. It holds only while it has no
longer to wait than the shortest of its windows, so that little is left unused for its sake.

The send windows of a step are one more rule of its line, which nobody can take: while they are shut
the line watches them and lets others pass, and when they open it has its old place.
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
    window: str = ""  # the send windows of the step, which must be open as well

    def rules(self) -> list[Rule]:
        """Everything that must be free at once, and that others can take."""
        rules: list[Rule] = [("limit", key, "") for key in self.limits]
        if self.resource:
            rules.append(("resource", self.resource, self.pool))
        elif self.pool:
            rules.append(("pool", self.pool, ""))
        if self.slot:
            rules.append(("slot", self.slot, ""))
        return rules


Entry = tuple[Order, int, Needs]  # a line at a bar: its first ticket's place, stamp, which line


class Ticket:
    """One ask that waits, or was called."""

    __slots__ = ("ask", "freed", "grant", "n", "needs", "passed", "rule")

    def __init__(self, ask: Ask, n: int, rule: str, needs: Needs, passed: int = 0) -> None:
        self.ask = ask
        self.n = n
        self.rule = rule  # what held it when it came
        self.needs = needs
        self.passed = passed  # how often one of its rules was free and another was not
        self.grant: Grant | None = None
        self.freed = ""  # it was called because this limit was deleted

    @property
    def order(self) -> Order:
        """Its place."""
        return (0 if self.ask.back else 1, self.n)


class Line:
    """Tickets with equal needs, in order; those who left are passed over."""

    __slots__ = ("_heap", "freed", "held", "needs", "rules", "stamp", "stored", "watches")

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.rules = needs.rules()
        self.watches: Rule = ("", "", "")
        self.held = False  # its rules are kept for it
        self.freed: tuple[str, int] = ("", 0)  # a limit deleted, and the last who waited for it
        self.stored: bytes | None = None  # what its row says
        self.stamp = 0  # of its newest entry at the rule it watches; older ones are void
        self._heap: list[tuple[Order, str]] = []

    @property
    def several(self) -> bool:
        """Whether it matters which rule it watches, and when that is looked at."""
        return len(self.rules) > 1 or self.needs.window != ""

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

    __slots__ = ("_counts", "_heaps", "due", "holder", "several", "stored")

    def __init__(self) -> None:
        self._heaps: dict[int, list[Entry]] = {}
        self._counts: dict[int, int] = {}  # priority -> lines; the heaps hold void entries too
        self.several = 0  # lines here that have other rules, too
        self.due = -1  # the tick of its event; -1 when there is none
        self.stored = -1  # the tick its row says
        self.holder: Needs | None = None  # the line that this rule is kept for

    def join(self, line: Line) -> None:
        """A line watches this rule from now on."""
        priority = line.needs.priority
        self._counts[priority] = self._counts.get(priority, 0) + 1
        self.several += line.several

    def part(self, line: Line) -> None:
        """A line watches this rule no longer."""
        priority = line.needs.priority
        self.several -= line.several
        self._counts[priority] -= 1
        if not self._counts[priority]:
            del self._counts[priority]

    def add(self, line: Line, order: Order) -> None:
        """The first ticket of a line that watches this rule stands in this place."""
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
        return max(self._counts)

    def streak_after(self, priority: int, streak: int) -> int:
        """How many of a higher priority are served in a row once one of this priority was."""
        passed_over = min(self._counts) < priority
        return streak + 1 if passed_over and priority >= max(self._counts) else 0

    def __bool__(self) -> bool:
        return bool(self._counts)
