"""`detent calendar`: draw when a window is open, and list when a cron expression fires."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from detent.calendar import (
    Window,
    closing,
    instant_of,
    is_open,
    local_of,
    next_opening,
    parse_cron,
    tzdata_version,
)
from detent.cli import exits, values
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.openings import days_of, step_windows, windows_of
from detent.cli.screen import Table
from detent.cli.sources import load_definition
from detent.cli.times import relative
from detent.cli.window_view import Preview, draw, iso_local, listed
from detent.runtime.clock import wall_time_ms


@click.group()
@shared
def calendar() -> None:
    """Draw when windows are open; list when schedules fire."""


@calendar.command()
@click.argument("file", metavar="[FILE]", required=False)
@click.argument("step_id", metavar="[STEP]", required=False)
@click.option(
    "--hours", multiple=True, metavar="TEXT", help='Such as "mon-fri 09:00-17:00; sat 10:00-14:00".'
)
@click.option(
    "--zone",
    default="UTC",
    type=values.zone,
    metavar="ZONE",
    show_default=True,
    help="IANA name of the time zone.",
)
@click.option("--holidays", metavar="DATES", help="Closed dates, YYYY-MM-DD with commas between.")
@click.option("--country", metavar="CODE", help="Closed on its holidays, such as DE or DE-BY.")
@click.option(
    "--from", "start", type=values.moment, metavar="DATE", help="First day, or an instant of it."
)
@click.option("--days", default=7, type=click.IntRange(1, 366), show_default=True)
@shared
@pass_invocation
def preview(options: Invocation, file: str | None, **given: Any) -> int:
    """Draw the next openings of a window, or of the send window of a step in a definition FILE.

    For a definition the zone is that of the instance.
    """
    windows = _windows(file, given, given["zone"])
    shown_zone = windows[0].zone
    now_ms = wall_time_ms()
    start_ms = now_ms if given["start"] is None else _start(given["start"], shown_zone)
    first = local_of(start_ms, shown_zone).date()
    opens = next_opening(windows, start_ms)
    found = Preview(
        zone=shown_zone,
        start_ms=start_ms,
        today=local_of(now_ms, shown_zone).date(),
        days=days_of(windows, first, given["days"], shown_zone),
        open=is_open(windows, start_ms),
        closes_ms=closing(windows, start_ms),
        opens_ms=opens,
    )
    options.emit(listed(found), lambda screen: draw(screen, found))
    return exits.OK if opens is not None else exits.NO


@calendar.command()
@click.argument("expression", type=values.expression)
@click.option(
    "--zone",
    default="UTC",
    type=values.zone,
    metavar="ZONE",
    show_default=True,
    help="IANA name of the time zone.",
)
@click.option(
    "--from",
    "start",
    type=values.moment,
    metavar="INSTANT",
    help="Fires after this, by default after now.",
)
@click.option("-n", "count", default=5, type=click.IntRange(1, 1_000), show_default=True)
@shared
@pass_invocation
def cron(
    options: Invocation, expression: str, zone: str, start: dt.datetime | None, count: int
) -> int:
    """List the next times at which a cron EXPRESSION fires."""
    parsed = parse_cron(expression)
    after_ms = wall_time_ms() if start is None else _start(start, zone)
    fires = parsed.upcoming(after_ms, zone, count)
    shown = {
        "expression": parsed.text,
        "zone": zone,
        "tzdata": tzdata_version(),
        "fires": [iso_local(ms, zone) for ms in fires],
    }
    table = Table(
        columns=("day", "local time", "from now" if start is None else "after that"),
        rows=[
            (f"{local_of(ms, zone):%a}", iso_local(ms, zone), relative(ms, after_ms))
            for ms in fires
        ],
        empty="it never fires again",
    )
    options.emit(shown, lambda screen: screen.table(table))
    return exits.OK if fires else exits.NO


def _windows(file: str | None, given: dict[str, Any], zone: str) -> tuple[Window, ...]:
    hours = given["hours"]
    if (file is None) == (not hours):
        raise click.UsageError('Say what to draw: FILE [STEP], or --hours "mon-fri 09:00-17:00".')
    if file is not None:
        if given["holidays"] or given["country"]:
            raise click.UsageError("The holidays of a definition are in it; leave the options out.")
        return step_windows(load_definition(file).definition, given["step_id"] or "", zone)
    named = [each.strip() for each in (given["holidays"] or "").split(",") if each.strip()]
    return windows_of(hours, {"holidays": named, "country": given["country"]}, zone)


def _start(given: dt.datetime, zone: str) -> int:
    """An instant: of the zone, unless it says its offset."""
    if given.tzinfo is not None:
        return int(given.timestamp() * 1000)
    return instant_of(given, zone)
