"""The auditor of gates: reads every journal row as it is committed and keeps books of its own.

At each commit it counts who holds which concurrency key and what was used of limits and pools; at
each stand-still it looks whether somebody stands in line for what is free, whether the order was
kept, and whether the gate's rows tell the same story. Wrong is only raised at a stand-still: inside
a commit it would be taken for a failure of the store.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from detent.kernel.lifecycle import TERMINAL
from detent.testing.gate_books import Books, Clock, Use, in_window
from detent.testing.outside import Outside, Wrong
from detent.testing.standing_limits import Standing, check_standing, next_look

if TYPE_CHECKING:
    import apsw

    from detent.testing.authoring_limits import Rule
    from detent.testing.world import World

MINUTE_MS = 60_000
WORKDAYS = 5
_BEGAN = ("applied", "failed", "doubted", "reconciled")

_ROWS = """
SELECT j.pos, i.id, i.tenant, i.prio, j.tick, j.body FROM journal j JOIN instance i ON i.n = j.inst
WHERE j.pos > ? ORDER BY j.pos
"""


class Row(NamedTuple):
    """One journal row."""

    pos: int
    instance: str
    tenant: str
    priority: int
    tick: int
    body: bytes


class Granted:
    """What one call was allowed, until it had begun."""

    __slots__ = ("until", "use")

    def __init__(self, use: Use) -> None:
        self.use = use
        self.until: int | None = None

    def allows(self, tick: int, resource: str) -> bool:
        """Whether a call at a tick is within it."""
        begun = self.until is not None and tick > self.until
        return self.use.resource == resource and self.use.tick <= tick and not begun


class GateAudit:
    """Books of all gates of one world, kept up to the last commit."""

    def __init__(self, world: World, connection: apsw.Connection, clock: Clock) -> None:
        self._world = world
        self._connection = connection
        self._clock = clock
        self._pos = 0
        self._born: dict[str, dict[str, Any]] = {}
        self._pinned: dict[tuple[str, str], str] = {}  # instance, node -> resource key
        self._last: dict[tuple[str, str], str] = {}  # instance, pool -> resource key
        self._stood: dict[tuple[str, str], str] = {}  # instance, node -> last resource by then
        self._granted: dict[str, list[Granted]] = {}  # by effect
        self._acting: dict[str, tuple[str, str, Rule]] = {}  # by effect: instance, node, its rule
        self._changed = False
        self._fault = ""
        self.books: dict[str, Books] = {}
        self.holders: dict[tuple[str, str], dict[str, None]] = {}  # tenant, concurrency key
        self.uses: list[tuple[str, Use]] = []  # since the last stand-still, with their tenant
        self._before: dict[tuple[str, str], Standing] = {}

    def read(self) -> None:
        """Take in what was committed since the last time."""
        found: list[Any] = self._connection.execute(_ROWS, (self._pos,)).fetchall()
        for row in map(Row._make, found):
            self._pos = row.pos
            body = json.loads(row.body)
            for told in body["in"]:
                self._input(row, told)
            for action, node, *detail in body["entries"]:
                self._entry(row, body, action, node, detail[0] if detail else {})
        for (tenant, key), holders in self.holders.items():
            most = self.most(tenant, key)
            if len(holders) > most:
                self._wrong(f"{len(holders)} of {most} hold the key {key}: {', '.join(holders)}")

    def stand(self, tick: int) -> None:
        """Check everything that must hold when nobody moves."""
        self.read()
        if not self._fault:
            found = check_standing(self, self._connection, tick, self._before)
            self._before = found.standing
            self._fault = found.fault
        if not self._fault and not self._changed:
            self._check_sticky()
        for key, granted in self._granted.items():
            if granted and granted[-1].until is None and not self._fault:
                self._fault = f"{granted[-1].use.node} was granted, and {key} is not called"
        self.uses = []
        self._changed = False
        if self._fault:
            raise Wrong(self._fault)

    def next_look(self, tick: int) -> int | None:
        """When somebody in line may pass, by these books: the engine must have moved by then."""
        return next_look(self, self._before, tick)

    def finish(self, outside: Outside) -> None:
        """After the end: nothing is left at any gate, and calls came when they were allowed."""
        counters = "('use', 'day', 'turn', 'shut', 'breaker')"
        sql = f"SELECT tenant, kind, key FROM gate_row WHERE kind NOT IN {counters}"
        for tenant, kind, key in self._connection.execute(sql).fetchall():
            raise Wrong(f"leaked: all have ended, and {tenant}'s gate still has {kind} {key}")
        for deed in outside.deeds:
            if deed.what != "call" or deed.key not in self._acting:
                continue
            self._check_windows(*self._acting[deed.key], deed.tick)
            if deed.key not in self._granted:
                continue
            left = self._granted[deed.key]
            allowed = [each for each in left if each.allows(deed.tick, deed.resource)]
            if not allowed:
                raise Wrong(
                    f"{deed.place} called {deed.resource!r} at {deed.tick}, "
                    f"and was allowed {[(e.use.resource, e.use.tick, e.until) for e in left]}"
                )
            left.remove(allowed[0])
        if self._fault:
            raise Wrong(self._fault)

    def needs(self, instance: str, block: str) -> tuple[tuple[str, ...], str]:
        """The keys and the pool that a step names, with its instance's data filled in."""
        rule = self._world.rules[block]
        data = self._born[instance]["data"] or {}

        def filled(text: str) -> str:
            text = text.replace("{{data.team}}", str(data.get("team")))
            return text.replace("{{data.pool}}", str(data.get("pool")))

        return tuple(filled(key) for key in rule.keys), filled(rule.pool)

    # journal -------------------------------------------------------------------------------------

    def _input(self, row: Row, told: dict[str, Any]) -> None:
        if told.get("t") in _BEGAN:
            self._began(row, told["key"])
        elif told.get("t") == "stranded":
            self._began(row, told["key"], called=told.get("called", False))
        if told.get("t") == "started":
            fresh = {"data": None, "timezone": "UTC", "concurrency_key": None, "max_concurrency": 1}
            self._born[row.instance] = {**fresh, "tenant": row.tenant, **told}
            self.books.setdefault(row.tenant, Books(self._clock))

    def _entry(self, row: Row, body: dict[str, Any], action: str, node: str, detail: Any) -> None:
        block = node.rpartition("/")[2]
        rule = self._world.rules.get(block)
        if action == "config.changed":
            told = body["in"][detail["in"]]
            self.books[row.tenant].change(told["verb"], told["args"], row.tick)
            self._forget_pins(row.tenant)
            self._changed = True
        elif action == "error.occurred":
            self._check_closed(row, body, node)
        elif action.startswith("run.") and "to" in detail:
            self._moved(row, detail["to"])
        elif action == "wait.started" and rule is not None:
            if detail["kind"] == "gate":
                pool = self.needs(row.instance, block)[1]
                self._stood[(row.instance, node)] = self._last.get((row.instance, pool), "")
            elif detail["kind"] == "delay" and rule.delay is not None:
                self._check_delay(row, rule.delay, detail["due"])
        elif action == "effect.withdrawn":
            self._began(row, detail["key"], called=False)
        elif action.startswith(("effect.", "error.")) and action != "effect.planned":
            self._began(row, detail.get("key", ""))
        elif action == "gate.granted" and "again" in detail:
            before = self._granted[detail["again"]][-1].use
            again = before._replace(tick=row.tick, resource=detail["resource"], waited=True)
            self._grant(row.tenant, detail["again"], again)
        elif action == "effect.planned" and "kind" not in detail and rule is not None:
            self._acting[detail["key"]] = (row.instance, node, rule)
            self._check_windows(row.instance, node, rule, row.tick)
            self._used(row, node, rule, detail)

    def _check_closed(self, row: Row, body: dict[str, Any], node: str) -> None:
        """A provider that says when to come again is not called by anybody before."""
        for told in body["in"]:
            details = told.get("details") if told.get("t") == "failed" else None
            granted = self._granted.get(told.get("key", ""), ())
            planned = granted[-1].use if granted else None
            if not isinstance(details, dict) or planned is None or planned.node != node:
                continue
            pause = -(-details["retry_after_ms"] // self._clock.resolution_ms)
            keys = [key for key in (*planned.keys, planned.resource) if key]
            self.books[row.tenant].close(keys, row.tick + pause)

    def _used(self, row: Row, node: str, rule: Rule, detail: dict[str, Any]) -> None:
        keys, pool = self.needs(row.instance, node.rpartition("/")[2])
        place, resource = (row.instance, node), detail.get("resource", "")
        if bool(pool) != bool(resource):
            self._wrong(f"{node} of {row.instance} names the pool {pool!r} and got {resource!r}")
            return
        last = self._stood.get(place, self._last.get((row.instance, pool), ""))
        use = Use(
            row.instance,
            node,
            row.tick,
            row.priority,
            keys,
            pool,
            resource,
            self._pinned.get(place, "") if detail["attempt"] > 1 else "",
            last if rule.sticky else "",
            place in self._stood,
        )
        self._stood.pop(place, None)
        if use.pinned and use.pinned != resource:
            self._wrong(f"{node} of {row.instance} had {use.pinned}; its retry got {resource}")
        if pool:
            self._pinned[place] = self._last[(row.instance, pool)] = resource
        if keys or pool:
            self._grant(row.tenant, detail["key"], use)

    def _grant(self, tenant: str, key: str, use: Use) -> None:
        """A call may be made from now on."""
        self._granted.setdefault(key, []).append(Granted(use))
        self._wrong(self.books[tenant].grant(use))
        self.uses.append((tenant, use))

    def _began(self, row: Row, key: str, *, called: bool = True) -> None:
        """A call has begun by now, or will not be made under what it was granted."""
        granted = self._granted.get(key)
        if not granted or granted[-1].until is not None:
            return
        last = granted[-1]
        books = self.books[row.tenant]
        if called:
            books.begin(last.use, row.tick)
            last.until = row.tick
        else:
            books.give_back(last.use)
            last.until = last.use.tick - 1

    def _moved(self, row: Row, state: str) -> None:
        place = self._key(row.instance)
        if not place[1]:
            return
        holders = self.holders.setdefault(place, {})
        if state == "running":
            holders[row.instance] = None
        elif state == "waiting" or state in TERMINAL:
            holders.pop(row.instance, None)

    def _key(self, instance: str) -> tuple[str, str]:
        born = self._born[instance]
        return born["tenant"], born["concurrency_key"] or ""

    def most(self, tenant: str, key: str) -> int:
        """How many may hold a concurrency key."""
        return max(
            int(each["max_concurrency"])
            for id, each in self._born.items()
            if self._key(id) == (tenant, key)
        )

    def _forget_pins(self, tenant: str) -> None:
        """Who had a resource that was taken out is bound to nothing any more."""
        books = self.books[tenant]
        there = {
            each["resource_key"]: None
            for pool in books.pools.values()
            for each in pool.values()
            if each["enabled"]
        }
        for place, key in list(self._pinned.items()):
            if self._born[place[0]]["tenant"] == tenant and key not in there:
                del self._pinned[place]

    # time ----------------------------------------------------------------------------------------

    def _check_windows(self, instance: str, node: str, rule: Rule, tick: int) -> None:
        window = self._shut(instance, rule, tick)
        if window:
            zone = window.get("timezone") or self._born[instance]["timezone"]
            at = self._clock.local(tick, zone)
            self._wrong(f"{node} of {instance} acts at {at} in {zone}, outside {window}")

    def shut(self, instance: str, block: str, tick: int) -> bool:
        """Whether the send windows of a step let it not act at a tick."""
        rule = self._world.rules.get(block)
        return rule is not None and bool(self._shut(instance, rule, tick))

    def _shut(self, instance: str, rule: Rule, tick: int) -> dict[str, Any]:
        """A window that is shut for longer than it may be; empty when there is none."""
        for window in rule.windows:
            zone = window.get("timezone") or self._born[instance]["timezone"]
            late = window.get("send_late_within", 0) // MINUTE_MS
            step = MINUTE_MS // self._clock.resolution_ms
            near = (self._clock.local(tick - back * step, zone) for back in range(late + 1))
            if not any(in_window(window, at) for at in near):
                return window
        return {}

    def _check_delay(self, row: Row, delay: dict[str, Any], due: int) -> None:
        """The due tick lies on a business day, as near to what was asked for as the jitter says."""
        zone = delay.get("timezone") or self._born[row.instance]["timezone"]
        free = delay["holidays"]
        ticks = -(-delay["duration"] // self._clock.resolution_ms)
        wanted = self._clock.local(row.tick + ticks, zone)
        while wanted.weekday() >= WORKDAYS or wanted.date().isoformat() in free:
            wanted += dt.timedelta(days=1)
        target = wanted.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000
        there = self._clock.local(due, zone)
        off = abs(self._clock.ms(due) - target)
        if there.weekday() >= WORKDAYS or there.date().isoformat() in free:
            self._wrong(f"{row.instance} waits for business days, until {there} in {zone}")
        elif off > delay.get("jitter", 0) + self._clock.resolution_ms:
            self._wrong(f"{row.instance} waits until {there} in {zone}; wanted was {wanted}")

    # pools ---------------------------------------------------------------------------------------

    def _check_sticky(self) -> None:
        """Who got another resource than before: the old one had nothing left."""
        for tenant, use in self.uses:
            books = self.books[tenant]
            if not use.sticky or use.sticky == use.resource or use.pinned:
                continue
            id = books.enabled_key(use.pool, use.sticky)
            if id and books.resource_free(use.pool, id, use.tick):
                self._wrong(
                    f"{use.instance} had {use.sticky}, which is free; it got {use.resource}"
                )

    def _wrong(self, said: str) -> None:
        self._fault = self._fault or said
