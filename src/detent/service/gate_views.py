"""What a tenant's gate says: limits and pools as configured, and how they stand now.

The configuration is read from the snapshot of the gate's instance, what was used and who waits from
the rows the gate has written; both are put together by the gate's own meters. A tenant whose gate
was never started has no limits and no pools.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from detent.calendar import local_of
from detent.definition.system import GATE
from detent.kernel.gate.config import Config, Limit, Pool, Resource, cap_on, read_config
from detent.kernel.gate.config_checks import unknown
from detent.kernel.gate.meters import SOON, Meters, Timing
from detent.kernel.gate.permits import place_of
from detent.kernel.gate.rows import Row, read_rows
from detent.model.errors import RequestError
from detent.ports.store import Page
from detent.service.arguments import shown
from detent.service.gates import SYSTEM, gate_id
from detent.service.reading import check_tenant, read_snapshot

if TYPE_CHECKING:
    from detent.ports.store import Store

_COMPARED = 200  # ids looked at for a near match


class LimitView(Struct, frozen=True, kw_only=True):
    """A rate limit; instants are epoch milliseconds, figures None where they were not looked at.

    A key that a provider has closed is shown though nobody limits it: its `max` is None.
    """

    key: str
    max: int | None = None
    window_ms: int | None = None
    closed_until_ms: int | None = None
    used: int | None = None  # in the window that ends now
    waiting: int | None = None  # how many stand in line with this key among others
    free_ms: int | None = None  # when one more may pass; None: now


class ResourceView(Struct, frozen=True, kw_only=True):
    """A resource of a pool; `cap_today` is what its cap and warm-up allow on its date."""

    id: str
    resource_key: str
    name: str
    weight: int = 1
    enabled: bool = True
    daily_cap: int = 0
    timezone: str = "UTC"
    warmup_start: dt.date | None = None
    warmup_days: int = 0
    warmup_start_cap: int = 0
    warmup_schedule: tuple[int, ...] | None = None
    created_ms: int | None = None
    today: dt.date | None = None  # in its time zone
    cap_today: int | None = None  # None: without limit
    used_today: int | None = None
    free_ms: int | None = None  # when it can take one more; None: now, or not while disabled


class PoolView(Struct, frozen=True, kw_only=True):
    """A pool with its resources, in the order in which they were added."""

    name: str
    strategy: str
    resources: tuple[ResourceView, ...] = ()
    waiting: int | None = None
    turn: int | None = None  # its place in the rotation
    created_ms: int | None = None
    updated_ms: int | None = None


class Standing:
    """How a tenant's gate stands at an instant."""

    def __init__(self, store: Store, tenant: str, now_ms: int) -> None:
        meta = store.meta()
        timing = Timing(meta.epoch_ms, meta.resolution_ms)
        row = store.instance(gate_id(tenant))
        snapshot = None if row is None else read_snapshot(store, row)
        self.now_ms = now_ms
        self.config = Config() if snapshot is None else read_config(snapshot.kv)
        self._tick = max(0, (now_ms - meta.epoch_ms) // meta.resolution_ms)
        self._meters = Meters(timing, self.config)
        self._waiting: Counter[tuple[str, str]] = Counter()
        stored = store.gate_rows(tenant)
        rows = [Row(each.kind, each.key, each.at, each.body or b"") for each in stored]
        for ask, *_ in read_rows(self._meters, rows).places:
            self._waiting.update(("limit", key) for key in ask.limits)
            self._waiting.update([("pool", ask.pool)] if ask.pool else [])

    def limited(self) -> list[str]:
        """Every key that is limited, or closed by whoever stands behind it."""
        shut = [key for key, until in self._meters.shut.items() if until > self._tick]
        return sorted({*self.config.limits, *shut})

    def limit(self, key: str) -> LimitView:
        """One limit as it stands."""
        limit, meters = self.config.limits.get(key), self._meters
        free = meters.limit_free_at(key, self._tick)  # what has left the window is dropped here
        stamps = meters.used.get(key)
        return LimitView(
            key=key,
            max=None if limit is None else limit.max,
            window_ms=None if limit is None else limit.window_ms,
            closed_until_ms=self._closed_ms(key, limit),
            used=0 if stamps is None else stamps.total,
            waiting=self._waiting["limit", key],
            free_ms=self._ms(free),
        )

    def pool(self, name: str) -> PoolView:
        """One pool as it stands."""
        pool = self.config.pools[name]
        resources = tuple(
            self._resource(name, id, resource) for id, resource in pool.resources.items()
        )
        return PoolView(
            name=name,
            strategy=pool.strategy,
            resources=resources,
            waiting=self._waiting["pool", name],
            turn=self._meters.counters.get(name, 0),
            created_ms=pool.created_ms,
            updated_ms=pool.updated_ms,
        )

    def _resource(self, pool: str, id: str, resource: Resource) -> ResourceView:
        view = _resource(id, resource, self.now_ms)
        day = 0 if view.today is None else view.today.toordinal()
        free = self._meters.resource_free_at(pool, id, self._tick)
        used = self._meters.used_on(place_of(pool, id), day)
        return replace(view, used_today=used, free_ms=self._ms(free))

    def _closed_ms(self, key: str, limit: Limit | None) -> int | None:
        """Until when it is closed, by a person or by a provider; None once that is over."""
        shut = self._meters.timing.ms_of(self._meters.shut.get(key, 0))
        until = max(shut, (limit.closed_until_ms if limit is not None else None) or 0)
        return until if until > self.now_ms else None

    def _ms(self, tick: int) -> int | None:
        return self._meters.timing.ms_of(tick) if self._tick < tick < SOON else None


def gated_tenants(store: Store, tenant: str | None = None) -> list[str]:
    """The tenants that have limits or pools, or had some, by name; or the one that is named."""
    check_tenant(tenant)
    if tenant is not None:
        return [tenant]
    page = Page(namespace=SYSTEM, definition=GATE.hash, limit=1_000)
    found: set[str] = set()
    while rows := store.instances(page):
        found.update(row.tenant for row in rows)
        page = page._replace(after=rows[-1].n)
    return sorted(found)


def list_limits(store: Store, tenant: str, now_ms: int) -> list[LimitView]:
    """The limits of a tenant, by key."""
    standing = Standing(store, tenant, now_ms)
    return [standing.limit(key) for key in standing.limited()]


def find_limit(store: Store, tenant: str, key: str, now_ms: int) -> LimitView:
    """One limit."""
    standing = Standing(store, tenant, now_ms)
    known = standing.limited()
    if type(key) is not str or key not in known:
        raise unknown("limit.unknown", "limit", str(key), known)
    return standing.limit(key)


def list_pools(store: Store, tenant: str, now_ms: int) -> list[PoolView]:
    """The pools of a tenant, by name."""
    standing = Standing(store, tenant, now_ms)
    return [standing.pool(name) for name in sorted(standing.config.pools)]


def find_pool(store: Store, tenant: str, name: str, now_ms: int) -> PoolView:
    """One pool."""
    standing = Standing(store, tenant, now_ms)
    if type(name) is not str or name not in standing.config.pools:
        raise unknown("pool.unknown", "pool", str(name), standing.config.pools)
    return standing.pool(name)


def resource_in(pool: PoolView, id: str) -> ResourceView:
    """One resource of a pool."""
    found = {each.id: each for each in pool.resources}
    if type(id) is not str or id not in found:
        near = get_close_matches(str(id), list(found)[:_COMPARED], n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RequestError(
            "resource.unknown", f"there is no resource {shown(id)} in pool {pool.name!r}{hint}"
        )
    return found[id]


def limit_of(result: Any) -> LimitView:
    """The limit that a change made."""
    return convert(result, LimitView)


def pool_of(result: Any, now_ms: int) -> PoolView:
    """The pool that a change made."""
    made = convert(result, Pool)
    resources = tuple(_resource(id, each, now_ms) for id, each in made.resources.items())
    return PoolView(
        name=result["name"],
        strategy=made.strategy,
        resources=resources,
        created_ms=made.created_ms,
        updated_ms=made.updated_ms,
    )


def resource_of(result: Any, now_ms: int) -> ResourceView:
    """The resource that a change made."""
    return _resource(result["id"], convert(result, Resource), now_ms)


def _resource(id: str, resource: Resource, now_ms: int) -> ResourceView:
    today = local_of(now_ms, resource.timezone).date()
    return ResourceView(id=id, today=today, cap_today=cap_on(resource, today), **asdict(resource))
