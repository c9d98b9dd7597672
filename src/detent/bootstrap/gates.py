"""`engine.limits` and `engine.pools`: the configuration of a tenant's gate, for owner and visitor.

A verb becomes one change asked of the gate's instance, which is started on first use. What is read
comes from the store, so it needs no turn.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar, Unpack

from msgspec.structs import asdict

from detent.definition.system import GATE
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.link import Submission
from detent.ports.store import Store
from detent.service import gate_views, gates
from detent.service.arguments import invalid
from detent.service.gate_views import LimitView, PoolView, ResourceView
from detent.service.starting import Moment

T = TypeVar("T")

Span = int | str | dt.timedelta
"""Whole milliseconds, a text such as "1h30m", or a timedelta."""

# Not the first day of a warm-up: asked for again, it keeps the one it has.
_DEFAULTS = {
    "weight": 1,
    "daily_cap": 0,
    "timezone": "UTC",
    "warmup_days": 0,
    "warmup_start_cap": 0,
    "warmup_schedule": None,
}


class ResourceFields(TypedDict, total=False):
    """What can be said about a resource of a pool."""

    name: str
    weight: int
    enabled: bool
    daily_cap: int
    timezone: str
    warmup_start: dt.date | str | None
    warmup_days: int
    warmup_start_cap: int
    warmup_schedule: Sequence[int] | None


class Look(Protocol):
    """How the store is read."""

    def __call__(self, use: Callable[[Store], T], /) -> T: ...


class Door(NamedTuple):
    """What an engine or a visitor lends to the verbs here."""

    configure: Callable[[str, str, Any], Verdict]  # instance, verb, arguments
    begin: Callable[[Definition, str, Submission], None]  # definition, tenant, its start
    look: Look
    moment: Callable[[], Moment]


class Gatehouse:
    """A tenant's gate as its configuration is changed and read."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def _change(self, tenant: str, verb: str, args: dict[str, Any]) -> Any:
        instance = gates.gate_id(tenant)
        gates.check_arguments(verb, args)
        if not self._door.look(lambda store: gates.gate_started(store, tenant)):
            gates.check_first_change(verb, args, self._now_ms())
            seed = self._door.moment().seed
            self._door.begin(GATE, tenant, gates.gate_start(tenant, seed))
        return self._door.configure(instance, verb, args).result

    def _now_ms(self) -> int:
        moment = self._door.moment()
        return moment.epoch_ms + moment.tick * moment.resolution_ms


class Limits(Gatehouse):
    """Rate limits: at most `max` in any window, for each (tenant, key)."""

    def set(self, key: str, *, max: int, window: Span, tenant: str = "default") -> LimitView:
        """Make a limit, or change one; what is deferred already follows the new one."""
        args = {"key": key, "max": max, "window_ms": gates.window_ms(window)}
        return gate_views.limit_of(self._change(tenant, "limit.set", args))

    def close(
        self,
        key: str,
        *,
        until: dt.datetime | None = None,
        for_: Span | None = None,
        tenant: str = "default",
    ) -> LimitView:
        """Let nothing through until an instant, or for a while."""
        args = {"key": key, "until_ms": gates.closing_ms(until, for_, self._now_ms())}
        return gate_views.limit_of(self._change(tenant, "limit.close", args))

    def open(self, key: str, *, tenant: str = "default") -> LimitView:
        """Let through again what the window allows, also where a provider had closed the key."""
        self.show(key, tenant=tenant)  # refuses a key that nobody has limited or closed
        return gate_views.limit_of(self._change(tenant, "limit.open", {"key": key}))

    def delete(self, key: str, *, tenant: str = "default") -> None:
        """Remove a limit; what waits for it goes on."""
        self._change(tenant, "limit.delete", {"key": key})

    def list(self, *, tenant: str = "default") -> Sequence[LimitView]:
        """Every limit, by key."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: gate_views.list_limits(store, tenant, now_ms))

    def show(self, key: str, *, tenant: str = "default") -> LimitView:
        """One limit: how much of it is used, who waits, when there is room."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: gate_views.find_limit(store, tenant, key, now_ms))


class Pools(Gatehouse):
    """Pools: resources that stand in for one another, with weights, caps and warm-up."""

    def create(self, name: str, strategy: str = "weighted", *, tenant: str = "default") -> PoolView:
        """Make a pool, or change the strategy of one: weighted, round_robin or random."""
        args = {"name": name, "strategy": strategy, "at_ms": self._now_ms()}
        return gate_views.pool_of(self._change(tenant, "pool.set", args), self._now_ms())

    def add(
        self,
        pool: str,
        resource_key: str,
        *,
        id: str | None = None,
        tenant: str = "default",
        **fields: Unpack[ResourceFields],
    ) -> ResourceView:
        """Add a resource; with the `id` of one that is there (by default its key), change it.

        A `daily_cap` of 0 is none. A warm-up begins on `warmup_start`, by default the day on which
        it is first asked for, and rises from `warmup_start_cap` to `daily_cap` in `warmup_days`, or
        by `warmup_schedule`, a cap for each day.
        """
        whole = {"name": resource_key, **_DEFAULTS, **fields}
        told = gates.resource_fields(fields, whole)
        chosen = {"resource_key": resource_key, **whole, **told}
        return self._set(tenant, pool, resource_key if id is None else id, chosen)

    def update(
        self, pool: str, id: str, *, tenant: str = "default", **fields: Unpack[ResourceFields]
    ) -> ResourceView:
        """Change the given fields of a resource; the others stay."""
        chosen = dict(fields)
        if "resource_key" in chosen:
            expected = "left as it is: remove the resource and add another"
            raise invalid("resource_key", expected, chosen["resource_key"])
        there = self._find(pool, id, tenant)
        return self._set(tenant, pool, id, gates.resource_fields(chosen, {**there, **chosen}))

    def remove(self, pool: str, id: str, *, tenant: str = "default") -> None:
        """Take a resource out of a pool; calls under way on it end as they would."""
        self._find(pool, id, tenant)
        self._change(tenant, "resource.delete", {"pool": pool, "id": id})

    def delete(self, name: str, *, tenant: str = "default") -> None:
        """Remove a pool with its resources."""
        self._change(tenant, "pool.delete", {"name": name})

    def list(self, *, tenant: str = "default") -> Sequence[PoolView]:
        """Every pool, by name."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: gate_views.list_pools(store, tenant, now_ms))

    def show(self, name: str, *, tenant: str = "default") -> PoolView:
        """One pool with its resources and what each may do today."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: gate_views.find_pool(store, tenant, name, now_ms))

    def _find(self, pool: str, id: str, tenant: str) -> dict[str, Any]:
        """The fields of a resource; refuses a pool or a resource that is not there."""
        found = self.show(pool, tenant=tenant)
        return asdict(gate_views.resource_in(found, id))

    def _set(self, tenant: str, pool: str, id: str, fields: dict[str, Any]) -> ResourceView:
        args = {"pool": pool, "id": id, "at_ms": self._now_ms(), **fields}
        return gate_views.resource_of(self._change(tenant, "resource.set", args), self._now_ms())
