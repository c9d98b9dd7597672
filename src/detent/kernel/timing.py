"""When a step may go on: the target of its delay, and the verdict of its send windows.

Both ask the calendar, whose answers change with the zone data of the machine. So each answer is a
computed fact, `{"ms", "zone", "tzdata"}`: recorded with the turn, and on replay taken from there.
`ms` is always the instant of a tick, since a step acts on ticks only and a target between two of
them could fall on the next day. A delay that asks nothing of the calendar leaves no fact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from detent.calendar import (
    Span,
    Window,
    business_instant,
    holidays_of,
    instant_of,
    is_business_day,
    is_open,
    jittered,
    next_local_time,
    next_opening,
    tzdata_version,
)
from detent.kernel.failure import Failure
from detent.kernel.gate.hours import Hours, Windows, digest_of, hours_of, just_missed, next_tick
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.definition import Delay, SendWindow
from detent.model.errors import RequestError
from detent.model.plan import Until
from detent.model.snapshot import Frame

_DAY_MINUTES = 1_440
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK_CHARS = len("HH:MM")
_LAST_MS = 253_402_300_799_999  # the end of the year 9999


def delay_due(run: Run, node: Node, frame: Frame, path: str) -> int | Failure:
    """The tick at which the delay of a step ends, or why the calendar cannot tell."""
    delay: Delay = node.block.delay
    dated = delay.business_days_only or delay.fire_at_local is not None
    if not dated and delay.jitter is None:
        return run.after(delay.duration)
    point = _point(run, frame, path) if delay.jitter else 0
    if not dated:
        offset = _picked(point, -(delay.jitter or 0), delay.jitter or 0)
        return run.after(max(0, delay.duration + offset))
    zone = delay.timezone or run.snapshot.timezone
    key = f"calendar:delay:{path}:{run.snapshot.generation}"
    fact = _told(run, key, zone, lambda: {"ms": _known(_target(run, node, zone, point))})
    return _refusal(fact) if "error" in fact else run.at_ms(fact["ms"])


def wait_due(run: Run, node: Node, path: str) -> int | Failure:
    """The tick of the local moment that a wait goes on to, once its duration is over."""
    until: Until = node.block.until
    zone = until.timezone or run.snapshot.timezone
    key = f"calendar:until:{path}:{run.snapshot.generation}"
    fact = _told(run, key, zone, lambda: {"ms": _known(_moment(run, node, zone))})
    return _refusal(fact) if "error" in fact else run.at_ms(fact["ms"])


def window_due(run: Run, node: Node, frame: Frame, path: str, wanted: int) -> int | Failure | None:
    """None when a step may act now, else the tick of the next opening, or why there is none.

    `wanted` is the tick at which the step first wanted to act. If the windows were open at some
    time since, it may act late, as long as each that is closed by now has not been so for longer
    than its `send_late_within`.
    """
    key = f"calendar:window:{path}:{frame.attempt}:{wanted}"
    fact = _told(run, key, run.snapshot.timezone, lambda: _verdict(run, node, wanted))
    if "error" in fact:
        return _refusal(fact)
    if fact["ms"] is None:
        message = f"the send windows leave no instant to act in ({fact['zone']}); widen them"
        return Failure(message=message, kind="definition", code="calendar.window")
    return None if fact["ms"] <= run.now_ms() else run.at_ms(fact["ms"])


def hours(run: Run, node: Node) -> tuple[str, Hours]:
    """The windows of a step as a gate takes them, and their digest."""
    zone = run.snapshot.timezone
    _windows(run, node)
    known: tuple[str, Hours] = node.windows[zone][1]
    return known


def _told(run: Run, key: str, zone: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the calendar says, with the zone and the version of the zone data it is said by."""

    def ask() -> dict[str, Any]:
        try:
            said = make()
        except RequestError as error:
            said = {"ms": None, "code": error.code, "error": error.message}
        return {"zone": zone, **said, "tzdata": tzdata_version()}

    fact: dict[str, Any] = run.computed(key, ask)
    return fact


def _refusal(fact: dict[str, Any]) -> Failure:
    return Failure(message=fact["error"], kind="definition", code=fact["code"])


# delays ------------------------------------------------------------------------------------------


def _target(run: Run, node: Node, zone: str, point: int) -> int:
    delay: Delay = node.block.delay
    spread = delay.jitter or 0
    now = run.now_ms()
    if delay.fire_at_local is None:
        ms = now + delay.duration
    else:
        local = datetime.fromisoformat(delay.fire_at_local)
        ms = max(now, instant_of(local, zone, delay.gap, delay.fold))
    if not delay.business_days_only:
        return _on_tick(run, ms + _picked(point, -spread, spread))
    holidays = _holidays(run, node)
    ms = _on_tick(run, ms)
    moved = _on_tick(run, business_instant(ms, zone, holidays, delay.gap, delay.fold))
    while moved != ms:  # a tick may be the first of a day that is free again
        ms = moved
        moved = _on_tick(run, business_instant(ms, zone, holidays, delay.gap, delay.fold))
    if spread:
        first = max(now, jittered(ms, -spread, zone, holidays))
        last = max(first, jittered(ms, spread, zone, holidays))
        # Between them lies another day where the wall clock goes back over midnight.
        ms = max(now, jittered(ms, _picked(point, first, last) - ms, zone, holidays))
        moved = _on_tick(run, ms)
        if moved != ms and not is_business_day(moved, zone, holidays):
            return moved - run.facts.resolution_ms
        return moved
    return ms


def _moment(run: Run, node: Node, zone: str) -> int:
    until: Until = node.block.until
    ms = run.now_ms() + (node.block.duration or 0)
    holidays = _holidays(run, node) if until.business_day else None
    if until.time is not None and len(until.time) > _CLOCK_CHARS:
        local = datetime.fromisoformat(until.time)
        ms = max(ms, instant_of(local, zone, until.gap, until.fold))
        time = None
    else:
        time = until.time
    policies = (until.gap, until.fold)
    if time is not None:
        ms = next_local_time(ms, zone, time, holidays, policies)
    elif holidays is not None:
        ms = business_instant(ms, zone, holidays, *policies)
    return _on_tick(run, ms)


def _known(ms: int) -> int:
    """An instant that can be told as a date of UTC."""
    if ms > _LAST_MS:
        message = "expected a time before the year 10000 in UTC; name an earlier one"
        raise RequestError("calendar.date", message)
    return ms


def _on_tick(run: Run, ms: int) -> int:
    return run.ms_of(run.at_ms(ms))


def _holidays(run: Run, node: Node) -> frozenset[str]:
    """The step's and its country's, and those of the instance's config."""
    named = holidays_of(run.snapshot.config)
    return node.holidays.union(named) if named else node.holidays


def _point(run: Run, frame: Frame, path: str) -> int:
    """A number from the instance and the place alone."""
    snapshot = run.snapshot
    words = (snapshot.seed, snapshot.id, path, str(frame.n), str(snapshot.generation))
    return int.from_bytes(hashlib.sha256("\x00".join(words).encode()).digest()[:8], "big")


def _picked(point: int, first: int, last: int) -> int:
    """The number of a range that a point stands for."""
    return first + point % (last - first + 1)


# windows -----------------------------------------------------------------------------------------


def _verdict(run: Run, node: Node, wanted: int) -> dict[str, Any]:
    windows = _windows(run, node)
    now = run.now_ms()
    if is_open(windows.all, now):
        return {"ms": now, "zone": windows.zones}
    if just_missed(windows, now) and _had_a_chance(run, windows, wanted):
        return {"ms": now, "zone": windows.zones, "late": True}
    opens = next_tick(windows, now, lambda ms: _on_tick(run, ms))
    return {"ms": opens, "zone": windows.zones}


def _had_a_chance(run: Run, windows: Windows, wanted: int) -> bool:
    chance = next_opening(windows.all, run.ms_of(wanted))
    return chance is not None and chance <= run.now_ms()


def _windows(run: Run, node: Node) -> Windows:
    zone = run.snapshot.timezone
    known: tuple[Windows, tuple[str, Hours]] | None = node.windows.get(zone)
    if known is None:
        named = node.block.send_window
        named = named if isinstance(named, tuple) else (named,)
        calendars = run.program.definition.body.calendars
        compiled = tuple(compile_window(window, zone, calendars) for window in named)
        windows = Windows(compiled, tuple(window.send_late_within for window in named))
        stored = hours_of(windows)
        known = node.windows[zone] = (windows, (digest_of(stored), stored))
    return known[0]


def compile_window(
    window: SendWindow, zone: str, calendars: Mapping[str, tuple[str, ...]]
) -> Window:
    """A send window as the calendar takes it; `zone` is the instance's, for one without its own."""
    pinned = calendars.get(window.country or "", ())
    return Window(
        spans=_spans(window),
        zone=window.timezone or zone,
        holidays=frozenset((*window.holidays, *pinned)),
        gap=window.gap,
        fold=window.fold,
    )


def _spans(window: SendWindow) -> tuple[Span, ...]:
    if window.hours:
        return tuple(
            _span(day, *map(_minutes, span.split("-")))
            for day, name in enumerate(_WEEKDAYS)
            for span in window.hours.get(name, ())
        )
    start, end = window.start_hour * 60, window.end_hour * 60
    if window.start is not None and window.end is not None:
        start, end = _minutes(window.start), _minutes(window.end)
    return tuple(_span(day, start, end) for day in window.days or range(7))


def _span(day: int, start: int, end: int) -> Span:
    return Span(day, start, end if end > start else end + _DAY_MINUTES)


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)
