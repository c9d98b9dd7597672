"""Rate limits and pools of a tenant (contract §23 and §24)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from detent.model.errors import RequestError
from detent.service.arguments import invalid
from detent.service.gate_views import gated_tenants, resource_in
from detent.service.gates import pool_id
from detent.web.api.bodies import milliseconds
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, instant, json_reply, seconds
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.service.desk import Verbs
    from detent.service.gate_views import LimitView, PoolView, ResourceView

table = Table("limits")

NAME_MOST = 255


class TenantQuery(Struct):
    """Whose."""

    tenant_id: str | None = None


class NewLimit(Struct):
    """At most `max_count` in any window of so many seconds (or milliseconds)."""

    max_count: int
    window_seconds: float | None = None
    window_ms: int | None = None
    tenant_id: str = ""


class Closing(Struct):
    """Until when nothing passes."""

    closed_until: dt.datetime | None = None
    for_seconds: float | None = None
    tenant_id: str = ""


class NewPool(Struct):
    """A pool of resources."""

    name: str
    tenant_id: str = ""
    strategy: Literal["round_robin", "weighted", "random"] = "round_robin"


class PoolChange(Struct):
    """How a pool chooses among its resources."""

    strategy: Literal["round_robin", "weighted", "random"] = "round_robin"
    tenant_id: str = ""


class NewResource(Struct):
    """A resource of a pool; with the id of one that is there, that one is changed."""

    resource_key: str
    name: str
    id: str | None = None
    weight: int = 1
    enabled: bool = True
    daily_cap: int = 0
    timezone: str = "UTC"
    warmup_start: str | UnsetType | None = UNSET  # left out, one that has begun goes on
    warmup_days: int = 0
    warmup_start_cap: int = 0
    warmup_schedule: list[int] | None = None


class ResourceChange(Struct):
    """What to change of a resource; the rest stays."""

    name: str | UnsetType = UNSET
    weight: int | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    daily_cap: int | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    warmup_start: str | UnsetType | None = UNSET
    warmup_days: int | UnsetType = UNSET
    warmup_start_cap: int | UnsetType = UNSET
    warmup_schedule: list[int] | UnsetType | None = UNSET


# rate limits -------------------------------------------------------------------------------------


@table.route("GET", "/rate-limits", query=TenantQuery, gives={200: list[Any]})
async def list_limits(call: Call) -> Response:
    """Every limit of the tenant, with how much of it is used."""
    tenant = call.needed_scope(call.query.tenant_id)
    found = await call.desk.verb(lambda verbs: verbs.limits.list(tenant=tenant))
    return json_reply([_limit(tenant, each) for each in found])


@table.route("GET", "/rate-limits/{key}", query=TenantQuery, gives={200: Any})
async def show_limit(call: Call) -> Response:
    """One limit."""
    tenant, key = call.needed_scope(call.query.tenant_id), call.path["key"]
    found = await call.desk.verb(lambda verbs: verbs.limits.show(key, tenant=tenant))
    return json_reply(_limit(tenant, found))


@table.route("PUT", "/rate-limits/{key}", takes=NewLimit, gives={200: Any})
async def set_limit(call: Call, body: NewLimit) -> Response:
    """Make a limit, or change one; what is deferred already follows it."""
    tenant, key = call.owner(body.tenant_id), call.path["key"]
    if (body.window_seconds is None) == (body.window_ms is None):
        raise invalid("window", "either window_seconds or window_ms", None)
    window = body.window_ms
    if body.window_seconds is not None:
        window = milliseconds("window_seconds", body.window_seconds)
    found = await call.desk.verb(
        lambda verbs: verbs.limits.set(key, max=body.max_count, window=window, tenant=tenant)
    )
    return json_reply(_limit(tenant, found))


@table.route("DELETE", "/rate-limits/{key}", query=TenantQuery, gives={204: None})
async def delete_limit(call: Call) -> Response:
    """Remove a limit; what waits for it goes on."""
    tenant, key = call.needed_scope(call.query.tenant_id), call.path["key"]
    await call.desk.verb(lambda verbs: verbs.limits.delete(key, tenant=tenant))
    return empty_reply(204)


@table.route("POST", "/rate-limits/{key}/close", takes=Closing, gives={200: Any})
async def close_limit(call: Call, body: Closing) -> Response:
    """Let nothing through until an instant, or for a while."""
    tenant, key = call.owner(body.tenant_id), call.path["key"]
    until = body.closed_until
    if until is not None and until.tzinfo is None:
        until = until.replace(tzinfo=dt.UTC)
    span = None if body.for_seconds is None else milliseconds("for_seconds", body.for_seconds)
    found = await call.desk.verb(
        lambda verbs: verbs.limits.close(key, until=until, for_=span, tenant=tenant)
    )
    return json_reply(_limit(tenant, found))


@table.route("POST", "/rate-limits/{key}/open", query=TenantQuery, gives={200: Any})
async def open_limit(call: Call) -> Response:
    """Let through again what the window allows."""
    tenant, key = call.needed_scope(call.query.tenant_id), call.path["key"]
    found = await call.desk.verb(lambda verbs: verbs.limits.open(key, tenant=tenant))
    return json_reply(_limit(tenant, found))


def _limit(tenant: str, view: LimitView) -> dict[str, Any]:
    return {
        "tenant_id": tenant,
        "key": view.key,
        "max_count": view.max,
        "window_ms": view.window_ms,
        "window_seconds": seconds(view.window_ms),
        "used": view.used,
        "waiting": view.waiting,
        "closed_until": instant(view.closed_until_ms),
    }


# pools -------------------------------------------------------------------------------------------


@table.route("POST", "/pools", takes=NewPool, gives={201: Any})
async def create_pool(call: Call, body: NewPool) -> Response:
    """Make a pool; its name is its own in the tenant."""
    tenant = call.owner(body.tenant_id)
    _check_name("name", body.name)

    def make(verbs: Verbs) -> PoolView:
        if any(each.name == body.name for each in verbs.pools.list(tenant=tenant)):
            raise RequestError("pool.exists", f"the tenant has a pool {body.name!r} already")
        made: PoolView = verbs.pools.create(body.name, body.strategy, tenant=tenant)
        return made

    return json_reply(_pool(tenant, await call.desk.verb(make)), 201)


@table.route("PUT", "/pools/{name}", takes=PoolChange, gives={200: Any})
async def set_pool(call: Call, body: PoolChange) -> Response:
    """Make a pool of that name, or change how the one that is there chooses."""
    tenant, name = call.owner(body.tenant_id), call.path["name"]
    made = await call.desk.verb(lambda v: v.pools.create(name, body.strategy, tenant=tenant))
    return json_reply(_pool(tenant, made))


@table.route("GET", "/pools", query=TenantQuery, gives={200: list[Any]})
async def list_pools(call: Call) -> Response:
    """The pools of the tenant."""
    tenant = call.scope(call.query.tenant_id)
    if tenant is None:
        return json_reply([])
    found = await call.desk.verb(lambda verbs: verbs.pools.list(tenant=tenant))
    return json_reply([_pool(tenant, each) for each in found])


@table.route("GET", "/pools/{id:uuid}", query=TenantQuery, gives={200: Any})
async def show_pool(call: Call) -> Response:
    """One pool."""
    tenant, found = await _found(call)
    return json_reply(_pool(tenant, found))


@table.route("DELETE", "/pools/{id:uuid}", query=TenantQuery, gives={204: None})
async def delete_pool(call: Call) -> Response:
    """Remove a pool with its resources."""
    tenant, found = await _found(call)
    await call.desk.verb(lambda verbs: verbs.pools.delete(found.name, tenant=tenant))
    return empty_reply(204)


@table.route("GET", "/pools/{id:uuid}/resources", query=TenantQuery, gives={200: list[Any]})
async def list_resources(call: Call) -> Response:
    """The resources of a pool, with what each may do today."""
    _tenant, found = await _found(call)
    return json_reply([_resource(call.path["id"], each) for each in found.resources])


@table.route("POST", "/pools/{id:uuid}/resources", takes=NewResource, gives={201: Any})
async def add_resource(call: Call, body: NewResource) -> Response:
    """Add a resource; several may have the same key."""
    _check_name("resource_key", body.resource_key)
    _check_name("name", body.name)
    tenant, pool = await _found(call)
    fields = {name: getattr(body, name) for name in _FIELDS if getattr(body, name) is not UNSET}
    id = call.fresh_id() if body.id is None else body.id
    await call.desk.verb(
        lambda verbs: verbs.pools.add(pool.name, body.resource_key, id=id, tenant=tenant, **fields)
    )
    return json_reply(await _shown(call, id), 201)


@table.route("PUT", "/pools/{id:uuid}/resources/{rid}", takes=ResourceChange, gives={200: Any})
async def change_resource(call: Call, body: ResourceChange) -> Response:
    """Change what is named of a resource."""
    tenant, pool = await _found(call)
    fields = {name: getattr(body, name) for name in _FIELDS if getattr(body, name) is not UNSET}
    await call.desk.verb(
        lambda verbs: verbs.pools.update(pool.name, call.path["rid"], tenant=tenant, **fields)
    )
    return json_reply(await _shown(call, call.path["rid"]))


@table.route("DELETE", "/pools/{id:uuid}/resources/{rid}", query=TenantQuery, gives={204: None})
async def remove_resource(call: Call) -> Response:
    """Take a resource out of its pool; one that is gone already is gone."""
    tenant, pool = await _found(call)
    rid = call.path["rid"]
    if any(each.id == rid for each in pool.resources):
        await call.desk.verb(lambda verbs: verbs.pools.remove(pool.name, rid, tenant=tenant))
        return empty_reply(204)
    others = await call.desk.verb(lambda verbs: verbs.pools.list(tenant=tenant))
    if any(each.id == rid for other in others for each in other.resources):
        raise RequestError("resource.unknown", f"resource {rid} belongs to another pool")
    return empty_reply(204)


_FIELDS = (
    "name",
    "weight",
    "enabled",
    "daily_cap",
    "timezone",
    "warmup_start",
    "warmup_days",
    "warmup_start_cap",
    "warmup_schedule",
)


async def _found(call: Call) -> tuple[str, PoolView]:
    """The tenant and the pool of the id in the path."""
    named = call.scope(getattr(call.query, "tenant_id", None))
    tenants = [named] if named else await call.desk.look(gated_tenants)
    for tenant in tenants:
        for pool in await _pools(call, tenant):
            if pool_id(tenant, pool.name) == call.path["id"]:
                return tenant, pool
    raise RequestError("pool.unknown", f"there is no pool {call.path['id']}")


async def _shown(call: Call, resource: str) -> dict[str, Any]:
    """A resource of the pool in the path as it stands now."""
    _tenant, pool = await _found(call)
    return _resource(call.path["id"], resource_in(pool, resource))


async def _pools(call: Call, tenant: str) -> list[PoolView]:
    found: list[PoolView] = await call.desk.verb(lambda verbs: verbs.pools.list(tenant=tenant))
    return found


def _pool(tenant: str, view: PoolView) -> dict[str, Any]:
    return {
        "id": pool_id(tenant, view.name),
        "tenant_id": tenant,
        "name": view.name,
        "strategy": view.strategy,
        "round_robin_index": view.turn or 0,
        "resources": len(view.resources),
        "created_at": instant(view.created_ms or 0),
        "updated_at": instant(view.updated_ms or 0),
    }


def _resource(pool: str, view: ResourceView) -> dict[str, Any]:
    return {
        "id": view.id,
        "pool_id": pool,
        "resource_key": view.resource_key,
        "name": view.name,
        "weight": view.weight,
        "enabled": view.enabled,
        "daily_cap": view.daily_cap,
        "daily_usage": view.used_today or 0,
        "daily_usage_date": view.today if view.used_today else None,
        "cap_today": view.cap_today,
        "timezone": view.timezone,
        "warmup_start": view.warmup_start,
        "warmup_days": view.warmup_days,
        "warmup_start_cap": view.warmup_start_cap,
        "warmup_schedule": view.warmup_schedule,
        "created_at": instant(view.created_ms or 0),
    }


def _check_name(name: str, value: str) -> None:
    if not 0 < len(value) <= NAME_MOST:
        raise invalid(name, f"1 to {NAME_MOST} characters", value)
