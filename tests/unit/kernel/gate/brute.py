"""A gate by brute force: every grant is kept for ever, and every question counts them all again.

Written from the requirements, with none of the engine's own counters: what was granted is a list,
time is milliseconds, and a window is one in which two grants could lie, whatever the instant within
their ticks.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

EPOCH_MS = 1_767_225_600_000  # 2026-01-01T00:00Z
RESOLUTION_MS = 1_000
MINUTES = (0, 2)  # of each day


@dataclass
class Counted:
    """One grant that counts: on which limits, of which resource, since its call began."""

    tick: int | None  # None: it has not begun, and may do so at any time
    limits: tuple[str, ...]
    pool: str = ""
    resource: str = ""


@dataclass
class Brute:
    """What a tenant has used, and what is configured."""

    config: object
    grants: list[Counted] = field(default_factory=list)
    closed: dict[str, int] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)  # instance -> concurrency key

    # what is free --------------------------------------------------------------------------------

    def fits(self, ask, tick) -> bool:
        """Whether everything an ask names is free at a tick."""
        if ask.pool and ask.pool not in self.config.pools:
            return True  # it is refused, which needs nothing
        return (
            all(self.limit_free(key, tick) for key in ask.limits)
            and (not ask.pool or bool(self.resources(ask, tick)))
            and (not ask.slot or self.held(ask.slot) < ask.slots)
            and (not ask.window or in_hours(tick))
        )

    def limit_free(self, key, tick) -> bool:
        if tick < self.closed.get(key, 0):
            return False
        limit = self.config.limits.get(key)
        return limit is None or self.in_window(key, tick, limit.window_ms) < limit.max

    def in_window(self, key, tick, window_ms) -> int:
        """How many calls could lie in one window with a call at this tick."""
        return sum(
            1
            for each in self.grants
            if key in each.limits
            and (each.tick is None or (tick - each.tick - 1) * RESOLUTION_MS < window_ms)
        )

    def resources(self, ask, tick) -> list[str]:
        """Which resources an ask can have at a tick."""
        pool = self.config.pools[ask.pool]
        bound = self.bound_to(ask)
        return [
            id
            for id in ([bound] if bound else pool.resources)
            if self.resource_free(ask.pool, id, tick)
        ]

    def bound_to(self, ask) -> str:
        """The one resource an ask must have; one that is gone or disabled binds nobody."""
        pool = self.config.pools.get(ask.pool)
        resource = pool.resources.get(ask.resource) if pool is not None else None
        return ask.resource if resource is not None and resource.enabled else ""

    def resource_free(self, pool, id, tick) -> bool:
        resource = self.config.pools[pool].resources[id]
        if not resource.enabled or not self.limit_free(resource.resource_key, tick):
            return False
        today = day_of(tick, resource.timezone)
        cap = cap_of(resource, today)
        return cap is None or self.on_day(pool, id, resource.timezone, today) < cap

    def on_day(self, pool, id, zone, day) -> int:
        return sum(
            1
            for each in self.grants
            if (each.pool, each.resource) == (pool, id)
            and (each.tick is None or day_of(each.tick, zone) == day)
        )

    def held(self, key) -> int:
        return sum(1 for each in self.holders.values() if each == key)

    def first_fit(self, ask, tick, horizon) -> int | None:
        """The first tick from this one on at which an ask fits, if nothing else happens."""
        return next((t for t in range(tick, tick + horizon) if self.fits(ask, t)), None)

    # what was used -------------------------------------------------------------------------------

    def count(self, ask, resource) -> Counted:
        """A grant; it counts on the limits that there are now."""
        keys = dict.fromkeys(ask.limits)
        if resource:
            keys[self.config.pools[ask.pool].resources[resource].resource_key] = None
        made = Counted(
            None, tuple(key for key in keys if key in self.config.limits), ask.pool, resource
        )
        self.grants.append(made)
        if ask.slot:
            self.holders[ask.instance] = ask.slot
        return made

    def forget(self, key) -> None:
        """The limit is deleted: one made again under the key begins anew, with what is to come."""
        for each in self.grants:
            if each.tick is None:
                continue
            each.limits = tuple(limit for limit in each.limits if limit != key)

    def begin(self, grant, tick) -> None:
        """Its call begins; a resource that is gone by then counts it no longer."""
        pool = self.config.pools.get(grant.pool)
        if pool is None or grant.resource not in pool.resources:
            grant.resource = ""
        grant.limits = tuple(key for key in grant.limits if key in self.config.limits)
        grant.tick = tick

    def undo(self, ask, grant) -> None:
        """Nobody took it."""
        self.grants = [each for each in self.grants if each is not grant]
        if ask.slot:
            del self.holders[ask.instance]


def day_of(tick, zone) -> dt.date:
    at = (EPOCH_MS + tick * RESOLUTION_MS) / 1000
    return dt.datetime.fromtimestamp(at, ZoneInfo(zone)).date()


def in_hours(tick) -> bool:
    """Whether the send windows of these tests are open: some minutes after midnight, in UTC."""
    return tick * RESOLUTION_MS // 60_000 % 1_440 in MINUTES


def cap_of(resource, day) -> int | None:
    """Contract, section 23: start_cap + (daily_cap - start_cap) x days_active / warmup_days."""
    full = resource.daily_cap or None
    if resource.warmup_start is None:
        return full
    active = max(0, (day - resource.warmup_start).days)
    if resource.warmup_schedule is not None:
        left = dict(enumerate(resource.warmup_schedule))
        return left.get(active, full)
    if active >= resource.warmup_days:
        return full
    rise = (resource.daily_cap - resource.warmup_start_cap) * active
    return resource.warmup_start_cap + rise // resource.warmup_days


def exceeded(ticks, most, window_ms) -> list[tuple[int, int]]:
    """The windows that hold one grant too many, as the first and the last of them."""
    ordered = sorted(ticks)
    return [
        (early, late)
        for early, late in zip(ordered, ordered[most:], strict=False)
        if (late - early - 1) * RESOLUTION_MS < window_ms
    ]
