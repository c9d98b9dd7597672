"""Limits, pools, breakers and schedules, through any door."""

from __future__ import annotations

import datetime as dt

from msgspec.structs import asdict

from tests.integration.client.world import REFUSED, well
from tests.integration.doors import fresh

NOON = "0 12 * * *"
# What a client reads back after a change has its figures, what an engine gives has not.
FIGURES = ("used", "waiting", "used_today", "resources", "turn", "created_ms", "updated_ms")


def shown(view, *hidden):
    """A view without what differs from one to the next."""
    return {name: value for name, value in asdict(view).items() if name not in hidden}


def whole(pool):
    """A pool with its resources, but for its name and when it was made."""
    resources = [shown(each, "created_ms") for each in pool.resources]
    return shown(pool, "name", "resources", "created_ms", "updated_ms") | {"resources": resources}


def limit(world):
    key, tenant = fresh("mail"), fresh("acme")
    world.engine.limits.set(key, max=3, window="1h", tenant=tenant)
    return key, tenant


def pool(world):
    name, tenant = fresh("boxes"), fresh("acme")
    world.engine.pools.create(name, "round_robin", tenant=tenant)
    world.engine.pools.add(name, "a@x.org", tenant=tenant, weight=2, daily_cap=9)
    return name, tenant


def cron(world):
    tenant = fresh("acme")
    return world.engine.crons.create(world.greeting(), NOON, tenant=tenant).id, tenant


# limits ------------------------------------------------------------------------------------------


@well("limits.set")
def _set(door, world):
    made = door.limits.set("mail", max=3, window=dt.timedelta(hours=1), tenant=fresh("acme"))
    return shown(made, *FIGURES)


@well("limits.close")
def _close(door, world):
    key, tenant = limit(world)
    until = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
    by_instant = door.limits.close(key, until=until, tenant=tenant).closed_until_ms
    assert door.limits.close(key, for_="5m", tenant=tenant).closed_until_ms < by_instant
    return by_instant


@well("limits.open")
def _open(door, world):
    key, tenant = limit(world)
    world.engine.limits.close(key, for_="5m", tenant=tenant)
    return door.limits.open(key, tenant=tenant).closed_until_ms is None


@well("limits.delete")
def _delete(door, world):
    key, tenant = limit(world)
    assert door.limits.delete(key, tenant=tenant) is None
    return list(world.engine.limits.list(tenant=tenant))


@well("limits.list")
def _list(door, world):
    key, tenant = limit(world)
    return [each.key == key for each in door.limits.list(tenant=tenant)]


@well("limits.show")
def _show(door, world):
    key, tenant = limit(world)
    return shown(door.limits.show(key, tenant=tenant), "key")


# pools -------------------------------------------------------------------------------------------


@well("pools.create")
def _create(door, world):
    return shown(door.pools.create("boxes", "random", tenant=fresh("acme")), *FIGURES)


@well("pools.add")
def _add(door, world):
    name, tenant = pool(world)
    made = door.pools.add(name, "b@x.org", id="b", tenant=tenant, weight=4, name="B")
    return shown(made, *FIGURES)


@well("pools.update")
def _update(door, world):
    name, tenant = pool(world)
    return shown(door.pools.update(name, "a@x.org", tenant=tenant, enabled=False), *FIGURES)


@well("pools.remove")
def _remove(door, world):
    name, tenant = pool(world)
    assert door.pools.remove(name, "a@x.org", tenant=tenant) is None
    return list(world.engine.pools.show(name, tenant=tenant).resources)


@well("pools.delete")
def _delete_pool(door, world):
    name, tenant = pool(world)
    assert door.pools.delete(name, tenant=tenant) is None
    return list(world.engine.pools.list(tenant=tenant))


@well("pools.list")
def _list_pools(door, world):
    _, tenant = pool(world)
    return [whole(each) for each in door.pools.list(tenant=tenant)]


@well("pools.show")
def _show_pool(door, world):
    name, tenant = pool(world)
    return whole(door.pools.show(name, tenant=tenant))


# breakers ----------------------------------------------------------------------------------------


@well("breakers.list")
def _list_breakers(door, world):
    handler, tenant = world.breaker()
    (one,) = door.breakers.list(tenant=tenant)
    assert handler in [each.handler for each in door.breakers.list()]
    assert (one.handler, one.tenant) == (handler, tenant)
    return shown(one, "handler", "tenant")


@well("breakers.show")
def _show_breaker(door, world):
    handler, tenant = world.breaker()
    return shown(door.breakers.show(handler, tenant=tenant), "handler", "tenant")


@well("breakers.reset")
def _reset(door, world):
    handler, tenant = world.breaker()
    assert door.breakers.reset(handler, tenant=tenant) is None
    assert door.breakers.reset("never-failed", tenant=tenant) is None
    return world.engine.breakers.show(handler, tenant=tenant).failures


# schedules ---------------------------------------------------------------------------------------


@well("crons.create")
def _create_cron(door, world):
    made = door.crons.create(world.greeting(), NOON, id=fresh("noon"), tenant=fresh("acme"))
    return made.cron_expr, made.enabled, made.next_fire_ms


@well("crons.update")
def _update_cron(door, world):
    id, tenant = cron(world)
    made = door.crons.update(id, tenant=tenant, expr="0 13 * * *", timezone="Europe/Rome")
    return made.cron_expr, made.timezone


@well("crons.enable")
def _enable(door, world):
    id, tenant = cron(world)
    world.engine.crons.disable(id, tenant=tenant)
    return door.crons.enable(id, tenant=tenant).enabled


@well("crons.disable")
def _disable(door, world):
    id, tenant = cron(world)
    return door.crons.disable(id, tenant=tenant).enabled


@well("crons.delete")
def _delete_cron(door, world):
    id, tenant = cron(world)
    assert door.crons.delete(id, tenant=tenant) is None
    return list(world.engine.crons.list(tenant=tenant))


@well("crons.list")
def _list_crons(door, world):
    id, tenant = cron(world)
    return [each.id == id for each in door.crons.list(tenant=tenant, limit=5)]


@well("crons.show")
def _show_cron(door, world):
    id, tenant = cron(world)
    assert door.crons.show(id, tenant=tenant) == world.engine.crons.show(id, tenant=tenant)
    return door.crons.show(id, tenant=tenant).fires


@well("crons.next_fires")
def _next_fires(door, world):
    id, tenant = cron(world)
    return list(door.crons.next_fires(id, 3, tenant=tenant))


@well("crons.preview")
def _preview(door, world):
    after = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    return list(door.crons.preview(NOON, "Europe/Rome", 2, after=after))


REFUSED |= {
    "limits.set": (lambda door, _: door.limits.set("m", max=0, window="1h"), "limit.invalid"),
    "limits.close": (lambda door, _: door.limits.close("none", for_="5m"), "limit.unknown"),
    "limits.open": (lambda door, _: door.limits.open("none"), "limit.unknown"),
    "limits.delete": (lambda door, _: door.limits.delete("none"), "limit.unknown"),
    "limits.list": (lambda door, _: door.limits.list(tenant=""), "request.invalid"),
    "limits.show": (lambda door, _: door.limits.show("none"), "limit.unknown"),
    "pools.create": (lambda door, _: door.pools.create("p", "best"), "pool.invalid"),
    "pools.add": (lambda door, _: door.pools.add("none", "a"), "pool.unknown"),
    "pools.update": (
        lambda door, w: door.pools.update(pool(w)[0], "none", weight=2),
        "pool.unknown",
    ),
    "pools.remove": (lambda door, _: door.pools.remove("none", "a"), "pool.unknown"),
    "pools.delete": (lambda door, _: door.pools.delete("none"), "pool.unknown"),
    "pools.list": (lambda door, _: door.pools.list(tenant=""), "request.invalid"),
    "pools.show": (lambda door, _: door.pools.show("none"), "pool.unknown"),
    "breakers.list": (lambda door, _: door.breakers.list(tenant=""), "request.invalid"),
    "breakers.show": (lambda door, _: door.breakers.show("none"), "breaker.unknown"),
    "breakers.reset": (lambda door, _: door.breakers.reset(""), "request.invalid"),
    "crons.create": (
        lambda door, w: door.crons.create(w.greeting(), "61 * * * *"),
        "calendar.cron",
    ),
    "crons.update": (lambda door, _: door.crons.update("none", enabled=True), "cron.not_found"),
    "crons.enable": (lambda door, _: door.crons.enable("none"), "cron.not_found"),
    "crons.disable": (lambda door, _: door.crons.disable("none"), "cron.not_found"),
    "crons.delete": (lambda door, _: door.crons.delete("none"), "cron.not_found"),
    "crons.list": (lambda door, _: door.crons.list(limit=0), "request.invalid"),
    "crons.show": (lambda door, _: door.crons.show("none"), "cron.not_found"),
    "crons.next_fires": (lambda door, _: door.crons.next_fires("none"), "cron.not_found"),
    "crons.preview": (lambda door, _: door.crons.preview("nonsense"), "calendar.cron"),
}
