"""`detent demo`: some hundred orders of a shop over four days of virtual time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import Struct

from detent.bootstrap.engine import Engine
from detent.cli.demo_burst import run_burst
from detent.cli.demo_limits import run_limits
from detent.cli.demo_orders import HANDLERS, ORDER, People, orders
from detent.cli.demo_report import Beside, Report, make_report, show_report
from detent.cli.invocation import Invocation, pass_invocation, shared
from detent.cli.pictures import Pictures
from detent.cli.reader import Reader, reading
from detent.cli.screen import Cell, Screen
from detent.cli.watching import Start, Watch, counters, picture
from detent.model.errors import RequestError

HOURS = 96
_PACE_S = 0.07
_HOUR_MS = 3_600_000


class Show(Struct, kw_only=True):
    """What a demonstration is made of."""

    engine: Engine
    reader: Reader
    people: People
    watch: Watch
    screen: Screen


@click.command()
@click.option("--count", default=300, type=click.IntRange(1, 5_000), show_default=True)
@click.option("--keep", metavar="PATH", help="Leave the store there, to look at it afterwards.")
@click.option("--fast", is_flag=True, help="As fast as it goes, instead of so that one can follow.")
@shared
@pass_invocation
def demo(options: Invocation, count: int, keep: str | None, fast: bool) -> None:
    """Show the engine at work: orders of a shop, over four days of virtual time.

    Warehouse and carrier fail now and then and are tried again, the bank loses an answer, people
    approve and cancel; letters keep to a limit, a pool and office hours beside a schedule. In the
    end everything that happened is proved and replayed.
    """
    with _place(keep) as path:
        options.db, options.url = path, None
        report = _perform(options, count, paced=not fast and options.screen().terminal)
        if not options.json:
            _close(options.screen(), keep)
    if options.json:
        options.emit(report, lambda _screen: None)


def _perform(options: Invocation, count: int, *, paced: bool) -> Report:
    screen = options.screen()
    with (
        Engine(options.db, handlers=HANDLERS, clock="virtual", seed="demo") as engine,
        reading(options) as reader,
    ):
        if not options.json:
            _open(screen, count)
        ids = engine.start_many(ORDER, orders(count))
        show = Show(
            engine=engine,
            reader=reader,
            people=People(engine, reader.store, ids),
            watch=Watch(reader, ids, "", Start(0, {})),
            screen=screen,
        )
        with _display(show, quiet=options.json) as refresh:
            for hour in range(1, HOURS + 1):
                next_at = time.perf_counter() + _PACE_S
                _work(show, hour)
                refresh(hour)
                if paced:
                    time.sleep(max(0.0, next_at - time.perf_counter()))
        burst = run_burst(Path(options.db).with_name("burst.db"))
        now = reader.at_present()
        report = make_report(now, ids, Beside(burst=burst, limits=run_limits()), show.people)
        if not options.json:
            show_report(screen, now, report)
        return report


def _work(show: Show, hour: int) -> None:
    """One hour of the story."""
    show.engine.advance(_HOUR_MS)
    show.people.act(hour)


@contextmanager
def _display(show: Show, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    if quiet:
        yield lambda _hour: None
    elif show.screen.terminal:
        with Pictures(show.screen) as pictures:
            yield lambda hour: pictures.show(_picture(show, hour))
    else:
        yield lambda hour: _line(show, hour)


def _picture(show: Show, hour: int) -> object:
    show.watch.title = f"day {hour // 24 + 1}, {hour % 24:02}:00"
    people = show.people
    did = [
        Cell(f"people approved {people.answered}", "yellow"),
        Cell(f"   settled {people.decided} doubts", "magenta"),
        Cell(f"   reported {people.signalled} deliveries", "cyan"),
    ]
    show.watch.finished()
    return picture(show.screen, show.watch, [did], paced=True)


def _line(show: Show, hour: int) -> None:
    if hour % 12 == 0 or hour == HOURS:
        counts = counters(show.watch.counts())
        show.screen.line(f"day {hour // 24 + 1}, {hour % 24:02}:00   {counts}")


def _open(screen: Screen, count: int) -> None:
    screen.line(
        Cell("Detent  ", "bold"), Cell(f"{count} orders of a shop, in virtual time", "bright_black")
    )
    screen.line()


@contextmanager
def _place(keep: str | None) -> Iterator[str]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="detent-demo-") as directory:
            yield str(Path(directory) / "demo.db")
    else:
        if Path(keep).exists():
            raise RequestError("file.exists", f"{keep} is there already; name a new file")
        yield keep


def _close(screen: Screen, keep: str | None) -> None:
    screen.line()
    if keep is None:
        screen.line(Cell("look closer:  detent demo --keep demo.db", "bright_black"))
    else:
        screen.line(Cell(f"look closer:  detent --db {keep} instance list", "bright_black"))
    screen.line(Cell("begin:        detent init hello", "bright_black"))
