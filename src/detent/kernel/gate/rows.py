"""A gate's rows: what each kind holds, written here and read back in the same words.

ask   ticket              -> place, what held it when it came, the ask itself, how often it was
                             passed over, and once it is called what was counted for it
use   limit key, tick     -> how many calls began that tick
day   resource, day       -> how many calls began that day of the resource's zone
permit  sheet             -> tickets whose calls have not begun, and what each may use
turn  pool                -> place in its rotation
slot  instance, token     -> the concurrency key it holds, and by which ask
fair  rule                -> how many were served in a row while a lower priority waited
shut  limit key           -> the tick at which it opens
line  what it needs       -> the rule it watches, whether its rules are kept for it, and which limit
                             was deleted that it had waited for
bar   rule                -> the tick at which to look at it
hours digest              -> send windows that somebody in line has
breaker  handler          -> how a handler fares, see `breakers`

`line` and `bar` are written only where they do not follow from the others.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.hours import Hours
from detent.kernel.gate.lines import Bar, Line, Needs, Ticket
from detent.kernel.gate.meters import Grant, Meters, Rule, rule_of_text, rule_text
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
    freed: str = ""


class Watch(NamedTuple):
    """What a line's row says."""

    watches: Rule
    held: bool = False
    freed: tuple[str, int] = ("", 0)


class LineRow(NamedTuple):
    """A line as it is stored, with the bytes of its row."""

    watches: Rule
    held: bool
    freed: tuple[str, int]
    body: bytes


class Stored(NamedTuple):
    """Who stands at a gate, as its rows tell: tickets in the order they came, lines and bars."""

    places: list[Place]
    lines: dict[Needs, LineRow]
    bars: dict[Rule, int]


_places = msgspec.json.Decoder(Place)
_needs = msgspec.json.Decoder(Needs)
_watches = msgspec.json.Decoder(Watch)
_hours = msgspec.json.Decoder(Hours)
_encode = msgspec.json.Encoder().encode


def write_ticket(meters: Meters, ticket: Ticket) -> None:
    """Note a ticket's row as it is now."""
    place = Place(ticket.ask, ticket.n, ticket.rule, ticket.passed, ticket.grant, ticket.freed)
    meters.rows[("ask", ticket.ask.ticket, 0)] = _encode(place)


def write_line(meters: Meters, line: Line) -> None:
    """Note a line's row, if it needs one and it is another than it was."""
    body = None
    if line.several or line.held or line.freed[0]:
        body = _encode(Watch(line.watches, line.held, line.freed))
    if body != line.stored:
        line.stored = body
        meters.rows[("line", _encode(line.needs).decode(), 0)] = body


def forget_line(meters: Meters, line: Line) -> None:
    """Nobody stands in a line any more."""
    if line.stored is not None:
        line.stored = None
        meters.rows[("line", _encode(line.needs).decode(), 0)] = None


def write_bar(meters: Meters, rule: Rule, bar: Bar) -> None:
    """Note when to look at a rule, if that does not follow from the counters."""
    due = bar.due if bar.several else -1
    if due != bar.stored:
        bar.stored = due
        meters.rows[("bar", rule_text(rule), 0)] = b"%d" % due if due >= 0 else None


def read_rows(meters: Meters, rows: list[Row]) -> Stored:
    """Put stored counters into the meters, and give who waits."""
    stored = Stored([], {}, {})
    for row in sorted(rows, key=lambda row: (row.kind, row.key, row.at)):
        match row.kind:
            case "ask":
                stored.places.append(_places.decode(row.body))
            case "use":
                meters.used.setdefault(row.key, Stamps()).add(row.at, int(row.body))
            case "day":
                meters.count_day(row.key, row.at, int(row.body))
            case "permit":
                meters.permits.read(row.key, row.body)
            case "turn":
                meters.counters[row.key] = int(row.body)
            case "slot":
                meters.hold(row.body.decode(), row.key, row.at)
            case "fair":
                meters.streaks[rule_of_text(row.key)] = int(row.body)
            case "line":
                stored.lines[_needs.decode(row.key)] = LineRow(*_watches.decode(row.body), row.body)
            case "bar":
                stored.bars[rule_of_text(row.key)] = int(row.body)
            case "hours":
                meters.hours[row.key] = _hours.decode(row.body)
            case "breaker":
                meters.breakers.read(row.key, row.body)
            case _:
                meters.shut[row.key] = int(row.body)
    stored.places.sort(key=lambda place: place.n)
    return stored
