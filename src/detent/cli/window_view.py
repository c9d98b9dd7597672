"""When windows are open, as a picture: a line for each day, half an hour to a character."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from detent.calendar import instant_of, local_of, tzdata_version
from detent.cli.openings import Day, Jump
from detent.cli.screen import Cell, Screen
from detent.cli.times import relative

_QUARTER = dt.timedelta(minutes=15)
_QUARTERS = 96
_DAY_MINUTES = 1_440
_FULL, _FIRST, _SECOND, _NONE, _GONE = "█", "▌", "▐", "·", " "
_PLAIN = {_FULL: "#", _FIRST: "+", _SECOND: "+", _NONE: ".", _GONE: " "}
_RULER = "".join(f"{hour:<6}" for hour in range(0, 24, 3)) + "24"


class Preview(Struct, frozen=True, kw_only=True):
    """What is drawn: days from an instant on, in one zone."""

    zone: str
    start_ms: int
    today: dt.date
    days: list[Day]
    open: bool
    closes_ms: int | None
    opens_ms: int | None


def draw(screen: Screen, found: Preview) -> None:
    """Print the picture, and when the windows open next."""
    screen.line(Cell(found.zone, "bold"), Cell(f"   zones {tzdata_version()}", "bright_black"))
    screen.line(Cell(f"{'':14}  {_RULER}", "bright_black"))
    for day in found.days:
        style = "bold" if day.date == found.today else ""
        bar = [_cell(screen, each) for each in _bar(day, found.zone)]
        head: list[str | Cell] = [Cell(f"{day.date:%a %Y-%m-%d}  ", style), *_joined(bar), "  "]
        screen.hanging(head, *_notes(day, found))
    screen.line()
    screen.facts(_verdict(found))


def _bar(day: Day, zone: str) -> Iterator[str]:
    """Half an hour of wall time to a character; quarters that the clock skips are blank."""
    quarters = [_quarter(day, n, zone) for n in range(_QUARTERS)]
    for first, second in zip(quarters[::2], quarters[1::2], strict=True):
        if first is None and second is None:
            yield _GONE
        elif first and second:
            yield _FULL
        else:
            yield _FIRST if first else _SECOND if second else _NONE


def _quarter(day: Day, n: int, zone: str) -> bool | None:
    """Whether the larger part of a quarter is open; None where the wall clock has no such time."""
    local = dt.datetime.combine(day.date, dt.time()) + n * _QUARTER + _QUARTER / 2
    ms = instant_of(local, zone)
    if local_of(ms, zone) != local:
        return None
    return any(start <= ms < end for start, end in day.open)


def _cell(screen: Screen, character: str) -> Cell:
    style = "bright_black" if character == _NONE else "green"
    return Cell(character if screen.wide else _PLAIN[character], style)


def _joined(cells: Sequence[Cell]) -> list[Cell]:
    """Neighbours of one style as one piece."""
    joined: list[Cell] = []
    for cell in cells:
        if joined and joined[-1].style == cell.style:
            joined[-1] = Cell(joined[-1].text + cell.text, cell.style)
        else:
            joined.append(cell)
    return joined


def _notes(day: Day, found: Preview) -> Iterator[Cell]:
    if not day.exists:
        yield Cell("  does not exist here", "yellow")
        return
    spans = ", ".join(
        f"{_time(start, found.zone)}-{_time(end, found.zone, day)}" for start, end in day.open
    )
    yield Cell(spans or "closed", "" if spans else "bright_black")
    if day.holiday:
        yield Cell("  holiday", "magenta")
    if day.jump is not None:
        yield Cell(f"  {_told(day.jump)}", "yellow")


def _told(jump: Jump) -> str:
    way = "on" if jump.minutes > 0 else "back"
    form = "%H:%M" if abs(jump.minutes) < _DAY_MINUTES else "%a %H:%M"
    return f"clock goes {way}, {jump.before:{form}} to {jump.after:{form}}"


def _time(ms: int, zone: str, ending: Day | None = None) -> str:
    local = local_of(ms, zone)
    if ending is not None and local.date() > ending.date:
        return "24:00"
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def _verdict(found: Preview) -> Iterator[tuple[str, str | Cell]]:
    if found.open:
        until = "for years" if found.closes_ms is None else f"until {_when(found.closes_ms, found)}"
        yield "open", Cell(until, "green")
    elif found.opens_ms is not None:
        yield "next opening", Cell(_when(found.opens_ms, found), "green")
    else:
        yield "next opening", Cell("none within five years; widen the windows", "red")


def _when(ms: int, found: Preview) -> str:
    """An instant with its distance from the one that was asked about."""
    distance = relative(ms, found.start_ms)
    return f"{local_of(ms, found.zone):%a} {iso_local(ms, found.zone)} ({distance})"


def listed(found: Preview) -> dict[str, Any]:
    """The same for a program."""
    zone = found.zone
    return {
        "zone": zone,
        "tzdata": tzdata_version(),
        "from": iso_local(found.start_ms, zone),
        "open": found.open,
        "closes": None if found.closes_ms is None else iso_local(found.closes_ms, zone),
        "opens": None if found.opens_ms is None else iso_local(found.opens_ms, zone),
        "days": [
            {
                "date": day.date.isoformat(),
                "open": [[iso_local(start, zone), iso_local(end, zone)] for start, end in day.open],
                "holiday": day.holiday,
                "exists": day.exists,
                "clock_change_minutes": day.jump.minutes if day.jump else 0,
            }
            for day in found.days
        ],
    }


def iso_local(ms: int, zone: str) -> str:
    """An instant as the wall clock of the zone shows it, with its offset."""
    local = local_of(ms, zone)
    offset = local - local_of(ms, "UTC")
    return local.replace(tzinfo=dt.timezone(offset)).isoformat(timespec="seconds")
