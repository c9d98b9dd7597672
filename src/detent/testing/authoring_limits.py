"""Limits, pools, windows and dated delays for random steps, and the gates they are asked of.

Each step's rule is kept as plain data beside the definition: the auditor judges by that, not by
what the engine made of it. Hours are such that no edge of a window lies in a clock change.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
TEAMS = ("red", "blue")
KEYS = ("mail", "api", "team-{{data.team}}")
NAMED = ("mail", "api", *(f"team-{team}" for team in TEAMS))
POOLS = ("boxes", "lines")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney")
HOLIDAYS = ("2026-01-01", "2026-03-30", "2026-10-26")
SPREAD_MS = 40 * MINUTE_MS  # of a dated delay, to both sides
WEEK = ("mon", "tue", "wed", "thu", "fri")

Change = tuple[str, str, tuple[Any, ...], dict[str, Any]]  # door, verb, arguments


class Rule(NamedTuple):
    """What a step must wait for before it acts."""

    keys: tuple[str, ...] = ()  # templates over data.team
    pool: str = ""  # a name, or a template over data.pool
    sticky: bool = True
    windows: tuple[dict[str, Any], ...] = ()
    delay: dict[str, Any] | None = None


class Limiter:
    """Writes rules into the options of steps and remembers them by block."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.rules: dict[str, Rule] = {}

    def limit(self, id: str, options: dict[str, Any]) -> None:
        """Give a step some of what there is, or nothing."""
        rng = self._rng
        rule = Rule(
            keys=tuple(rng.sample(KEYS, rng.choice((0, 1, 1, 1, 2, 2, 3)))),
            pool=rng.choice(("", "", *POOLS, "{{data.pool}}")),
            sticky=rng.random() < 0.7,
            windows=tuple(self._window() for _ in range(rng.choice((0, 0, 0, 0, 1, 2)))),
            delay=self._delay() if rng.random() < 0.15 else None,
        )
        self.rules[id] = rule
        if rule.keys:
            options["rate_limit_key"] = rule.keys[0] if len(rule.keys) == 1 else list(rule.keys)
        if rule.pool:
            options["pool"] = rule.pool
            options["sticky"] = rule.sticky
        if rule.windows:
            options["send_window"] = list(rule.windows)
        if rule.delay is not None:
            options["delay"] = rule.delay

    def _window(self) -> dict[str, Any]:
        rng = self._rng
        spans = {day: ["08:00-11:30", "12:30-23:30"] for day in WEEK}
        window: dict[str, Any] = rng.choice(
            (
                {"start": "07:00", "end": "22:00"},
                {"start": "20:00", "end": "11:00"},
                {"start": "09:00", "end": "21:00", "days": [0, 1, 2, 3, 4]},
                {"hours": {**spans, "sun": ["20:00-05:00"]}},
            )
        )
        if rng.random() < 0.4:
            window["timezone"] = rng.choice(ZONES)
        if rng.random() < 0.3:
            window["send_late_within"] = 30 * MINUTE_MS
        if rng.random() < 0.2:
            window["holidays"] = list(HOLIDAYS)
        return window

    def _delay(self) -> dict[str, Any]:
        rng = self._rng
        delay: dict[str, Any] = {
            "duration": rng.randint(1, 30) * HOUR_MS,
            "business_days_only": True,
            "holidays": list(HOLIDAYS),
        }
        if rng.random() < 0.5:
            delay["jitter"] = SPREAD_MS
        if rng.random() < 0.5:
            delay["timezone"] = rng.choice(ZONES)
        return delay


def setting_up(rng: Random) -> list[Change]:
    """What a tenant's gate is told before anything starts."""
    named = [key for key in NAMED if rng.random() < 0.8]
    changes: list[Change] = [("limits", "set", (key,), _limit(rng)) for key in named]
    for pool in POOLS:
        strategy = rng.choice(("weighted", "weighted", "round_robin", "random"))
        changes.append(("pools", "create", (pool, strategy), {}))
        for number in range(rng.randint(1, 2)):
            key = f"{pool}{number}"
            changes.append(("pools", "add", (pool, key), _resource(rng)))
            if rng.random() < 0.5:
                changes.append(("limits", "set", (key,), _limit(rng)))
    return changes


def change_of(rng: Random, *, wild: bool) -> list[Change]:
    """One change in mid-run; a second one follows where the first one could stay for ever."""
    pool = rng.choice(POOLS)
    key = rng.choice(("mail", "api", "team-red", f"{pool}0"))
    number = rng.randrange(4)
    there = f"{pool}{number}"
    changes: list[list[Change]] = [
        [("limits", "set", (key,), _limit(rng))],
        [("limits", "set", (key,), _limit(rng))],
        [("limits", "delete", (key,), {})],
        [("limits", "close", (key,), {"for_": rng.randint(1, 5) * HOUR_MS})],
        [("limits", "close", (key,), {"for_": HOUR_MS}), ("limits", "open", (key,), {})],
        [("limits", "open", (key,), {})],
        [("pools", "add", (pool, there), _resource(rng))],
        [("pools", "update", (pool, there), {"enabled": False})],
        [("pools", "update", (pool, there), {"enabled": True})],
        [("pools", "remove", (pool, there), {})],
        [("pools", "create", (pool, rng.choice(("weighted", "round_robin"))), {})],
    ]
    if wild:
        changes.append([("pools", "delete", (pool,), {})])
    return rng.choice(changes)


def rescue(pool: str) -> Change:
    """A resource that anybody may use, for a pool in which nothing is left."""
    return ("pools", "add", (pool, f"{pool}9"), {})


def _limit(rng: Random) -> dict[str, Any]:
    window = rng.choice((90_000, 70_050, HOUR_MS, HOUR_MS, 5 * HOUR_MS, 30 * HOUR_MS))
    return {"max": rng.choice((1, 1, 2, 3)), "window": window}


def _resource(rng: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"weight": rng.choice((1, 1, 2, 3)), "timezone": rng.choice(ZONES)}
    match rng.randint(0, 4):
        case 0:
            fields["daily_cap"] = rng.randint(1, 3)
        case 1:
            fields |= {"daily_cap": 4, "warmup_days": 3, "warmup_start_cap": 1}
        case 2:
            fields |= {"daily_cap": 5, "warmup_schedule": [rng.randint(0, 1), 2, 3]}
    return fields
