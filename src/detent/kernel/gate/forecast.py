"""Forecast: when a ticket is called if nothing else happens, by letting a copy of the gate run.

The copy serves everybody ahead in the order the gate itself would, so the instant is the true one:
no estimate, and no second set of rules that could differ. Whoever waits behind calls that are
granted and have not begun is told the earliest instant only: as if they began now. Who waits for a
breaker behind its probe is called by what becomes of that, which nobody can tell.
"""

from __future__ import annotations

from typing import NamedTuple

from detent.kernel.gate.asks import PROBE, Ask
from detent.kernel.gate.gate import Gate

ROUNDS = 200_000
ROOM = 10_000


class Forecast(NamedTuple):
    """What holds a ticket, and the tick at which it is called; None when only a change frees it.

    `then` is what holds it last, if that is something else; `holders` are the instances that hold
    the concurrency key it waits for.
    """

    rule: str
    at: int | None
    then: str = ""
    holders: tuple[str, ...] = ()
    not_before: int | None = None  # a tick before which none of them lets go
    joins: int | None = None  # a ticket to come: the tick from which on it stands in line
    granted: int = 0  # calls that hold the rule and have not begun: it counts from when they do


def forecast(gate: Gate, ticket: str, tick: int) -> Forecast:
    """Run a gate of one's own until a ticket is called; the gate is used up by it."""
    granted = gate.granted_ahead(ticket, tick)
    gate.begin_all(tick)
    told = _run(gate, ticket, tick)
    if not granted:
        return told
    return told._replace(at=None, not_before=told.at, granted=granted)


def _run(gate: Gate, ticket: str, tick: int) -> Forecast:
    rule = last = gate.rule_of(ticket, tick)
    breaker = gate.breaker_of(ticket)
    for _ in range(ROUNDS):
        due = gate.next_due()
        if due is None or not rule:
            break
        tick = max(due, tick)
        last = gate.watched_by(ticket)
        for call in gate.call(tick, ROOM):
            name = f"{call.instance}:{call.token}"
            if name == ticket:
                return Forecast(rule, tick, last if last != rule else "")
            same = bool(breaker) and gate.breaker_of(name) == breaker
            if gate.take(name, tick).rule == PROBE and same:
                return Forecast(rule, None)
            gate.begin(name, tick)
    kind, _, key = rule.partition(":")
    return Forecast(rule, None, "", gate.meters.holders_of(key) if kind == "key" else ())


def forecast_ask(gate: Gate, ask: Ask, tick: int, at: int) -> Forecast | None:
    """What becomes of an ask to come at a tick; None when it is granted at once, or refused."""
    gate.begin_all(tick)
    for _ in range(ROUNDS):
        due = gate.next_due()
        if due is None or due > at:
            break
        tick = max(due, tick)
        for call in gate.call(tick, ROOM):
            gate.take(f"{call.instance}:{call.token}", tick)
            gate.begin(f"{call.instance}:{call.token}", tick)
    if gate.ask(ask, at).state != "deferred":
        return None
    return forecast(gate, ask.ticket, at)._replace(joins=at)
