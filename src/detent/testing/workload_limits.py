"""The callers of a world with limits: tenants, what their gates are told, and who starts when.

Instances come close together so that they meet at the gates. A world begins at an ordinary instant,
or a few hours before the clocks change in one of the zones.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from detent.model.ids import derived_id
from detent.testing.authoring import Traits
from detent.testing.authoring_limits import POOLS, TEAMS, ZONES, Change, change_of, setting_up
from detent.testing.world import (
    HOUR_TICKS,
    LATE_HOURS,
    MINUTE_TICKS,
    Action,
    command,
)

DAY_TICKS = 24 * HOUR_TICKS
TENANTS = ("default", "acme", "zeta")
# days after 1 January 2026: New York and Berlin go to summer time and back, Sydney the other way
CHANGES = (66, 86, 93, 276, 296, 303)
BEFORE = 14 * HOUR_TICKS
PRIORITIES = ("Normal", "Normal", "Normal", "High", "Low")


class Place(NamedTuple):
    """One instance to be started."""

    instance: str
    key: str
    tenant: str
    concurrency: str  # key; empty for none


def places_of(rng: Random, seed: int) -> list[Place]:
    """The instances of a world, over its tenants."""
    tenants = TENANTS[: rng.choice((1, 1, 1, 2, 3))]
    grouped = rng.choice((("",), ("", "one"), ("one", "two"), ("two",)))
    places: list[Place] = []
    for number in range(rng.randint(3, 7)):
        tenant, key = rng.choice(tenants), f"w{seed}-{number}"
        concurrency = rng.choice(grouped)
        places.append(Place(derived_id(tenant, "instance", key), key, tenant, concurrency))
    return places


def limited_actions(
    rng: Random, traits: Traits, places: list[Place], definitions: int
) -> tuple[int, list[Action]]:
    """The tick at which the world begins, and what callers do from then on."""
    base = rng.choice((0, *(day * DAY_TICKS - BEFORE for day in CHANGES)))
    actions: list[Action] = []
    for tenant in dict.fromkeys(place.tenant for place in places):
        args = {"name": "kid", "tenant": tenant}
        actions.append(Action(base, f"deploy:{tenant}", "deploy", args=args))
        told = setting_up(rng)
        actions += [_told(base, tenant, f"s{n}", change) for n, change in enumerate(told)]
    at = base
    for place in places:
        at += rng.choice((0, 0, 1, MINUTE_TICKS, 20 * MINUTE_TICKS))
        actions.append(_start(rng, at, place, rng.randrange(definitions)))
    for number in range(rng.randint(1, 4)):
        actions += _deeds(rng, traits, rng.choice(places), base, number)
    if rng.random() < 0.2:
        when = base + rng.randint(0, 3) * HOUR_TICKS
        actions.append(Action(when, "restart", "restart"))
    actions.append(Action(base + LATE_HOURS * HOUR_TICKS, "late", "idle"))
    return base, actions


def _start(rng: Random, at: int, place: Place, number: int) -> Action:
    data = {
        "n": rng.randint(0, 9),
        "items": [1, 2],
        "team": rng.choice(TEAMS),
        "pool": rng.choice(POOLS),
    }
    options: dict[str, Any] = {"tenant": place.tenant, "timezone": rng.choice(ZONES)}
    if place.concurrency:
        most = 1 if place.concurrency == "one" else 2
        options |= {"concurrency_key": place.concurrency, "max_concurrency": most}
    args = {
        "name": f"d{number}",
        "data": data,
        "priority": rng.choice(PRIORITIES),
        "key": place.key,
        "options": options,
    }
    return Action(at, f"start:{place.key}", "start", place.instance, args)


def _deeds(rng: Random, traits: Traits, place: Place, base: int, number: int) -> list[Action]:
    """A change at a gate, or a pause of somebody who may well stand in line."""
    at = base + rng.choice((1, MINUTE_TICKS, rng.randint(0, 8 * HOUR_TICKS)))
    name = f"{number}:{place.instance}"
    if rng.random() < 0.35:
        later = at + rng.choice((1, MINUTE_TICKS, 3 * HOUR_TICKS))
        return [
            command(at, "pause", name, place.instance),
            command(later, "resume", name, place.instance),
        ]
    changes = change_of(rng, wild=traits.wild)
    return [
        _told(at + n * HOUR_TICKS // 2, place.tenant, f"{number}:{n}", change)
        for n, change in enumerate(changes)
    ]


def _told(tick: int, tenant: str, name: str, change: Change) -> Action:
    door, verb, given, options = change
    args = {"door": door, "verb": verb, "args": given, "options": {**options, "tenant": tenant}}
    return Action(tick, f"configure:{tenant}:{name}", "configure", args=args)
