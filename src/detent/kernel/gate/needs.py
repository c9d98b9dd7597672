"""What a line needs, by the meters: which of its rules is free last, and when."""

from __future__ import annotations

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.lines import Needs
from detent.kernel.gate.meters import Meters, Rule


def needs_of(meters: Meters, ask: Ask) -> Needs:
    """In which line an ask stands."""
    resource = ask.resource if ask.resource and meters.pinned(ask) else ""
    return Needs(ask.priority, ask.limits, ask.pool, resource, ask.slot, ask.slots, ask.window)


def refused(meters: Meters, needs: Needs) -> bool:
    """Whether a line waits for nothing any more: its pool is gone."""
    return bool(needs.pool) and needs.pool not in meters.config.pools


def last_of(meters: Meters, needs: Needs, tick: int) -> tuple[Rule, int]:
    """The rule of a line that is free last, and when; now if all of them are free."""
    if refused(meters, needs):
        return ("pool", needs.pool, ""), tick  # called at once, to be refused
    found: Rule = ("", "", "")
    latest = tick
    for key in needs.limits:
        at = meters.limit_free_at(key, tick)
        if at > latest or not found[0]:
            found, latest = ("limit", key, ""), max(at, tick)
    if needs.resource:
        at = meters.resource_free_at(needs.pool, needs.resource, tick)
        if at > latest or not found[0]:
            found, latest = ("resource", needs.resource, needs.pool), max(at, tick)
    elif needs.pool:
        at = meters.pool_free_at(needs.pool, tick)
        if at > latest or not found[0]:
            found, latest = ("pool", needs.pool, ""), max(at, tick)
    if needs.slot:
        at = meters.slot_free_at(needs.slot, needs.slots)
        if at > latest or not found[0]:
            found, latest = ("slot", needs.slot, ""), max(at, tick)
    if needs.window:
        at = meters.window_free_at(needs.window, tick)
        if at > latest:
            found, latest = ("window", needs.window, ""), at
    return found, latest
