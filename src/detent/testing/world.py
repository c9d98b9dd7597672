"""The world of a seed as data: its definitions, what callers do at which tick, and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from detent.model.definition import Definition
from detent.model.limits import INSTANCES_PER_TURN
from detent.testing.authoring import HOUR_MS, Traits
from detent.testing.authoring_limits import Rule

RESOLUTION_MS = 100
MINUTE_TICKS = 60_000 // RESOLUTION_MS
HOUR_TICKS = HOUR_MS // RESOLUTION_MS
APART = 7 * MINUTE_TICKS
LATE_HOURS = 30  # by then no policy holds anybody back


class Action(NamedTuple):
    """One thing a caller does; repeated after a crash under the same id."""

    tick: int
    id: str
    verb: str  # start | signal | command | configure | deploy | restart | idle
    instance: str = ""
    args: Mapping[str, Any] = MappingProxyType({})


class World(NamedTuple):
    """Everything that is decided before a run begins."""

    seed: int
    traits: Traits
    definitions: dict[str, Definition]
    script: tuple[Action, ...]
    instances: tuple[str, ...]
    rules: Mapping[str, Rule] = MappingProxyType({})  # by block
    room: int = INSTANCES_PER_TURN  # how many instances a turn takes


def command(tick: int, verb: str, name: str, instance: str) -> Action:
    """A call that can be refused."""
    return Action(tick, f"{verb}:{name}", "command", instance, {"verb": verb})


def in_order(actions: list[Action]) -> tuple[Action, ...]:
    """A script: by tick, and at one tick as they were thought of."""
    return tuple(sorted(actions, key=lambda action: action.tick))
