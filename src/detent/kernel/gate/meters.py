"""Meters: what a tenant has used of its limits, resources and concurrency keys.

`free_at` tells when a rule lets one more pass: a tick (0 or past means now), SOON once a call that
was granted begins, or NEVER while only a change can free it. `consume` counts a grant on all rules
of an ask, as a permit on its limits; `give_back` undoes that, and `begin` counts the call. Every
number changed is also a row to write, so that memory and store never tell different stories.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from detent.calendar import closing, instant_of, is_open, local_of
from detent.kernel.gate.asks import Ask, encode
from detent.kernel.gate.breakers import Breakers
from detent.kernel.gate.config import Config, Pool, Resource, cap_on, next_day
from detent.kernel.gate.hours import Hours, Windows, just_missed, next_tick, windows_of
from detent.kernel.gate.permits import Permit, Permits, place_of
from detent.kernel.gate.rotation import Rotation
from detent.kernel.gate.stamps import Stamps

NEVER = (1 << 62) - 1
SOON = NEVER - 1  # which tick that is shows when a call begins

RowKey = tuple[str, str, int]  # kind, key, at
Rule = tuple[str, str, str]  # what kind, its key, and the pool of a resource


class Timing(NamedTuple):
    """How ticks are instants."""

    epoch_ms: int
    resolution_ms: int

    def ms_of(self, tick: int) -> int:
        """The instant of a tick."""
        return self.epoch_ms + tick * self.resolution_ms

    def tick_at(self, ms: int) -> int:
        """The first tick not before an instant."""
        return max(0, -(-(ms - self.epoch_ms) // self.resolution_ms))

    def span(self, ms: int) -> int:
        """How many ticks a grant counts in a window."""
        return -(-ms // self.resolution_ms) + 1


class Grant(NamedTuple):
    """What was counted for an ask, and when."""

    tick: int
    resource: str = ""
    key: str = ""
    probe: bool = False  # it is the one call that an open breaker lets pass


class Meters:
    """All counters of one tenant."""

    def __init__(self, timing: Timing, config: Config) -> None:
        self.timing = timing
        self.used: dict[str, Stamps] = {}
        self.hours: dict[str, Hours] = {}  # digest -> send windows that somebody has who waits
        self.counters: dict[str, int] = {}  # pool -> place in its rotation
        self.shut: dict[str, int] = {}  # limit or resource key -> tick it opens at
        self.held: dict[str, int] = {}  # concurrency key -> how many hold it
        self.holders: dict[str, tuple[str, int]] = {}  # instance -> its key, token it came with
        self.permits = Permits()
        self.breakers = Breakers(timing.resolution_ms)
        self.streaks: dict[Rule, int] = {}  # served in a row while a lower priority waited
        self.rows: dict[RowKey, bytes | None] = {}  # changed since the last commit
        self._days: dict[str, dict[int, int]] = {}  # place of a resource -> day -> grants
        self._today: dict[str, tuple[int, int, int]] = {}  # zone -> first tick, end tick, day
        self._having: dict[str, int] = {}  # digest -> how many wait with these windows
        self._windows: dict[str, Windows] = {}
        self._open: dict[str, tuple[int, int]] = {}  # digest -> first and end tick of an opening
        self.config = Config()
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Work by another configuration from now on; a deleted limit closes nothing any more."""
        for key in [key for key in self.config.limits if key not in config.limits]:
            if key in self.shut:
                self.open(key)
        self.config = config
        for key in [key for key in self.used if key not in config.limits]:
            for tick in self.used.pop(key).ticks():
                self.rows[("use", key, tick)] = None
        self._spans = {key: self.timing.span(each.window_ms) for key, each in config.limits.items()}
        self._rotations: dict[str, Rotation] = {}
        self._behind: dict[str, list[Rule]] = {key: [("limit", key, "")] for key in config.limits}
        for name, pool in config.pools.items():
            for id, resource in pool.resources.items():
                rules = self._behind.setdefault(resource.resource_key, [])
                rules += (("pool", name, ""), ("resource", id, name))

    # when ----------------------------------------------------------------------------------------

    def limit_free_at(self, key: str, tick: int) -> int:
        """When a limit lets one more pass; a key that nobody limits always does."""
        shut = self.shut.get(key, 0)
        if 0 < shut <= tick:
            self.open(key)
        limit = self.config.limits.get(key)
        if limit is None:
            return shut
        if limit.closed_until_ms is not None:
            shut = max(shut, self.timing.tick_at(limit.closed_until_ms))
        room = limit.max - self.permits.on_limit(key)
        if room <= 0:
            return SOON
        stamps = self.used.get(key)
        if stamps is None:
            return shut
        span = self._spans[key]
        for gone in stamps.expire(tick - span):
            self.rows[("use", key, gone)] = None
        return max(shut, stamps.free_at(room, span))

    def resource_free_at(self, pool: str, id: str, tick: int) -> int:
        """When a resource of a pool can take one more."""
        found = self.config.pools.get(pool)
        resource = found.resources.get(id) if found is not None else None
        if resource is None or not resource.enabled:
            return NEVER
        free = self.limit_free_at(resource.resource_key, tick)
        if resource.daily_cap or resource.warmup_start is not None:
            free = max(free, self._cap_free_at(pool, id, resource, tick))
        return free

    def pool_free_at(self, name: str, tick: int) -> int:
        """When the first of a pool's resources can take one more."""
        pool = self.config.pools.get(name)
        if pool is None:
            return 0  # refused at once, not waited for
        first = NEVER
        for id in pool.resources:
            at = self.resource_free_at(name, id, tick)
            if at <= tick:
                return at  # one is enough, and there may be a thousand
            first = min(first, at)
        return first

    def pinned(self, ask: Ask) -> bool:
        """Whether an ask must have its own resource; one that was taken out binds nobody."""
        pool = self.config.pools.get(ask.pool) if ask.resource else None
        resource = pool.resources.get(ask.resource) if pool is not None else None
        return resource is not None and resource.enabled

    def slot_free_at(self, key: str, slots: int) -> int:
        """Now while fewer than `slots` hold the key, else when one of them lets go."""
        return 0 if self.held.get(key, 0) < slots else NEVER

    def keys_of(self, rule: Rule) -> list[str]:
        """The keys of the limits that stand behind a rule."""
        kind, key, name = rule
        if kind == "limit":
            return [key]
        pool = self.config.pools.get(name if kind == "resource" else key)
        if kind not in ("resource", "pool") or pool is None:
            return []
        return [
            each.resource_key for id, each in pool.resources.items() if kind == "pool" or id == key
        ]

    def shortest(self, limits: tuple[str, ...], pool: str) -> int:
        """The shortest window among some limits and those of a pool's resources; 0: there is none.

        Whoever needs all of them finds, once the others are free, the last one free by then.
        """
        found = self.config.pools.get(pool)
        keys = [] if found is None else [each.resource_key for each in found.resources.values()]
        spans = [self._spans[key] for key in (*limits, *keys) if key in self._spans]
        return min(spans, default=0)

    def window_free_at(self, digest: str, tick: int) -> int:
        """When send windows let somebody act who has waited since they were open last.

        Now, if they never open again: whoever has them is called, and fails by its own look.
        """
        first, end = self._open.get(digest, (0, 0))
        if first <= tick < end:
            return tick
        windows = self._windows.get(digest)
        if windows is None:
            hours = self.hours.get(digest)
            if hours is None:
                return tick
            windows = self._windows[digest] = windows_of(hours)
        ms = self.timing.ms_of(tick)
        if is_open(windows.all, ms):
            shut = closing(windows.all, ms)
            self._open[digest] = (tick, tick + 1 if shut is None else self.timing.tick_at(shut))
            return tick
        if just_missed(windows, ms):
            return tick
        opens = next_tick(windows, ms, lambda at: self.timing.ms_of(self.timing.tick_at(at)))
        return tick if opens is None else self.timing.tick_at(opens)

    def _cap_free_at(self, pool: str, id: str, resource: Resource, tick: int) -> int:
        day, end = self._day(resource.timezone, tick)
        cap = cap_on(resource, dt.date.fromordinal(day))
        used = self.used_on(place_of(pool, id), day) + self.permits.on_resource(pool, id)
        if cap is None or used < cap:
            return 0
        free = next_day(resource, day)
        if free == day + 1:
            return end
        return NEVER if free is None else self._midnight(resource.timezone, free)

    def _day(self, zone: str, tick: int) -> tuple[int, int]:
        """The day of a tick in a zone, and the tick at which the next one begins."""
        known = self._today.get(zone)
        if known is None or not known[0] <= tick < known[1]:
            day = local_of(self.timing.ms_of(tick), zone).toordinal()
            known = (tick, self._midnight(zone, day + 1), day)
            self._today[zone] = known
        return known[2], known[1]

    def _midnight(self, zone: str, day: int) -> int:
        return self.timing.tick_at(instant_of(dt.datetime.fromordinal(day), zone))

    # how much ------------------------------------------------------------------------------------

    def consume(self, ask: Ask, tick: int) -> Grant:
        """Count one grant on everything an ask names; all of it is free."""
        keys = ask.limits
        id, key = "", ""
        if ask.slot:
            self.hold(ask.slot, ask.instance, ask.token)
            self.rows[("slot", ask.instance, ask.token)] = ask.slot.encode()
        if ask.pool:
            pool = self.config.pools[ask.pool]
            id = self._choose(ask, pool, tick)
            key = pool.resources[id].resource_key
            keys = keys if key in keys else (*keys, key)
        limited = tuple(each for each in keys if each in self.config.limits)
        if limited or id:
            self.permits.add(ask.ticket, Permit(limited, ask.pool, id))
        probe = bool(ask.breaker) and self.breakers.let_pass(ask.breaker, tick)
        return Grant(tick, id, key, probe)

    def give_back(self, ask: Ask, grant: Grant) -> None:
        """Undo a grant that nobody took."""
        self.permits.end(ask.ticket)
        if ask.slot:
            self.let_go(ask.slot, ask.instance, ask.token)
        if grant.probe:
            self.breakers.take_back(ask.breaker, grant.tick)

    def begin(self, ticket: str, tick: int) -> Permit | None:
        """Count a call that begins now, or has; None when it was counted, or never granted."""
        permit = self.permits.end(ticket)
        if permit is None:
            return None
        for key in permit.limits:
            self._use(key, tick)
        pool = self.config.pools.get(permit.pool)
        resource = None if pool is None else pool.resources.get(permit.resource)
        if resource is not None:
            day, _ = self._day(resource.timezone, tick)
            self._count_day(place_of(permit.pool, permit.resource), day)
        return permit

    def rules_behind(self, permit: Permit) -> list[tuple[Rule, str]]:
        """The rules that a permit counts on, each with the key that makes it so."""
        keys = permit.limits
        if permit.resource:
            pool = self.config.pools.get(permit.pool)
            resource = None if pool is None else pool.resources.get(permit.resource)
            keys = keys if resource is None else (*keys, resource.resource_key)
        found = dict.fromkeys(keys)
        return [(rule, key) for key in found for rule in self._behind.get(key, ())]

    def hold(self, key: str, instance: str, token: int) -> None:
        """An instance holds a concurrency key."""
        self.held[key] = self.held.get(key, 0) + 1
        self.holders[instance] = (key, token)

    def let_go(self, key: str, instance: str, token: int = 0) -> bool:
        """An instance holds a concurrency key no longer; False when it did not, by that token."""
        held, since = self.holders.get(instance, ("", 0))
        if held != key or token not in (0, since):
            return False
        del self.holders[instance]
        self.held[key] -= 1
        if not self.held[key]:
            del self.held[key]
        self.rows[("slot", instance, since)] = None
        return True

    def holders_of(self, key: str) -> tuple[str, ...]:
        """The instances that hold a concurrency key."""
        return tuple(sorted(each for each, (held, _) in self.holders.items() if held == key))

    def set_streak(self, rule: Rule, streak: int) -> None:
        """Remember how many were served in a row while a lower priority waited."""
        if streak:
            self.streaks[rule] = streak
        elif self.streaks.pop(rule, 0) == 0:
            return
        self.rows[("fair", rule_text(rule), 0)] = b"%d" % streak if streak else None

    def close(self, key: str, until: int) -> None:
        """Let nothing pass a key before a tick."""
        if until > self.shut.get(key, 0):
            self.shut[key] = until
            self.rows[("shut", key, 0)] = b"%d" % until

    def open(self, key: str) -> bool:
        """End a closing; False when there was none."""
        self.rows[("shut", key, 0)] = None
        return self.shut.pop(key, None) is not None

    def _choose(self, ask: Ask, pool: Pool, tick: int) -> str:
        def free(id: str) -> bool:
            return self.resource_free_at(ask.pool, id, tick) <= tick

        for wanted in (ask.resource, ask.sticky):
            if wanted and free(wanted):
                return wanted
        rotation = self._rotations.get(ask.pool)
        if rotation is None:
            rotation = self._rotations[ask.pool] = Rotation(pool)
        counter = self.counters.get(ask.pool, 0)
        if pool.strategy == "random":
            found = rotation.chance(ask.ticket, free)
        else:
            found = rotation.pick(counter, free)
        id, after = found if found is not None else ("", counter)
        if after != counter:
            self.counters[ask.pool] = after
            self.rows[("turn", ask.pool, 0)] = b"%d" % after
        return id

    def _use(self, key: str, tick: int) -> None:
        if key not in self.config.limits:
            return
        stamps = self.used.get(key)
        if stamps is None:
            stamps = self.used[key] = Stamps()
        self.rows[("use", key, tick)] = b"%d" % stamps.add(tick)

    def used_on(self, place: str, day: int) -> int:
        """How many grants a resource had on a day of its zone."""
        return self._days.get(place, {}).get(day, 0)

    def count_day(self, place: str, day: int, by: int) -> int:
        """Count grants of a resource on a day; how many that day has now."""
        days = self._days.setdefault(place, {})
        days[day] = days.get(day, 0) + by
        return days[day]

    def _count_day(self, place: str, day: int) -> None:
        self.rows[("day", place, day)] = b"%d" % self.count_day(place, day, 1)
        days = self._days[place]
        for old in [each for each in days if each < day - 1]:
            del days[old]
            self.rows[("day", place, old)] = None

    # whoever waits with send windows -------------------------------------------------------------

    def keep_hours(self, ask: Ask) -> None:
        """Somebody waits with these windows."""
        digest = ask.window
        if not digest:
            return
        self._having[digest] = self._having.get(digest, 0) + 1
        if digest not in self.hours and ask.hours is not None:
            self.hours[digest] = ask.hours
            self.rows[("hours", digest, 0)] = encode(ask.hours)

    def drop_hours(self, ask: Ask) -> None:
        """Somebody with these windows waits no longer."""
        digest = ask.window
        if not digest:
            return
        self._having[digest] -= 1
        if not self._having[digest]:
            del self._having[digest]
            for known in (self.hours, self._windows, self._open):
                known.pop(digest, None)
            self.rows[("hours", digest, 0)] = None


def rule_text(rule: Rule) -> str:
    """A rule as the key of a row."""
    kind, key, pool = rule
    return f"{kind}:{len(key)}:{key}:{pool}"


def rule_of_text(text: str) -> Rule:
    """The rule of a row's key."""
    kind, length, rest = text.split(":", 2)
    end = int(length)
    return (kind, rest[:end], rest[end + 1 :])
