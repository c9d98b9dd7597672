"""`detent run --forever`: an engine that works on whatever is in the store until it is stopped."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from detent.bootstrap.owners import living_owner
from detent.cli.reader import Reader
from detent.cli.screen import Cell, Screen
from detent.cli.times import relative
from detent.cli.watching import Watch, showing
from detent.runtime.clock import wall_time_ms
from detent.service.crons import list_crons

_LOOK_S = 0.2
_SCHEDULES = 5  # shown while it runs
_STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets; a second one interrupts the process."""
    stop = threading.Event()
    before = {each: signal.getsignal(each) for each in _STOPPING}

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        for each, old in before.items():
            signal.signal(each, old)

    for each in _STOPPING:
        signal.signal(each, ask)
    try:
        yield stop
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def host(screen: Screen | None, watch: Watch, stop: threading.Event, until: float | None) -> None:
    """Let the engine work until it is stopped, or until a moment of the monotonic clock."""
    end = float("inf") if until is None else until
    if screen is None:
        while not stop.wait(_LOOK_S) and time.monotonic() < end:
            pass
        return
    if not screen.terminal:
        screen.line(f"works on {watch.title} until it is stopped (Ctrl-C or SIGTERM)")
        screen.flush()
    with showing(screen, watch, lambda: _schedules(watch.reader)) as refresh:
        while not stop.wait(_LOOK_S) and time.monotonic() < end:
            refresh()


def _schedules(reader: Reader) -> list[list[str | Cell]]:
    """The schedules that fire next, a line for each, and a word if the engine stands still."""
    lines: list[list[str | Cell]] = []
    if living_owner(reader.store) is None:
        lines.append([Cell("the engine stands still; `detent doctor` says why", "red")])
    now_ms = wall_time_ms()
    crons = [
        (each.next_fire_ms, each)
        for each in list_crons(reader.store, reader.tenant)
        if each.next_fire_ms is not None
    ]
    for due, cron in sorted(crons, key=lambda pair: pair[0])[:_SCHEDULES]:
        about = f"{cron.id}  {cron.cron_expr}  starts {cron.sequence}, {cron.fires:,} so far"
        lines.append([Cell(f"{relative(due, now_ms):>10}  ", "green"), about])
    return lines
