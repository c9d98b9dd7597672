"""A gate's rows: what each kind holds, written here and read back in the same words.

ask   ticket              -> place, what held it when it came, the ask itself, how often it was
                             passed over, and once it is called what was counted for it
use   limit key, tick     -> how many grants that tick
day   resource, day       -> how many grants that day of the resource's zone
turn  pool                -> place in its rotation
slot  instance, token     -> the concurrency key it holds, and by which ask
fair  rule                -> how many were served in a row while a lower priority waited
shut  limit key           -> the tick at which it opens
breaker  handler          -> how it fares, see `breakers`
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.lines import Ticket
from detent.kernel.gate.meters import Grant, Meters, rule_of_text
from detent.kernel.gate.stamps import Stamps


class Row(NamedTuple):
    """One row of a tenant's gate."""

    kind: str
    key: str
    at: int
    body: bytes


class Place(NamedTuple):
    """One ticket as it is stored."""

    ask: Ask
    n: int
    rule: str
    passed: int = 0
    grant: Grant | None = None


_places = msgspec.json.Decoder(Place)
_encode = msgspec.json.Encoder().encode


def write_ticket(meters: Meters, ticket: Ticket) -> None:
    """Note a ticket's row as it is now."""
    place = Place(ticket.ask, ticket.n, ticket.rule, ticket.passed, ticket.grant)
    meters.rows[("ask", ticket.ask.ticket, 0)] = _encode(place)


def read_rows(meters: Meters, rows: list[Row]) -> list[Place]:
    """Put stored counters into the meters, and give the tickets in the order they came."""
    places: list[Place] = []
    for row in sorted(rows, key=lambda row: (row.kind, row.key, row.at)):
        match row.kind:
            case "ask":
                places.append(_places.decode(row.body))
            case "use":
                meters.used.setdefault(row.key, Stamps()).add(row.at, int(row.body))
            case "day":
                meters.days[(row.key, row.at)] = int(row.body)
            case "turn":
                meters.counters[row.key] = int(row.body)
            case "slot":
                meters.hold(row.body.decode(), row.key, row.at)
            case "fair":
                meters.streaks[rule_of_text(row.key)] = int(row.body)
            case "breaker":
                meters.breakers.read(row.key, row.body)
            case _:
                meters.shut[row.key] = int(row.body)
    return sorted(places, key=lambda place: place.n)
