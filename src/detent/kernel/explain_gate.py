"""The words of an explanation for whoever stands in line at the gate, or will."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from detent.kernel.gate.forecast import Forecast

_NAMED = 3  # holders of a key that are named
_HELD = {
    "limit": "is deferred by the rate limit {}",
    "pool": "is deferred until the pool {} has a resource with capacity",
    "resource": "is deferred until its resource {} has capacity",
    "key": "waits for its turn under the concurrency key {}",
    "window": "waits for its send window to open",
    "breaker": "is deferred by the open circuit breaker of {}",
}
_BY = {
    "limit": "the rate limit {}",
    "pool": "the pool {}",
    "resource": "its resource {}",
    "window": "its send window",
    "breaker": "the open circuit breaker of {}",
}
_FREED = {
    "pool": "a resource that is added, enabled or given capacity",
    "resource": "its resource, once it is enabled or given capacity",
    "limit": "the beginning of a call that was granted, and the end of its window",
    "key": "the end, or the next wait, of an instance that holds the key",
    "breaker": "a call of that handler that works, or its turn to try it",
}


def held(rule: str, told: Forecast | None) -> str:
    """What holds somebody who stands in line, now and last."""
    kind, _, key = rule.partition(":")
    text = _HELD[kind].format(repr(key)) if kind in _HELD else "is in line"
    if told is not None and told.granted:
        calls = "call that has" if told.granted == 1 else "calls that have"
        text += f", behind {told.granted} granted {calls} not begun,"
    return text + (f", then by {_by(told.then)}," if told is not None and told.then else "")


def freed(rule: str, told: Forecast | None, at: Callable[[int], str]) -> str:
    """What lets somebody go on who stands in line."""
    if told is not None and told.at is not None:
        return f"the gate at {at(told.at)}"
    text = _FREED.get(rule.partition(":")[0], "the gate")
    return f"{text}: {_named(told.holders)}" if told is not None and told.holders else text


def joining(told: Forecast | None, at: Callable[[int], str]) -> str:
    """What will hold somebody who waits for an instant, and stands in line from then on."""
    if told is None or told.joins is None:
        return ""
    until = f" until {at(told.at)}" if told.at is not None else ""
    return f", and is then deferred by {_by(told.rule)}{until}"


def left_to_others(told: Iterable[Forecast], at: Callable[[int], str]) -> str:
    """When it moves who waits for the holders of its concurrency key, or for a probe."""
    for each in told:
        if each.rule.startswith("breaker:") and each.at is None:
            return f" It moves by {_FREED['breaker']}."
        if each.granted:
            when = "" if each.not_before is None else f", not before {at(each.not_before)}"
            return f" It moves after {_FREED['limit']}{when}."
        if each.holders:
            bound = each.not_before
            when = "" if bound is None else f", not before {at(bound)}"
            named = _named(each.holders)
            return f" It moves when one that holds the key ({named}) ends or waits{when}."
    return ""


def _by(rule: str) -> str:
    kind, _, key = rule.partition(":")
    return _BY.get(kind, "the gate").format(repr(key))


def _named(holders: tuple[str, ...]) -> str:
    more = len(holders) - _NAMED
    return ", ".join(holders[:_NAMED]) + (f" and {more} more" if more > 0 else "")
