"""What a step of a plan sees: `run`, `contact`, `events` and `clock`, read from the snapshot.

The contact stands in the instance's config, the variables of the run in its data. Events are flags:
how often something happened to a step, first and last, and how its call ended. Whatever was not
taken in before this snapshot is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detent.model.definition import Definition
from detent.model.plan import EVENTS
from detent.model.snapshot import Snapshot

_GROUPS = {
    "delivery": "deliveries",
    "open": "opens",
    "click": "clicks",
    "reply": "replies",
    "bounce": "bounces",
    "unsubscribe": "unsubscribes",
    "outcome": "outcomes",
}
UNSUBSCRIBED = f"{EVENTS['unsubscribed']}:"
BOUNCED = f"{EVENTS['bounced']}:"


def context_of(snapshot: Snapshot, definition: Definition, clock: Mapping[str, int]) -> Any:
    """Everything at once, by root."""
    return {
        "run": _run(snapshot, definition, clock),
        "contact": contact_of(snapshot),
        "events": events_of(snapshot.events),
        "clock": clock,
    }


def contact_of(snapshot: Snapshot) -> dict[str, Any]:
    """The contact, its attributes beside its own fields, and what events said about it."""
    given = snapshot.config.get("contact") if isinstance(snapshot.config, dict) else None
    contact = given if isinstance(given, dict) else {}
    attributes = contact.get("attributes")
    return {
        **(attributes if isinstance(attributes, dict) else {}),
        **contact,
        "unsubscribed": contact.get("unsubscribed") is True or _any(snapshot, UNSUBSCRIBED),
        "bounced": contact.get("bounced") is True or _any(snapshot, BOUNCED),
    }


def events_of(flags: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The flags by what happened, then by step."""
    found: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS.values()}
    for flag, value in flags.items():
        kind, _, step = flag.partition(":")
        if kind in _GROUPS:
            found[_GROUPS[kind]][step] = value
    return found


def current_step(snapshot: Snapshot) -> str | None:
    """The step at which a run stands, or None before it starts and after it has ended."""
    root = snapshot.root
    lane = root.lanes[0] if root is not None and root.lanes else None
    return lane.open.phase or None if lane is not None and lane.open is not None else None


def results_of(snapshot: Snapshot) -> dict[str, Any]:
    """What became of each step that was left, with its latest output."""
    outputs = snapshot.outputs
    return {
        step: {**result, "output": outputs.get(step)} for step, result in snapshot.results.items()
    }


def _run(snapshot: Snapshot, definition: Definition, clock: Mapping[str, int]) -> dict[str, Any]:
    started = snapshot.started
    return {
        "id": snapshot.id,
        "plan_id": definition.name,
        "plan_version": definition.version,
        "current_step": current_step(snapshot),
        "started_at": None
        if started is None
        else clock["epoch_ms"] + started * clock["resolution_ms"],
        "step_results": results_of(snapshot),
        "variables": snapshot.data,
    }


def _any(snapshot: Snapshot, prefix: str) -> bool:
    return any(flag.startswith(prefix) for flag in snapshot.events)
