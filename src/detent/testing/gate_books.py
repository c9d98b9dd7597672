"""The auditor's own books of a tenant's gate: what is allowed, what was used, counted anew.

Nothing here is the engine's code. Changes come from the gate's journal, uses from the journals of
those who acted: what was granted counts without end until its call begins. `Books.grant` says what
was wrong about a grant; `free` whether one more could pass.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from detent.testing.authoring_limits import WEEK

MINUTES = 1_440
WEEKDAYS = (*WEEK, "sat", "sun")


class Clock(NamedTuple):
    """How ticks are instants."""

    epoch_ms: int
    resolution_ms: int

    def ms(self, tick: int) -> int:
        """The instant of a tick."""
        return self.epoch_ms + tick * self.resolution_ms

    def local(self, tick: int, zone: str) -> dt.datetime:
        """What a clock on the wall shows there."""
        at = dt.datetime.fromtimestamp(self.ms(tick) / 1000, dt.UTC)
        return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)

    def reach(self, window_ms: int) -> int:
        """How many ticks back a window looks: its length, and the tick that is not over."""
        return -(-window_ms // self.resolution_ms) + 1

    def at_ms(self, ms: int) -> int:
        """The first tick not before an instant."""
        return -(-(ms - self.epoch_ms) // self.resolution_ms)


class Use(NamedTuple):
    """One act that passed a gate."""

    instance: str
    node: str
    tick: int
    priority: int
    keys: tuple[str, ...]
    pool: str
    resource: str  # key
    pinned: str  # the resource an earlier attempt had
    sticky: str  # the resource the instance had last in this pool
    waited: bool  # it stood in line before


class Books:
    """One tenant's gate."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.limits: dict[str, dict[str, Any]] = {}
        self.pools: dict[str, dict[str, dict[str, Any]]] = {}
        self.shut: dict[str, int] = {}  # by providers: key -> tick it opens at
        self.used: dict[str, list[int]] = {}
        self.granted: dict[str, int] = {}  # key -> calls that may begin at any time
        self._known: dict[str, int] = {}  # key -> tick before which uses may be forgotten
        self.days: dict[tuple[str, str, int], int] = {}

    # what is allowed -----------------------------------------------------------------------------

    def change(self, verb: str, args: Mapping[str, Any], tick: int) -> None:
        """A change that the gate's journal says was made."""
        match verb:
            case "limit.set":
                self._set_limit(args["key"], args, tick)
            case "limit.delete":
                del self.limits[args["key"]]
                self.used.pop(args["key"], None)
                self.shut.pop(args["key"], None)
            case "limit.close":
                self.limits[args["key"]]["closed"] = self.clock.at_ms(args["until_ms"])
            case "limit.open":
                self.limits.get(args["key"], {}).pop("closed", None)
                self.shut.pop(args["key"], None)
            case "pool.set":
                self.pools.setdefault(args["name"], {})
            case "pool.delete":
                del self.pools[args["name"]]
            case "resource.set":
                self._set_resource(self.pools[args["pool"]], args, tick)
            case "resource.delete":
                del self.pools[args["pool"]][args["id"]]

    def close(self, keys: Sequence[str], until: int) -> None:
        """A provider asked not to be called before a tick."""
        for key in keys:
            self.shut[key] = max(self.shut.get(key, 0), until)

    def _set_limit(self, key: str, args: Mapping[str, Any], tick: int) -> None:
        old = self.limits.get(key)
        if old is not None:  # what had left the old window is not asked for by a longer one
            known = tick - self.clock.reach(old["window_ms"])
            self._known[key] = max(self._known.get(key, 0), known)
        self.limits[key] = {**(old or {}), "max": args["max"], "window_ms": args["window_ms"]}

    def _set_resource(
        self, pool: dict[str, dict[str, Any]], args: Mapping[str, Any], tick: int
    ) -> None:
        fresh = {"enabled": True, "daily_cap": 0, "timezone": "UTC"}
        new = {**fresh, **pool.get(args["id"], {}), **args}
        warming = new.get("warmup_days") or new.get("warmup_schedule")
        if not warming:
            new.pop("warmup_start", None)
        elif not new.get("warmup_start"):
            new["warmup_start"] = self.clock.local(tick, new["timezone"]).date().isoformat()
        pool[args["id"]] = new

    # what is used --------------------------------------------------------------------------------

    def use(self, use: Use) -> str:
        """Count a call that begins as it is granted; what it broke, or nothing."""
        said = self.grant(use)
        self.begin(use, use.tick)
        return said

    def grant(self, use: Use) -> str:
        """Count a call that may begin from now on; what it broke, or nothing."""
        said = self._grant_resource(use) if use.pool else ""
        for key in _keys(use):
            said = said or self._grant_key(key, use.tick)
        return said

    def begin(self, use: Use, tick: int) -> None:
        """A call that was granted begins."""
        self.give_back(use)
        for key in _keys(use):
            if key in self.limits:
                self.used.setdefault(key, []).append(tick)
        found = self._resource(use.pool, use.resource)
        if found is not None:
            day = self.clock.local(tick, found[1]["timezone"]).toordinal()
            place = (use.pool, found[0], day)
            self.days[place] = self.days.get(place, 0) + 1

    def give_back(self, use: Use) -> None:
        """A call that was granted is not made."""
        for key in (*_keys(use), *([f"{use.pool}/{use.resource}"] if use.pool else ())):
            self.granted[key] -= 1

    def _grant_key(self, key: str, tick: int) -> str:
        self.granted[key] = self.granted.get(key, 0) + 1
        limit = self.limits.get(key)
        if tick < self.opens(key):
            return f"{key} is closed until {self.opens(key)}, and was used at {tick}"
        if limit is None:
            return ""
        most, used = limit["max"], self.used.get(key, [])
        if self.count(key, tick) > most:
            return f"over: {key} allows {most} in {limit['window_ms']} ms; at {tick}: {used[-9:]}"
        return ""

    def _grant_resource(self, use: Use) -> str:
        name = f"{use.pool}/{use.resource}"
        self.granted[name] = self.granted.get(name, 0) + 1
        found = self._resource(use.pool, use.resource)
        if found is None:
            return f"{use.resource} is used, and pool {use.pool} does not have it"
        resource = found[1]
        if not resource["enabled"]:
            return f"the disabled resource {use.resource} is used"
        day = self.clock.local(use.tick, resource["timezone"]).date()
        cap = cap_of(resource, day)
        count = self.days.get((use.pool, found[0], day.toordinal()), 0) + self.granted[name]
        if cap is not None and count > cap:
            return f"over: {use.resource} has {count} of {cap} on {day}"
        return ""

    # what is free --------------------------------------------------------------------------------

    def opens(self, key: str) -> int:
        """The tick before which a key is closed by somebody."""
        return max(self.shut.get(key, 0), int(self.limits.get(key, {}).get("closed", 0)))

    def count(self, key: str, tick: int, *, known: bool = True) -> int:
        """How many uses are in the window that ends with a tick; those known for sure, or all."""
        limit = self.limits.get(key)
        if limit is None:
            return 0
        since = tick - self.clock.reach(limit["window_ms"])
        if known:
            since = max(since, self._known.get(key, since))
        inside = sum(1 for each in self.used.get(key, ()) if each > since)
        return inside + self.granted.get(key, 0)

    def free(self, key: str, tick: int) -> bool:
        """Whether one more could use a key."""
        return self.frees_at(key, tick) <= tick

    def resource_free(self, pool: str, id: str, tick: int) -> bool:
        """Whether one more could use a resource."""
        resource = self.pools.get(pool, {}).get(id)
        if resource is None or not resource["enabled"]:
            return False
        return self._capacity(pool, id, tick) and self.free(resource["resource_key"], tick)

    def frees_at(self, key: str, tick: int) -> int:
        """When one more could use a key, if nobody else does."""
        limit = self.limits.get(key)
        at = max(self.opens(key), tick)
        if limit is None:
            return at
        reach = self.clock.reach(limit["window_ms"])
        inside = [each for each in self.used.get(key, ()) if each > tick - reach]
        over = len(inside) - limit["max"]
        return at if over < 0 else max(at, inside[over] + reach)

    def resource_frees_at(self, pool: str, id: str, tick: int) -> int:
        """When one more could use a resource today, else its next midnight."""
        resource = self.pools[pool][id]
        free = self.frees_at(resource["resource_key"], tick)
        zone = ZoneInfo(resource["timezone"])
        day = self.clock.local(tick, resource["timezone"]).date() + dt.timedelta(days=1)
        midnight = dt.datetime.combine(day, dt.time(), zone)
        tomorrow = self.clock.at_ms(round(midnight.timestamp() * 1000))
        return free if free < tomorrow and self._capacity(pool, id, tick) else tomorrow

    def _capacity(self, pool: str, id: str, tick: int) -> bool:
        resource = self.pools[pool][id]
        day = self.clock.local(tick, resource["timezone"]).date()
        cap = cap_of(resource, day)
        return cap is None or self.days.get((pool, id, day.toordinal()), 0) < cap

    def enabled(self, pool: str) -> list[str]:
        """The ids of the resources that may be used at all."""
        return [id for id, each in self.pools.get(pool, {}).items() if each["enabled"]]

    def keys_of(self, pool: str) -> list[str]:
        """The keys of a pool's resources."""
        return [each["resource_key"] for each in self.pools.get(pool, {}).values()]

    def enabled_key(self, pool: str, key: str) -> str:
        """The id of an enabled resource by its key; empty when it was taken out."""
        found = self._resource(pool, key)
        return found[0] if found is not None and found[1]["enabled"] else ""

    def _resource(self, pool: str, key: str) -> tuple[str, dict[str, Any]] | None:
        for id, resource in self.pools.get(pool, {}).items():
            if resource["resource_key"] == key:
                return id, resource
        return None


def _keys(use: Use) -> list[str]:
    return [key for key in dict.fromkeys((*use.keys, use.resource)) if key]


def cap_of(resource: Mapping[str, Any], day: dt.date) -> int | None:
    """What a resource may do on a day; None is without end."""
    full = resource["daily_cap"] or None
    start = resource.get("warmup_start")
    if not start:
        return full
    past = max(0, (day - dt.date.fromisoformat(start)).days)
    schedule = resource.get("warmup_schedule")
    if schedule:
        return int(schedule[past]) if past < len(schedule) else full
    days = resource["warmup_days"]
    if past >= days:
        return full
    first = resource.get("warmup_start_cap", 0)
    return int(first + (resource["daily_cap"] - first) * past // days)


def in_window(window: Mapping[str, Any], at: dt.datetime) -> bool:
    """Whether a window is open when the wall shows this."""
    for back in (0, 1):  # a span may have begun the day before
        day = at.date() - dt.timedelta(days=back)
        minute = at.hour * 60 + at.minute + back * MINUTES
        if day.isoformat() in window.get("holidays", ()):
            continue
        for start, end in _spans(window, day.weekday()):
            if start <= minute < end:
                return True
    return False


def _spans(window: Mapping[str, Any], weekday: int) -> list[tuple[int, int]]:
    if "hours" in window:
        texts = window["hours"].get(WEEKDAYS[weekday], [])
    elif weekday in window.get("days", range(7)):
        texts = [f"{window['start']}-{window['end']}"]
    else:
        texts = []
    spans: list[tuple[int, int]] = []
    for text in texts:
        start, end = (int(part[:2]) * 60 + int(part[3:]) for part in text.split("-"))
        spans.append((start, end if end > start else end + MINUTES))
    return spans
