"""The Gate of one tenant: everything a step names is granted at once, or the step stands in line.

Theory of operation. `ask` grants when all rules are free and nobody is entitled before; otherwise
the ask becomes a ticket in a line (see `lines`). At the start of each turn `call` looks at the
rules that have become free, counts a grant for each ticket that fits, and names its instance; that
instance is stepped in the same turn and takes the grant (`take`). A ticket that is called and not
taken keeps what was counted for it until its instance takes or leaves it. A grant counts on limits
as a permit until its call begins (`begin`, see `permits`). `leave` and `let_go` give back;
`configure` makes every line look anew.

It is pure: a tick goes in, answers and changed rows come out. Rows are written in the commit of
the turn that asked, so a crash forgets a grant together with the step that used it. A gate read
from its rows takes back what was called and not taken: those tickets are called anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from detent.kernel.gate.asks import PROBE, Answer, Ask, Call
from detent.kernel.gate.breakers import Breaker, BreakerRules
from detent.kernel.gate.config import Config
from detent.kernel.gate.lines import Ticket
from detent.kernel.gate.meters import SOON, Grant, Meters, RowKey, Rule, Timing
from detent.kernel.gate.needs import needs_of
from detent.kernel.gate.permits import Permit
from detent.kernel.gate.rows import Row, Stored, read_rows, write_ticket
from detent.kernel.gate.waiting import Waiting

_DEFERRED = "deferred"


class Gate:
    """Limits, pools and concurrency keys of a tenant, and who waits for them."""

    def __init__(
        self, timing: Timing, config: Config, rows: list[Row] | None = None, tick: int = 0
    ) -> None:
        self.meters = Meters(timing, config)
        self._line = Waiting(self.meters)
        self._called: dict[str, Ticket] = {}
        self._fresh: dict[str, Ticket] = {}  # called, and its row does not say so yet
        self._n = 0
        self._read(read_rows(self.meters, rows or []), tick)

    # asking --------------------------------------------------------------------------------------

    def ask(self, ask: Ask, tick: int, *, grant: bool = True) -> Answer:
        """Grant an ask now, or give it a place in line; always that where nobody would act."""
        if ask.pool and ask.pool not in self.meters.config.pools:
            return self._no_pool(ask)
        if ask.ticket in self._line.tickets or ask.ticket in self._called:
            return self.take(ask.ticket, tick)
        if ask.slot:  # who asks for a key does not think to have it
            self.let_go(ask.slot, ask.instance, tick)
        needs = needs_of(self.meters, ask)
        rule, at = self._line.last(needs, tick)  # its windows are open: it has looked
        if grant and at <= tick and self._line.uncontended(needs, tick):
            return _granted(self.meters.consume(ask, tick), "")
        self._n += 1
        self.meters.keep_hours(ask)
        stored = replace(ask, hours=None) if ask.hours is not None else ask
        ticket = Ticket(stored, self._n, name_of(rule, self.meters), needs)
        write_ticket(self.meters, ticket)
        self._line.stand(ticket, tick)
        return Answer(state=_DEFERRED, rule=ticket.rule)

    def take(self, name: str, tick: int) -> Answer:
        """Take what a ticket was called for; deferred while it was not called."""
        ticket = self._called.pop(name, None)
        if ticket is None:
            waiting = self._line.tickets.get(name)
            return Answer(state=_DEFERRED, rule=waiting.rule if waiting is not None else "")
        self._forget(ticket)
        ask, grant = ticket.ask, ticket.grant
        if ask.pool and ask.pool not in self.meters.config.pools:
            self._give_back(ticket, tick)
            return self._no_pool(ask)
        if grant is None:
            return Answer(state="late", rule=ticket.rule)
        used = grant if grant.tick == tick else self._count_anew(ask, grant, tick)
        if used is None:
            return Answer(state="late", rule=ticket.rule)
        return _granted(used, _why(ticket))

    def leave(self, name: str, tick: int) -> None:
        """A ticket is wanted no longer; what was counted for it is free again."""
        ticket = self._called.pop(name, None)
        if ticket is not None:
            self._give_back(ticket, tick)
            self._forget(ticket)
            return
        ticket = self._line.leave(name, tick)
        if ticket is not None:
            self._forget(ticket)
            return
        permit = self.meters.permits.end(name)  # granted, and no call will be made
        if permit is not None:
            self._count_less(permit, tick)
        instance, _, token = name.rpartition(":")
        key, _ = self.meters.holders.get(instance, ("", 0))
        self.let_go(key, instance, tick, int(token))

    def begin(self, name: str, tick: int) -> None:
        """The call that a ticket was granted for begins, or has begun; may be said again."""
        permit = self.meters.begin(name, tick)
        if permit is not None:
            self._count_less(permit, tick)

    def begin_all(self, tick: int) -> None:
        """Let every call begin that was granted; for one who asks what happens then."""
        for name in self.meters.permits.tickets():
            if name not in self._called:
                self.begin(name, tick)

    def granted_ahead(self, name: str, tick: int) -> int:
        """How many calls have not begun for which the rule is kept that holds a ticket."""
        ticket = self._line.tickets.get(name)
        if ticket is None or self._line.last(ticket.needs, tick)[1] != SOON:
            return 0
        rule = self._line.last(ticket.needs, tick)[0]
        return sum(self.meters.permits.on_limit(key) for key in self.meters.keys_of(rule))

    def let_go(self, key: str, instance: str, tick: int, token: int = 0) -> None:
        """An instance stands or has ended: its concurrency key is free for the next."""
        if self.meters.let_go(key, instance, token):
            self._line.announce(("slot", key, ""), tick)

    def close(self, key: str, until: int) -> None:
        """Somebody outside asked not to be called before a tick."""
        self.meters.close(key, until)

    def open(self, key: str, tick: int) -> None:
        """A closing is over before its time."""
        if self.meters.open(key):
            self._line.look_again(tick)

    # breakers ------------------------------------------------------------------------------------

    def broke(self, handler: str, tick: int, rules: BreakerRules) -> Breaker:
        """A call of a handler has failed."""
        return self.meters.breakers.broke(handler, tick, rules)

    def close_breaker(self, handler: str, tick: int) -> None:
        """A call has worked, or a person says so: whoever waits for the breaker may go on."""
        if self.meters.breakers.close(handler):
            self._line.announce(("breaker", handler, ""), tick)

    def probe(self, handler: str, tick: int) -> bool:
        """Let a call pass that stands in no line; False while the breaker lets none pass."""
        breakers = self.meters.breakers
        return breakers.free_at(handler) <= tick and breakers.let_pass(handler, tick)

    def breaker_of(self, name: str) -> str:
        """The handler whose breaker a ticket waits for among others, or was called for."""
        ticket = self._line.tickets.get(name) or self._called.get(name)
        return "" if ticket is None else ticket.ask.breaker

    # changing ------------------------------------------------------------------------------------

    def configure(self, config: Config, tick: int) -> None:
        """Another configuration; it holds for those who wait already."""
        old = self._line.held_by(self.meters.config.limits.keys() - config.limits.keys(), tick)
        self.meters.configure(config)
        self._line.freed_by(old, self._n, tick)
        self._line.reconsider(tick)

    # serving -------------------------------------------------------------------------------------

    def call(self, tick: int, room: int) -> list[Call]:
        """Count a grant for every ticket that fits now, at most `room`, and name them."""
        served = self._line.serve(tick, room)
        for ticket in served:
            self._called[ticket.ask.ticket] = self._fresh[ticket.ask.ticket] = ticket
        return [Call(each.ask.instance, each.ask.token, each.ask.priority) for each in served]

    def next_due(self) -> int | None:
        """The tick at which somebody may be called; None while only a change can free a rule."""
        return self._line.due()

    def waiting(self) -> int:
        """How many stand in line, or were called and have not come yet."""
        return len(self._line.tickets) + len(self._called)

    def called(self, name: str) -> bool:
        """Whether a ticket was called and not taken yet."""
        return name in self._called

    def called_any(self) -> bool:
        """Whether some were called and have not taken it yet."""
        return bool(self._called)

    def rule_of(self, name: str, tick: int) -> str:
        """What holds a ticket now; empty when it does not wait."""
        ticket = self._line.tickets.get(name)
        if ticket is None:
            return ""
        rule, at = self._line.last(ticket.needs, tick)
        return name_of(rule if at > tick else self._line.watched(ticket), self.meters)

    def watched_by(self, name: str) -> str:
        """The rule that the line of a ticket in line waits for."""
        return name_of(self._line.watched(self._line.tickets[name]), self.meters)

    def take_rows(self) -> dict[RowKey, bytes | None]:
        """The rows changed since the last time; None removes one."""
        for name, ticket in self._fresh.items():
            if name in self._called:  # most have come in the same turn
                write_ticket(self.meters, ticket)
        self._fresh = {}
        self._line.write()
        rows, self.meters.rows = self.meters.rows, {}
        return rows | self.meters.permits.take_rows() | self.meters.breakers.take_rows()

    def changed(self) -> bool:
        """Whether there is something to write."""
        self._line.write()
        meters = self.meters
        aside = meters.permits.changed() or meters.breakers.changed()
        return bool(meters.rows or self._fresh or aside)

    # inside --------------------------------------------------------------------------------------

    def _read(self, stored: Stored, tick: int) -> None:
        """Let stored tickets stand as they stood; who was called and has not come, anew."""
        waiting: list[Ticket] = []
        called: list[Ticket] = []
        for ask, n, rule, passed, grant, _ in stored.places:
            self._n = max(self._n, n)
            self.meters.keep_hours(ask)
            if grant is not None:
                self.meters.give_back(ask, grant)
            ticket = Ticket(ask, n, rule, needs_of(self.meters, ask), passed)
            (waiting if grant is None else called).append(ticket)
        self._line.read(waiting, stored.lines, stored.bars, tick)
        for ticket in called:
            write_ticket(self.meters, ticket)
            self._line.stand(ticket, tick)
        if called:
            self._line.look_again(tick)

    def _forget(self, ticket: Ticket) -> None:
        """A ticket stands in line no longer."""
        self.meters.rows[("ask", ticket.ask.ticket, 0)] = None
        self.meters.drop_hours(ticket.ask)

    def _count_anew(self, ask: Ask, grant: Grant, tick: int) -> Grant | None:
        """Let a grant count from a later tick, when it is really used.

        None when something it needs is taken or closed by then: its window or day is over.
        """
        self.meters.give_back(ask, grant)
        same = replace(ask, sticky=grant.resource)
        if self._line.last(needs_of(self.meters, same), tick)[1] <= tick:
            return self.meters.consume(same, tick)
        self._line.look_again(tick)
        return None

    def _give_back(self, ticket: Ticket, tick: int) -> None:
        if ticket.grant is not None:
            self.meters.give_back(ticket.ask, ticket.grant)
            self._line.look_again(tick)

    def _count_less(self, permit: Permit, tick: int) -> None:
        """A permit has ended: whoever waits for its rules is looked at when they are free."""
        if not self._line.tickets:
            return
        for rule, key in self.meters.rules_behind(permit):
            at = self.meters.limit_free_at(key, tick)
            if at < SOON:
                self._line.announce(rule, max(at, tick))

    def _no_pool(self, ask: Ask) -> Answer:
        return Answer(state="refused", rule=f"pool:{ask.pool}", why="there is no such pool")


def name_of(rule: Rule, meters: Meters) -> str:
    """A rule as people read it."""
    kind, key, pool = rule
    if kind == "slot":
        return f"key:{key}"
    if kind == "resource":
        found = meters.config.pools.get(pool)
        resource = found.resources.get(key) if found is not None else None
        return f"resource:{key if resource is None else resource.resource_key}"
    return f"{kind}:{key}"


def _granted(grant: Grant, why: str) -> Answer:
    rule = PROBE if grant.probe else ""
    return Answer(state="granted", resource=grant.resource, key=grant.key, rule=rule, why=why)


def _why(ticket: Ticket) -> str:
    return f"the limit {ticket.freed!r} it waited for was deleted" if ticket.freed else ""
