"""The story of a run, day by day, in the contact's own time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from detent.calendar import local_of
from detent.cli.screen import Cell, Screen

if TYPE_CHECKING:
    from detent.bootstrap.plan_preview import Preview
    from detent.service.plan_story import Happening

_STYLES = {
    "sends": "blue",
    "acts": "white",
    "waits": "yellow",
    "branched": "cyan",
    "event": "magenta",
    "exited": "green",
    "completed": "green",
    "failed": "red",
    "skipped": "bright_black",
}


def tell(screen: Screen, preview: Preview, zone: str) -> None:
    """Print what would happen, under the day on which it does."""
    run = preview.run
    who = run.contact.get("email") or run.contact.get("phone") or run.contact["id"]
    screen.heading(f"For {who} ({zone})")
    days: dict[dt.date, list[Happening]] = {}
    for each in preview.story:
        days.setdefault(local_of(each.at_ms, zone).date(), []).append(each)
    first = next(iter(days))
    for day, happenings in days.items():
        screen.line()
        number = (day - first).days + 1
        screen.line(Cell(f"Day {number}", "bold"), Cell(f"  {day:%A %Y-%m-%d}", "bright_black"))
        for each in happenings:
            head = Cell(f"  {local_of(each.at_ms, zone):%H:%M}  ", "bright_black")
            until = f" until {_moment(each.until_ms, zone)}" if each.until_ms is not None else ""
            screen.hanging([head], Cell(f"{each.text}{until}", _STYLES.get(each.what, "")))
    screen.line()
    if run.completed_ms is None:
        screen.line(f"After that it is {run.status}, at {run.current_step or 'no step'}.")
    else:
        screen.line("Outcome: ", Cell(run.outcome or run.status.lower(), "bold"))


def _moment(ms: int, zone: str) -> str:
    return f"{local_of(ms, zone):%A %Y-%m-%d %H:%M}"
