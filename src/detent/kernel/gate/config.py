"""What a tenant's gate is told to do: limits, pools and their resources, and how they change.

The configuration lives in the `kv` of the tenant's gate instance, as plain JSON, so that each
change is an input of that instance: journaled, chained, replayed. `change` checks everything first
and only then touches `kv`; `read_config` gives the gate the same facts as values. What a time zone
says is a computed fact, so that a replay stands after an update of the zones.

kv = {"limit:<key>": Limit, "pool:<name>": {"strategy"}, "resource:<chars of pool>:<pool>:<id>":
Resource}: flat, since a large value of `kv` is stored anew as a whole at each change within it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import Struct, convert

from detent.kernel.gate import config_checks as check
from detent.model import limits
from detent.model.errors import RequestError

Strategy = Literal["weighted", "round_robin", "random"]
Computed = Callable[[str, Callable[[], Any]], Any]
"""How a fact is computed and recorded: `Run.computed`."""

VERBS = (
    "limit.set",
    "limit.delete",
    "limit.close",
    "limit.open",
    "pool.set",
    "pool.delete",
    "resource.set",
    "resource.delete",
    "breaker.reset",
)
_LIMIT, _POOL, _RESOURCES = "limit:", "pool:", "resource:"
_RESOURCE = {
    "weight": 1,
    "enabled": True,
    "daily_cap": 0,
    "timezone": "UTC",
    "warmup_days": 0,
    "warmup_start_cap": 0,
}
_OPTIONAL = ("warmup_start", "warmup_schedule")
_FIELDS = ("resource_key", "name", *_RESOURCE, *_OPTIONAL)


class Limit(Struct, frozen=True, kw_only=True):
    """At most `max` permits in any window of `window_ms`, none before `closed_until_ms`."""

    max: int
    window_ms: int
    closed_until_ms: int | None = None


class Resource(Struct, frozen=True, kw_only=True):
    """One mailbox, API key or number of a pool."""

    resource_key: str
    name: str
    weight: int = 1
    enabled: bool = True
    daily_cap: int = 0  # 0 = unlimited
    timezone: str = "UTC"
    warmup_start: dt.date | None = None
    warmup_days: int = 0
    warmup_start_cap: int = 0
    warmup_schedule: tuple[int, ...] | None = None
    created_ms: int | None = None  # where whoever made it said when


class Pool(Struct, frozen=True, kw_only=True):
    """Resources that stand in for one another; the order is that in which they were added."""

    strategy: Strategy = "weighted"
    resources: dict[str, Resource] = {}
    created_ms: int | None = None
    updated_ms: int | None = None


class Config(Struct, frozen=True, kw_only=True):
    """Everything one tenant has configured."""

    limits: dict[str, Limit] = {}
    pools: dict[str, Pool] = {}


def read_config(kv: dict[str, Any]) -> Config:
    """The configuration as values."""
    pools = {name: {**pool, "resources": {}} for name, pool in _under(kv, _POOL).items()}
    for name, resource in _under(kv, _RESOURCES).items():
        length, _, rest = name.partition(":")
        end = int(length)
        pools[rest[:end]]["resources"][rest[end + 1 :]] = resource
    return convert({"limits": _under(kv, _LIMIT), "pools": pools}, Config)


def cap_on(resource: Resource, day: dt.date) -> int | None:
    """How many permits a resource has on a date of its own time zone; None is without limit."""
    full = resource.daily_cap or None
    start = resource.warmup_start
    if start is None:
        return full
    active = max(0, (day - start).days)
    schedule = resource.warmup_schedule
    if schedule is not None:
        return schedule[active] if active < len(schedule) else full
    if active >= resource.warmup_days:
        return full
    first = resource.warmup_start_cap
    return first + (resource.daily_cap - first) * active // resource.warmup_days


def next_day(resource: Resource, day: int) -> int | None:
    """The first day after one on which a resource has any permits; days as ordinals.

    None beyond the end of the calendar. After its warm-up a resource has some every day.
    """
    following, last = day + 1, dt.date.max.toordinal()
    if following > last:
        return None
    if resource.warmup_start is None or cap_on(resource, dt.date.fromordinal(following)) != 0:
        return following
    schedule = resource.warmup_schedule
    length = resource.warmup_days if schedule is None else len(schedule)
    start = resource.warmup_start.toordinal()
    for each in range(max(following, start), min(start + length, last) + 1):
        if cap_on(resource, dt.date.fromordinal(each)) != 0:
            return each
    return None


def change(
    kv: dict[str, Any],
    verb: str,
    args: dict[str, Any],
    now_ms: int,
    computed: Computed = lambda _key, make: make(),
) -> dict[str, Any]:
    """Make one change and give the object it made; a RequestError leaves `kv` as it was."""
    match verb:
        case "limit.set":
            return _set_limit(kv, args)
        case "limit.delete":
            return _delete_limit(kv, args)
        case "limit.close":
            return _close_limit(kv, args, now_ms)
        case "limit.open":
            return _open_limit(kv, args)
        case "pool.set":
            return _set_pool(kv, args)
        case "pool.delete":
            return _delete_pool(kv, args)
        case "resource.set":
            return _set_resource(kv, args, _Zones(now_ms, computed))
        case "resource.delete":
            return _delete_resource(kv, args)
        case "breaker.reset":
            return _reset_breaker(args)
    raise check.unknown("request.invalid", "change of a gate", verb, VERBS)


class _Zones(NamedTuple):
    """What time zones say at this change, each answer recorded."""

    now_ms: int
    computed: Computed

    def today(self, zone: str) -> str:
        """The date there; an unknown zone is refused."""
        said = self.computed(f"today:{zone}", lambda: check.today(zone, self.now_ms))
        if "fault" in said:
            raise RequestError("calendar.zone", said["fault"])
        return str(said["date"])


def _set_limit(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    check.known_fields("limit.invalid", args, ("key", "max", "window_ms"))
    key = check.text("limit.invalid", args, "key")
    most = check.number("limit.invalid", args, "max", 1, limits.LIMIT_MAX)
    window = check.number("limit.invalid", args, "window_ms", 1, limits.LIMIT_WINDOW_MS)
    old = kv.get(_LIMIT + key)
    if old is None:
        check.room("limit.invalid", "limits", _under(kv, _LIMIT), limits.LIMITS_PER_TENANT)
    made = kv[_LIMIT + key] = {**(old or {}), "max": most, "window_ms": window}
    return {"key": key, **made}


def _delete_limit(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    key, _gone = _limit_of(kv, args)
    return {"key": key, **kv.pop(_LIMIT + key)}


def _close_limit(kv: dict[str, Any], args: dict[str, Any], now_ms: int) -> dict[str, Any]:
    key, limit = _limit_of(kv, args, "until_ms")
    latest = now_ms + limits.DURATION_MS
    until = check.instant("limit.invalid", args, "until_ms", now_ms + 1, latest)
    limit["closed_until_ms"] = until
    return {"key": key, **limit}


def _open_limit(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """End a closing; a key without a limit may have been closed by whoever stands behind it."""
    check.known_fields("limit.invalid", args, ("key",))
    key = check.text("limit.invalid", args, "key")
    limit = kv.get(_LIMIT + key, {})
    limit.pop("closed_until_ms", None)
    return {"key": key, **limit}


def _set_pool(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    check.known_fields("pool.invalid", args, ("name", "strategy", "at_ms"))
    name = check.text("pool.invalid", args, "name")
    old = kv.get(_POOL + name)
    at_ms = _at_ms(args)
    strategy = args.get("strategy", "weighted" if old is None else old["strategy"])
    check.one_of("pool.invalid", "strategy", strategy, ("weighted", "round_robin", "random"))
    if old is None:
        check.room("pool.invalid", "pools", _under(kv, _POOL), limits.POOLS_PER_TENANT)
    made = kv[_POOL + name] = {**(old or {}), "strategy": strategy}
    if at_ms is not None:
        made |= {"updated_ms": at_ms} if old else {"created_ms": at_ms, "updated_ms": at_ms}
    return {"name": name, **made, "resources": _under(kv, _resources(name))}


def _delete_pool(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    check.known_fields("pool.invalid", args, ("name",))
    name = _pool_of(kv, args, "name")
    prefix = _resources(name)
    gone = {id: kv.pop(prefix + id) for id in _under(kv, prefix)}
    return {"name": name, **kv.pop(_POOL + name), "resources": gone}


def _set_resource(kv: dict[str, Any], args: dict[str, Any], zones: _Zones) -> dict[str, Any]:
    """Add a resource, or change the given fields of one; without its key it must be there."""
    check.known_fields("pool.invalid", args, ("pool", "id", "at_ms", *_FIELDS))
    pool = _pool_of(kv, args, "pool")
    id = check.text("pool.invalid", args, "id")
    prefix = _resources(pool)
    old = kv.get(prefix + id)
    if old is None:
        there = _under(kv, prefix)
        if "resource_key" not in args:
            raise check.unknown("resource.unknown", f"resource in pool {pool!r}", id, there)
        check.room("pool.invalid", f"resources in pool {pool!r}", there, limits.RESOURCES_PER_POOL)
        everywhere = _under(kv, _RESOURCES)
        check.room("pool.invalid", "resources", everywhere, limits.RESOURCES_PER_TENANT)
    fields, at_ms = {name: args[name] for name in _FIELDS if name in args}, _at_ms(args)
    made = kv[prefix + id] = _resource(old, fields, zones)
    if old is None and at_ms is not None:
        made["created_ms"] = at_ms
    return {"pool": pool, "id": id, **made}


def _resource(old: dict[str, Any] | None, fields: dict[str, Any], zones: _Zones) -> dict[str, Any]:
    """The resource with its fields changed, checked as a whole."""
    key = check.text("pool.invalid", fields if old is None else {**old, **fields}, "resource_key")
    if old is not None and key != old["resource_key"]:
        raise RequestError(
            "pool.invalid",
            f"a resource keeps its resource_key, here {old['resource_key']!r}; "
            "remove this one and add another",
        )
    new = {"resource_key": key, **_RESOURCE, "name": key, **(old or {}), **fields}
    new = {name: value for name, value in new.items() if value is not None or name not in _OPTIONAL}
    check.resource(new)
    if "timezone" in fields:
        zones.today(new["timezone"])
    warming = new["warmup_days"] > 0 or "warmup_schedule" in new
    if warming and "warmup_start" not in new:
        new["warmup_start"] = zones.today(new["timezone"])
    elif not warming and "warmup_start" not in fields:
        new.pop("warmup_start", None)  # a later warm-up begins on its own day
    return new


def _delete_resource(kv: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    check.known_fields("pool.invalid", args, ("pool", "id"))
    pool = _pool_of(kv, args, "pool")
    id = check.text("pool.invalid", args, "id")
    there = _under(kv, _resources(pool))
    if id not in there:
        raise check.unknown("resource.unknown", f"resource in pool {pool!r}", id, there)
    return {"pool": pool, "id": id, **kv.pop(_resources(pool) + id)}


def _at_ms(args: dict[str, Any]) -> int | None:
    """When a change was asked for, by whoever asked: what it shows, and nothing is counted by."""
    if args.get("at_ms") is None:
        return None
    return check.number("pool.invalid", args, "at_ms", 0, 2**53)


def _reset_breaker(args: dict[str, Any]) -> dict[str, Any]:
    """Nothing is configured: the gate closes the breaker, which is one of its rows."""
    check.known_fields("request.invalid", args, ("handler",))
    return {"handler": check.text("request.invalid", args, "handler")}


def _limit_of(kv: dict[str, Any], args: dict[str, Any], *more: str) -> tuple[str, dict[str, Any]]:
    check.known_fields("limit.invalid", args, ("key", *more))
    key = check.text("limit.invalid", args, "key")
    found = kv.get(_LIMIT + key)
    if found is None:
        raise check.unknown("limit.unknown", "limit", key, _under(kv, _LIMIT))
    return key, found


def _pool_of(kv: dict[str, Any], args: dict[str, Any], field: str) -> str:
    name = check.text("pool.invalid", args, field)
    if _POOL + name not in kv:
        raise check.unknown("pool.unknown", "pool", name, _under(kv, _POOL))
    return name


def _under(kv: dict[str, Any], prefix: str) -> dict[str, Any]:
    """What stands under a prefix, by the rest of its name, in the order it was made."""
    start = len(prefix)
    return {name[start:]: value for name, value in kv.items() if name.startswith(prefix)}


def _resources(pool: str) -> str:
    return f"{_RESOURCES}{len(pool)}:{pool}:"  # with its length no name can read as another
