"""A chapter of the demonstration about time and limits: a line, a pool, office hours, a schedule.

Letters go through two mailboxes in office hours, a few an hour, and a schedule starts a report each
morning. It is Friday noon when they are written; in virtual time the week is over at once.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter

from msgspec import Struct

from detent.bootstrap.engine import Engine
from detent.cli.screen import Cell, Screen, Table
from detent.cli.times import in_local
from detent.definition import sequence, step
from detent.handlers import HandlerContext, handler

LETTERS = 12
AN_HOUR = 3
_NEW_CAP = 2  # of the mailbox that warms up, on its first day
_BEGIN = dt.datetime(2026, 1, 2, 14, tzinfo=dt.UTC)  # a Friday; offices close at 17:00
_END = dt.datetime(2026, 1, 6, tzinfo=dt.UTC)
_OFFICE = {"start": "09:00", "end": "17:00", "days": [0, 1, 2, 3, 4]}


class Hour(Struct, frozen=True, kw_only=True):
    """The letters that went out in one hour, by mailbox."""

    at: str
    sent: dict[str, int]


class Chapter(Struct, frozen=True, kw_only=True):
    """What became of the letters and the reports."""

    letters: int
    held: str  # why one of them stood, a minute after they were written
    hours: list[Hour]
    reports: list[str]
    valid: bool


def run_limits() -> Chapter:
    """Send the letters and let the days pass, in memory."""
    sent: list[tuple[dt.datetime, str]] = []

    @handler("send_letter")
    def send(ctx: HandlerContext) -> None:
        sent.append((engine.now(), ctx.resource or ""))

    letter = sequence(
        "letter",
        step("send", send, send_window=_OFFICE, rate_limit_key="letters", pool="mailboxes"),
    )
    report = sequence("report", step("write", "noop"))
    with Engine(handlers=[send], clock="virtual", seed="demo") as engine:
        engine.advance(to=_BEGIN)
        engine.limits.set("letters", max=AN_HOUR, window="1h")
        engine.pools.create("mailboxes")
        engine.pools.add("mailboxes", "anna@example.com", weight=2)
        engine.pools.add("mailboxes", "new@example.com", warmup_schedule=[_NEW_CAP, 4, 8])
        engine.deploy(report)
        engine.crons.create("report", "0 9 * * MON-FRI", id="morning")
        ids = engine.start_many(letter, [None] * LETTERS)
        engine.advance(60_000)
        held = engine.explain(ids[AN_HOUR]).summary
        engine.advance(to=_END)
        rows = [each for each in engine.inspect.instances().items if each.name == "report"]
        reports = [_moment(dt.datetime.fromtimestamp(r.created_ms / 1000, dt.UTC)) for r in rows]
        valid = engine.inspect.verify().valid
    return Chapter(letters=len(sent), held=held, hours=_hours(sent), reports=reports, valid=valid)


def _hours(sent: list[tuple[dt.datetime, str]]) -> list[Hour]:
    by_hour: dict[str, Counter[str]] = {}
    for at, mailbox in sent:
        by_hour.setdefault(_moment(at), Counter())[mailbox] += 1
    return [Hour(at=at, sent=dict(sorted(found.items()))) for at, found in by_hour.items()]


def _moment(at: dt.datetime) -> str:
    return f"{at:%a %H:%M}"


def show_limits(screen: Screen, chapter: Chapter) -> None:
    """Print the chapter."""
    mailboxes = sorted({name for hour in chapter.hours for name in hour.sent})
    full = "█" if screen.wide else "#"
    screen.heading("time and limits")
    about = (
        f"{chapter.letters} letters, written on Friday at 14:00: {AN_HOUR} an hour, in office "
        f"hours, from two mailboxes; the new one may send {_NEW_CAP} on its first day"
    )
    screen.line(Cell(about, "bright_black"))
    screen.table(
        Table(
            columns=("sent", *mailboxes),
            rows=[
                (hour.at, *(Cell(full * hour.sent.get(name, 0), "green") for name in mailboxes))
                for hour in chapter.hours
            ],
        )
    )
    screen.line()
    screen.facts(
        [
            ("a minute later", in_local(chapter.held)),
            ("the schedule", f"a report at {', '.join(chapter.reports)}"),
        ]
    )
