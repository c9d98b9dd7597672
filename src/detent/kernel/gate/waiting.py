"""Waiting: everybody who stands in line at a gate, and whose turn it is.

Each rule that somebody watches has a bar, and a bar an event: the tick at which to look at it. What
becomes free otherwise (a grant or a key given back, a change) is announced, which moves the event
forward. `serve` looks at the bars that are due, that of the ticket entitled first before the
others: one resource may stand behind several rules.

Who is served depends on which rule a line watches and on when that is looked at. So both are rows,
for lines where they do not follow from the counters, and a gate read anew goes on as this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heappop, heappush

from detent.kernel.gate.lines import PATIENCE, Bar, Entry, Line, Needs, Order, Ticket
from detent.kernel.gate.meters import NEVER, SOON, Meters, Rule
from detent.kernel.gate.needs import last_of, needs_of, refused
from detent.kernel.gate.rows import LineRow, forget_line, write_bar, write_line, write_ticket

Rank = tuple[int, Order]  # the higher priority, then the earlier place


class Waiting:
    """The tickets of one gate, in lines."""

    def __init__(self, meters: Meters) -> None:
        self.tickets: dict[str, Ticket] = {}
        self._meters = meters
        self._lines: dict[Needs, Line] = {}
        self._bars: dict[Rule, Bar] = {}
        self._events: list[tuple[int, Rule]] = []
        self._changed: dict[Needs, Line] = {}  # lines whose row may be another
        self._moved: dict[Rule, Bar] = {}  # bars whose row may be another

    # rows ----------------------------------------------------------------------------------------

    def read(
        self,
        tickets: list[Ticket],
        lines: Mapping[Needs, LineRow],
        bars: Mapping[Rule, int],
        tick: int,
    ) -> None:
        """Let stored tickets stand as they stood, in the order they came."""
        for ticket in tickets:
            self.tickets[ticket.ask.ticket] = ticket
            line = self._lines.get(ticket.needs)
            if line is None:
                line = self._lines[ticket.needs] = Line(ticket.needs)
            line.join(ticket)
        for needs, line in self._lines.items():
            row = lines.get(needs)
            if row is not None:
                line.watches, line.held, line.freed, line.stored = row
            else:
                line.watches = self.last(needs, tick)[0]
            self._bar(line.watches).join(line)
            for rule in line.rules if line.held else ():
                self._bar(rule).holder = needs
        for rule, due in bars.items():
            self._bar(rule).stored = due
        for needs, line in self._lines.items():
            self._stand_again(line, bars.get(line.watches), tick, known=needs in lines)

    def write(self) -> None:
        """Note every row that is another than it was."""
        for needs, line in self._changed.items():
            if self._lines.get(needs) is line:
                write_line(self._meters, line)
        for rule, bar in self._moved.items():
            if self._bars.get(rule) is bar:
                write_bar(self._meters, rule, bar)
        self._changed, self._moved = {}, {}

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

    def leave(self, name: str, tick: int) -> Ticket | None:
        """Give a place up; None when there was none."""
        ticket = self.tickets.pop(name, None)
        if ticket is None:
            return None
        line = self._lines[ticket.needs]
        first = line.first(self.tickets)
        if first is None:
            self._close(line, tick)
        elif max(ticket.passed, first.passed) > PATIENCE:
            self._hold(line, first, tick, self.last(line.needs, tick)[1])
        return ticket

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
            if ticket.ask.resource and needs_of(self._meters, ticket.ask) != ticket.needs:
                self.leave(name, tick)
                ticket.needs = needs_of(self._meters, ticket.ask)
                self.stand(ticket, tick)
        for needs, line in self._lines.items():
            first = line.first(self.tickets)
            if first is not None and refused(self._meters, needs):
                self._watch(line, first, ("pool", needs.pool, ""), tick)
        self.look_again(tick)

    def held_by(self, keys: Collection[str], tick: int) -> dict[Needs, tuple[str, int]]:
        """The lines that one of some limits holds now: which one, and until when."""
        found: dict[Needs, tuple[str, int]] = {}
        for needs in self._lines if keys else ():
            rule, at = self.last(needs, tick)
            key = next((key for key in self._meters.keys_of(rule) if key in keys), "")
            if key and at > tick:
                found[needs] = (key, at)
        return found

    def freed_by(self, held: Mapping[Needs, tuple[str, int]], n: int, tick: int) -> None:
        """Limits that held these lines are deleted; `n` is the last ticket there is."""
        for needs, (key, at) in held.items():
            if self.last(needs, tick)[1] < at:
                self._free(self._lines[needs], key, n)

    def look_again(self, tick: int) -> None:
        """Anything may be free now."""
        for rule in self._bars:
            self.announce(rule, tick)

    def announce(self, rule: Rule, at: int) -> None:
        """Look at a rule at a tick, or at the earlier one it is looked at already."""
        bar = self._bars.get(rule)
        if bar is None or not bar or 0 <= bar.due <= at:
            return
        if bar.holder is None or self._lines[bar.holder].watches == rule:
            self._set_due(rule, bar, at)
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
                return at
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
                self._set_due(rule, self._bars[rule], -1)
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
        return last_of(self._meters, needs, tick)

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
            passed = last != line.watches and at < NEVER and not _hours(last, line.watches)
            self._free(line, "", 0)
            self._watch(line, first, last, at)
            if passed:
                first.passed += 1
                write_ticket(self._meters, first)
            self._hold(line, first, tick, at)
            return last != rule
        kept = self._kept(line)
        if kept is not None and not refused(self._meters, line.needs):
            self._watch(line, first, kept, NEVER)  # whoever it is kept for lets it pass then
            return True
        streak = self._meters.streaks.get(rule, 0)
        self._meters.set_streak(rule, self._bars[rule].streak_after(line.needs.priority, streak))
        self._serve_one(line, first, tick)
        served.append(first)
        self._next_in(line, rule, tick)
        return True

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
        key, last = line.freed
        ticket.freed = key if ticket.n <= last else ""
        if not refused(self._meters, line.needs):
            ticket.grant = self._meters.consume(ask, tick)

    def _next_in(self, line: Line, rule: Rule, tick: int) -> None:
        """The next of a line whose first was served watches what is free last from now on."""
        following = line.first(self.tickets)
        if following is None:
            self._close(line, tick)
            return
        last, at = self.last(line.needs, tick)
        if at > tick:
            self._free(line, "", 0)
            self._watch(line, following, last, at)
        else:
            self._watch(line, following, rule, NEVER)  # which is being looked at
        self._hold(line, following, tick, at)

    def _watch(self, line: Line, first: Ticket, rule: Rule, at: int) -> None:
        old = line.watches
        if old != rule:
            line.watches = rule
            self._changed[line.needs] = line
            self._bar(rule).join(line)
            self._part(line, old)
        bar = self._bar(rule)
        bar.add(line, first.order)
        if line.several:
            self._moved[rule] = bar
        if at < SOON:
            self.announce(rule, at)

    def _part(self, line: Line, rule: Rule) -> None:
        """A line watches a rule no longer."""
        bar = self._bars.get(rule)
        if bar is None:  # it is a new line
            return
        bar.part(line)
        self._moved[rule] = bar
        if bar.holder == line.needs:
            bar.due = -1  # nobody passes until its line comes back, or lets others pass
        self._drop(rule, bar)

    def _hold(self, line: Line, first: Ticket, tick: int, at: int) -> None:
        """Keep its rules for a line that was passed over too often, while it has not long to go."""
        needs = line.needs
        far = at != SOON and at - tick > self._meters.shortest(needs.limits, needs.pool)
        if first.passed <= PATIENCE or far or line.watches[0] == "window":
            self._let_pass(line, tick)
        elif not line.held and self._kept(line) is None:  # no two holders share a rule
            line.held = True
            self._changed[needs] = line
            for rule in line.rules:
                bar = self._bar(rule)
                bar.holder = needs
                if rule != line.watches:
                    self._set_due(rule, bar, -1)

    def _kept(self, line: Line) -> Rule | None:
        """The first of a line's rules that is kept for another line."""
        for rule in line.rules:
            bar = self._bars.get(rule)
            if bar is not None and bar.holder is not None and bar.holder != line.needs:
                return rule
        return None

    def _let_pass(self, line: Line, tick: int) -> None:
        """What was kept for a line is free for everybody again."""
        if not line.held:
            return
        line.held = False
        self._changed[line.needs] = line
        for rule in line.rules:
            bar = self._bars[rule]
            bar.holder = None
            self._drop(rule, bar)
            self.announce(rule, tick)

    def _free(self, line: Line, key: str, last: int) -> None:
        """A limit was deleted that a line waited for; or it waits for something else by now."""
        if line.freed[0] != key:
            line.freed = (key, last)
            self._changed[line.needs] = line

    def _stand_again(self, line: Line, due: int | None, tick: int, *, known: bool) -> None:
        """Put a line that was read to the rule it watches, to be looked at when it would be."""
        first = line.first(self.tickets)
        if first is None:
            return
        self._bars[line.watches].add(line, first.order)
        if due is not None:
            self.announce(line.watches, due)
        at = NEVER if known and line.several else self.last(line.needs, tick)[1]
        if at < SOON:
            self.announce(line.watches, at)

    def _close(self, line: Line, tick: int) -> None:
        del self._lines[line.needs]
        self._let_pass(line, tick)
        self._part(line, line.watches)
        forget_line(self._meters, line)

    def _bar(self, rule: Rule) -> Bar:
        bar = self._bars.get(rule)
        if bar is None:
            bar = self._bars[rule] = Bar()
        return bar

    def _set_due(self, rule: Rule, bar: Bar, at: int) -> None:
        bar.due = at
        if bar.several or bar.stored >= 0:
            self._moved[rule] = bar

    def _drop(self, rule: Rule, bar: Bar) -> None:
        """Nobody watches a rule any more, and it is kept for nobody."""
        if bar or bar.holder is not None:
            return
        del self._bars[rule]
        self._meters.set_streak(rule, 0)
        if bar.stored >= 0:
            bar.due = -1
            write_bar(self._meters, rule, bar)


def _hours(*rules: Rule) -> bool:
    """Whether one of them is that of send windows, which are shut for everybody."""
    return any(rule[0] == "window" for rule in rules)
