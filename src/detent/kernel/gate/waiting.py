"""Waiting: everybody who stands in line at a gate, and whose turn it is.

Each rule that somebody watches has a bar, and a bar an event: the tick at which to look at it. What
becomes free otherwise (a grant or a key given back, a change) is announced, which moves the event
forward. `serve` looks at the bars that are due, that of the ticket entitled first before the
others: one resource may stand behind several rules.
"""

from __future__ import annotations

from heapq import heappop, heappush

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.lines import PATIENCE, Bar, Entry, Line, Needs, Order, Ticket
from detent.kernel.gate.meters import NEVER, Meters, Rule
from detent.kernel.gate.rows import write_ticket

Rank = tuple[int, Order]  # the higher priority, then the earlier place


class Waiting:
    """The tickets of one gate, in lines."""

    def __init__(self, meters: Meters) -> None:
        self.tickets: dict[str, Ticket] = {}
        self._meters = meters
        self._lines: dict[Needs, Line] = {}
        self._bars: dict[Rule, Bar] = {}
        self._events: list[tuple[int, Rule]] = []

    # coming and going ----------------------------------------------------------------------------

    def stand(self, ticket: Ticket, tick: int) -> None:
        """Take a place in the line of those with the same needs."""
        needs = ticket.needs
        line = self._lines.get(needs)
        self.tickets[ticket.ask.ticket] = ticket
        if line is None:
            line = self._lines[needs] = Line(needs)
            line.join(ticket)
            last, at = self.last(needs, tick)
            self._watch(line, ticket, last, at)
            self._hold(line, ticket, tick, at)
        elif line.join(ticket):
            self._bars[line.watches].add(line, ticket.order)
            self._hold(line, ticket, tick, tick)

    def leave(self, name: str, tick: int) -> bool:
        """Give a place up; False when there was none."""
        ticket = self.tickets.pop(name, None)
        if ticket is None:
            return False
        line = self._lines[ticket.needs]
        first = line.first(self.tickets)
        if first is None:
            self._close(line, tick)
        elif max(ticket.passed, first.passed) > PATIENCE:
            self._hold(line, first, tick, self.last(line.needs, tick)[1])
        return True

    def needs_of(self, ask: Ask) -> Needs:
        """In which line an ask stands."""
        resource = ask.resource if ask.resource and self._meters.pinned(ask) else ""
        return Needs(ask.priority, ask.limits, ask.pool, resource, ask.slot, ask.slots, ask.breaker)

    def uncontended(self, needs: Needs, tick: int) -> bool:
        """Whether nobody in line is entitled before to what is free now."""
        if not self.tickets:
            return True
        if needs in self._lines:
            return False
        for rule in needs.rules():
            bar = self._bars.get(rule)
            if bar is None or (bar.holder is None and not bar):
                continue
            if bar.holder is not None or 0 <= bar.due <= tick or rule[0] == "slot":
                return False
        return True

    def reconsider(self, tick: int) -> None:
        """The configuration has changed: pools may be gone, resources be gone or back."""
        for name, ticket in list(self.tickets.items()):
            if ticket.ask.resource and self.needs_of(ticket.ask) != ticket.needs:
                self.leave(name, tick)
                ticket.needs = self.needs_of(ticket.ask)
                self.stand(ticket, tick)
        for needs, line in self._lines.items():
            first = line.first(self.tickets)
            if first is not None and self._refused(needs):
                self._watch(line, first, ("pool", needs.pool, ""), tick)
        self.look_again(tick)

    def look_again(self, tick: int) -> None:
        """Anything may be free now."""
        for rule in self._bars:
            self.announce(rule, tick)

    def announce(self, rule: Rule, at: int) -> None:
        """Look at a rule at a tick, or at the earlier one it is looked at already."""
        bar = self._bars.get(rule)
        if bar is not None and bar and (bar.due < 0 or at < bar.due):
            bar.due = at
            heappush(self._events, (at, rule))

    # serving -------------------------------------------------------------------------------------

    def due(self) -> int | None:
        """The tick of the next event that concerns somebody.

        A line that needs several rules may find another one taken then: it is called later.
        """
        events = self._events
        while events:
            at, rule = events[0]
            bar = self._bars.get(rule)
            if bar is not None and bar.due == at:
                if self._front(rule) is not None:
                    return at
                bar.due = -1
                if bar.holder is None:
                    del self._bars[rule]
                    self._meters.set_streak(rule, 0)
            heappop(events)
        return None

    def serve(self, tick: int, room: int) -> list[Ticket]:
        """Count a grant for every ticket that fits now, at most `room`; those waited here."""
        served: list[Ticket] = []
        ready: list[tuple[Rank, Rule]] = []
        while len(served) < room:
            due = self.due()
            while due is not None and due <= tick:
                rule = heappop(self._events)[1]
                self._bars[rule].due = -1
                self._line_up(ready, rule)
                due = self.due()
            if not ready:
                return served
            rank, rule = heappop(ready)
            if rank == self._rank(rule) and not self._look(rule, tick, served):
                continue
            self._line_up(ready, rule)
        for _, rule in ready:
            self.announce(rule, tick)
        return served

    def last(self, needs: Needs, tick: int) -> tuple[Rule, int]:
        """The rule of a line that is free last, and when; now if all of them are free."""
        meters = self._meters
        if self._refused(needs):
            return ("pool", needs.pool, ""), tick  # called at once, to be refused
        found: Rule = ("", "", "")
        latest = tick
        for key in needs.limits:
            at = meters.limit_free_at(key, tick)
            if at > latest or not found[0]:
                found, latest = ("limit", key, ""), max(at, tick)
        if needs.resource:
            at = meters.resource_free_at(needs.pool, needs.resource, tick)
            if at > latest or not found[0]:
                found, latest = ("resource", needs.resource, needs.pool), max(at, tick)
        elif needs.pool:
            at = meters.pool_free_at(needs.pool, tick)
            if at > latest or not found[0]:
                found, latest = ("pool", needs.pool, ""), max(at, tick)
        if needs.slot:
            at = meters.slot_free_at(needs.slot, needs.slots)
            if at > latest or not found[0]:
                found, latest = ("slot", needs.slot, ""), max(at, tick)
        if needs.breaker:
            at = meters.breakers.free_at(needs.breaker)
            if at > latest or not found[0]:
                found, latest = ("breaker", needs.breaker, ""), max(at, tick)
        return found, latest

    def watched(self, ticket: Ticket) -> Rule:
        """The rule that a ticket's line watches."""
        return self._lines[ticket.needs].watches

    # inside --------------------------------------------------------------------------------------

    def _look(self, rule: Rule, tick: int, served: list[Ticket]) -> bool:
        """Serve who is first at a rule, or pass it over; False when nothing is left to do there."""
        line = self._front(rule)
        first = None if line is None else line.first(self.tickets)
        if line is None or first is None:
            return False
        last, at = self.last(line.needs, tick)
        if at > tick:
            passed = last != line.watches and at < NEVER
            self._watch(line, first, last, at)
            if passed:
                first.passed += 1
                write_ticket(self._meters, first)
            self._hold(line, first, tick, at)
            return last != rule
        kept = self._kept(line)
        if kept is not None and not self._refused(line.needs):
            self._watch(line, first, kept, NEVER)  # whoever it is kept for lets it pass then
            return True
        streak = self._meters.streaks.get(rule, 0)
        self._meters.set_streak(rule, self._bars[rule].streak_after(line.needs.priority, streak))
        self._serve_one(line, first, tick)
        served.append(first)
        self._next_in(line, rule, tick)
        return True

    def _refused(self, needs: Needs) -> bool:
        """Whether a line waits for nothing any more: its pool is gone."""
        return bool(needs.pool) and needs.pool not in self._meters.config.pools

    def _front(self, rule: Rule) -> Line | None:
        """The line whose turn it is at a rule."""
        bar = self._bars[rule]
        if bar.holder is not None:
            line = self._lines[bar.holder]
            return line if line.watches == rule else None

        def place(entry: Entry) -> Order | None:
            _, stamp, needs = entry
            line = self._lines.get(needs)
            if line is None or line.watches != rule or line.stamp != stamp:
                return None
            first = line.first(self.tickets)
            return None if first is None else first.order

        needs = bar.front(place, self._meters.streaks.get(rule, 0))
        return None if needs is None else self._lines[needs]

    def _rank(self, rule: Rule) -> Rank | None:
        """Before which other rules one is looked at."""
        line = self._front(rule) if rule in self._bars else None
        first = None if line is None else line.first(self.tickets)
        return None if first is None else (-self._bars[rule].highest(), first.order)

    def _line_up(self, ready: list[tuple[Rank, Rule]], rule: Rule) -> None:
        rank = self._rank(rule)
        if rank is not None:
            heappush(ready, (rank, rule))

    def _serve_one(self, line: Line, ticket: Ticket, tick: int) -> None:
        line.leave_first()
        ask = ticket.ask
        del self.tickets[ask.ticket]
        if not self._refused(line.needs) and (ask.until is None or tick < ask.until):
            ticket.grant = self._meters.consume(ask, tick)

    def _next_in(self, line: Line, rule: Rule, tick: int) -> None:
        """The next of a line whose first was served watches what is free last from now on."""
        following = line.first(self.tickets)
        if following is None:
            self._close(line, tick)
            return
        last, at = self.last(line.needs, tick)
        if at > tick:
            self._watch(line, following, last, at)
        else:
            self._watch(line, following, rule, NEVER)  # which is being looked at
        self._hold(line, following, tick, at)

    def _watch(self, line: Line, first: Ticket, rule: Rule, at: int) -> None:
        line.watches = rule
        self._bar(rule).add(line, first.order)
        if at < NEVER:
            self.announce(rule, at)

    def _hold(self, line: Line, first: Ticket, tick: int, at: int) -> None:
        """Keep its rules for a line that was passed over too often, while it has not long to go."""
        needs = line.needs
        if first.passed <= PATIENCE or at - tick > self._meters.shortest(needs.limits, needs.pool):
            self._let_pass(line, tick)
        elif self._kept(line) is None:  # no two holders share a rule
            for rule in line.rules:
                self._bar(rule).holder = needs

    def _kept(self, line: Line) -> Rule | None:
        """The first of a line's rules that is kept for another line."""
        for rule in line.rules:
            bar = self._bars.get(rule)
            if bar is not None and bar.holder is not None and bar.holder != line.needs:
                return rule
        return None

    def _let_pass(self, line: Line, tick: int) -> None:
        """What was kept for a line is free for everybody again."""
        for rule in line.rules:
            bar = self._bars.get(rule)
            if bar is not None and bar.holder == line.needs:
                bar.holder = None
                self.announce(rule, tick)

    def _close(self, line: Line, tick: int) -> None:
        del self._lines[line.needs]
        self._let_pass(line, tick)

    def _bar(self, rule: Rule) -> Bar:
        bar = self._bars.get(rule)
        if bar is None:
            bar = self._bars[rule] = Bar()
        return bar
