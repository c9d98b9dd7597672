"""`client.limits`, `client.pools` and `client.breakers`: a tenant's gate, over HTTP.

Wrong arguments are refused here by the rules of the gate itself, before anything is sent. What a
change made is read back as the engine's own view.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from msgspec.structs import asdict

from detent.client.talking import Talk
from detent.client.verb import D, Surface, part, verb
from detent.definition.durations import Duration
from detent.model.limits import NAME_CHARS
from detent.service import gates
from detent.service.arguments import check_text, instant_ms, invalid
from detent.service.breakers import BreakerView
from detent.service.gate_views import LimitView, PoolView, ResourceView, resource_in

_NOW_MS = 0  # what is checked here does not depend on it


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


class Limits(Surface[D]):
    """Rate limits: at most `max` in any window, for each (tenant, key)."""

    @verb
    def set(
        self, key: str, *, max: int, window: Duration, tenant: str | None = None
    ) -> Talk[LimitView]:
        """Make a limit, or change one; what is deferred already follows the new one."""
        args = {"key": key, "max": max, "window_ms": gates.window_ms(window)}
        gates.check_first_change("limit.set", args, _NOW_MS)
        body = {"max_count": max, "window_ms": args["window_ms"]}
        return (yield from self._change("PUT", key, "", body, self._whose(tenant)))

    @verb
    def close(
        self,
        key: str,
        *,
        until: dt.datetime | None = None,
        for_: Duration | None = None,
        tenant: str | None = None,
    ) -> Talk[LimitView]:
        """Let nothing through until an instant, or for a while."""
        whose = self._whose(tenant)
        body: dict[str, Any]
        if until is None or for_ is not None:
            body = {"for_seconds": gates.closing_ms(until, for_, _NOW_MS) / 1000}
        else:
            instant_ms("until", until)
            body = {"closed_until": until}
        yield from self._show(key, whose)
        return (yield from self._change("POST", key, "/close", body, whose))

    @verb
    def open(self, key: str, *, tenant: str | None = None) -> Talk[LimitView]:
        """Let through again what the window allows, also where a provider had closed the key."""
        whose = self._whose(tenant)
        yield from self._show(key, whose)
        return (yield from self._change("POST", key, "/open", None, whose))

    @verb
    def delete(self, key: str, *, tenant: str | None = None) -> Talk[None]:
        """Remove a limit; what waits for it goes on."""
        whose = self._whose(tenant)
        yield from self._show(key, whose)
        yield from self._tell("DELETE", f"/rate-limits/{part(key)}", tenant=whose)

    @verb
    def list(self, *, tenant: str | None = None) -> Talk[Sequence[LimitView]]:
        """Every limit, by key."""
        return (yield from self._get("/inspect/limits", list[LimitView], self._whose(tenant)))

    @verb
    def show(self, key: str, *, tenant: str | None = None) -> Talk[LimitView]:
        """One limit: how much of it is used, who waits, when there is room."""
        return (yield from self._show(key, self._whose(tenant)))

    def _change(self, method: str, key: str, rest: str, body: Any, tenant: str) -> Talk[LimitView]:
        yield from self._tell(method, f"/rate-limits/{part(key)}{rest}", body, tenant=tenant)
        return (yield from self._show(key, tenant))

    def _show(self, key: str, tenant: str) -> Talk[LimitView]:
        found = yield from self._get("/inspect/limits", tuple[LimitView], tenant, key=key)
        return found[0]


class Pools(Surface[D]):
    """Pools: resources that stand in for one another, with weights, caps and warm-up."""

    @verb
    def create(
        self, name: str, strategy: str = "weighted", *, tenant: str | None = None
    ) -> Talk[PoolView]:
        """Make a pool, or change the strategy of one: weighted, round_robin or random."""
        args = {"name": name, "strategy": strategy}
        gates.check_first_change("pool.set", args, _NOW_MS)
        whose = self._whose(tenant)
        yield from self._tell("PUT", f"/pools/{part(name)}", {"strategy": strategy}, tenant=whose)
        return (yield from self._show(name, whose))

    @verb
    def add(
        self,
        pool: str,
        resource_key: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        **fields: Unpack[ResourceFields],
    ) -> Talk[ResourceView]:
        """Add a resource; with the `id` of one that is there (by default its key), change it."""
        chosen = resource_key if id is None else id
        told = {"resource_key": resource_key, "name": resource_key, **_told(fields, dict(fields))}
        gates.check_resource({"pool": pool, "id": chosen, **told}, _NOW_MS)
        return (yield from self._set(self._whose(tenant), pool, chosen, {"id": chosen, **told}))

    @verb
    def update(
        self,
        pool: str,
        id: str,
        *,
        tenant: str | None = None,
        **fields: Unpack[ResourceFields],
    ) -> Talk[ResourceView]:
        """Change the given fields of a resource; the others stay."""
        chosen: dict[str, Any] = dict(fields)
        if "resource_key" in chosen:
            expected = "left as it is: remove the resource and add another"
            raise invalid("resource_key", expected, chosen["resource_key"])
        whose = self._whose(tenant)
        there = asdict(resource_in((yield from self._show(pool, whose)), id))
        told = _told(fields, {**there, **chosen})
        kept = {name: there[name] for name in ("resource_key", *gates.RESOURCE_FIELDS)}
        day = kept["warmup_start"]
        kept["warmup_start"] = None if day is None else day.isoformat()
        gates.check_resource({"pool": pool, "id": id, **kept, **told}, _NOW_MS)
        path = f"/pools/{gates.pool_id(whose, pool)}/resources/{part(id)}"
        yield from self._tell("PUT", path, told, tenant=whose)
        return resource_in((yield from self._show(pool, whose)), id)

    @verb
    def remove(self, pool: str, id: str, *, tenant: str | None = None) -> Talk[None]:
        """Take a resource out of a pool; calls under way on it end as they would."""
        whose = self._whose(tenant)
        resource_in((yield from self._show(pool, whose)), id)
        path = f"/pools/{gates.pool_id(whose, pool)}/resources/{part(id)}"
        yield from self._tell("DELETE", path, tenant=whose)

    @verb
    def delete(self, name: str, *, tenant: str | None = None) -> Talk[None]:
        """Remove a pool with its resources."""
        whose = self._whose(tenant)
        yield from self._show(name, whose)
        yield from self._tell("DELETE", f"/pools/{gates.pool_id(whose, name)}", tenant=whose)

    @verb
    def list(self, *, tenant: str | None = None) -> Talk[Sequence[PoolView]]:
        """Every pool, by name."""
        return (yield from self._get("/inspect/pools", list[PoolView], self._whose(tenant)))

    @verb
    def show(self, name: str, *, tenant: str | None = None) -> Talk[PoolView]:
        """One pool with its resources and what each may do today."""
        return (yield from self._show(name, self._whose(tenant)))

    def _set(self, tenant: str, pool: str, id: str, body: dict[str, Any]) -> Talk[ResourceView]:
        path = f"/pools/{gates.pool_id(tenant, pool)}/resources"
        yield from self._show(pool, tenant)
        yield from self._tell("POST", path, body, tenant=tenant)
        return resource_in((yield from self._show(pool, tenant)), id)

    def _show(self, name: str, tenant: str) -> Talk[PoolView]:
        found = yield from self._get("/inspect/pools", tuple[PoolView], tenant, pool=name)
        return found[0]


class Breakers(Surface[D]):
    """Circuit breakers: one for each (tenant, handler) that has failed once."""

    @verb
    def list(self, *, tenant: str | None = None) -> Talk[Sequence[BreakerView]]:
        """The breakers of a tenant, or of all, by tenant and handler."""
        return (yield from self._get("/inspect/breakers", list[BreakerView], tenant))

    @verb
    def show(self, handler: str, *, tenant: str | None = None) -> Talk[BreakerView]:
        """One breaker; `breaker.unknown` for a handler that never failed."""
        whose = self._whose(tenant)
        found = yield from self._get(
            "/inspect/breakers", tuple[BreakerView], whose, handler=str(handler)
        )
        return found[0]

    @verb
    def reset(self, handler: str, *, tenant: str | None = None) -> Talk[None]:
        """Close a breaker and forget its failures; whoever waits for it goes on."""
        check_text("handler", handler, NAME_CHARS)
        whose = self._whose(tenant)
        path = f"/tenants/{part(whose)}/circuit-breakers/{part(handler)}/reset"
        yield from self._tell("POST", path, tenant=whose)


def _told(fields: Any, whole: dict[str, Any]) -> dict[str, Any]:
    """The fields as they travel; an unknown one, and one that has no effect, is refused."""
    return gates.resource_fields(fields, whole)
