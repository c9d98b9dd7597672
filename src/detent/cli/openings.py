"""When windows are open, day by day: what `detent calendar preview` draws."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from msgspec import Struct

from detent.calendar import Window, closing, instant_of, local_of, next_opening
from detent.cli.values import WrongValue
from detent.definition import sequence, step
from detent.kernel.timing import compile_window
from detent.model.definition import Definition
from detent.model.errors import DefinitionError, RequestError
from detent.service.blocks import every_step

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_OPTIONS = ("holidays", "country")
_SPAN = re.compile(r"[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}")
_DAY = dt.timedelta(days=1)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local times are naive
_MS = dt.timedelta(milliseconds=1)


class Jump(Struct, frozen=True, kw_only=True):
    """A change of the wall clock: from one local time to another."""

    before: dt.datetime
    after: dt.datetime

    @property
    def minutes(self) -> int:
        """How far it jumps; below 0 it goes back."""
        return (self.after - self.before) // dt.timedelta(minutes=1)


class Day(Struct, frozen=True, kw_only=True):
    """One local date: when it is open, as instants, and whether the clock changes."""

    date: dt.date
    open: tuple[tuple[int, int], ...]
    holiday: bool
    jump: Jump | None
    exists: bool = True  # False for a date that the zone left out


def windows_of(hours: Sequence[str], options: dict[str, object], zone: str) -> tuple[Window, ...]:
    """The windows of `--hours` and its options, checked as those of a definition are."""
    wire = {
        "hours": _hours(hours),
        **{name: value for name, value in options.items() if value},
    }
    try:
        made = sequence("preview", step("window", "noop", send_window=wire))
    except DefinitionError as error:
        fault = error.faults[0]  # nobody wrote the definition, so its places say nothing
        named = next((each for each in _OPTIONS if f".{each}" in fault.path), "hours")
        raise WrongValue(fault.message, fault.code, f"--{named}") from None
    return step_windows(made, "", zone)


def step_windows(definition: Definition, id: str, zone: str) -> tuple[Window, ...]:
    """The send windows of a step, or of the only step that has some."""
    having = [each for each in every_step(definition) if each.send_window is not None]
    found = [each for each in having if id in ("", each.id)]
    if len(found) != 1:
        named = ", ".join(each.id for each in having) or "none"
        asked = f"step {id!r}" if id else "the step meant"
        raise RequestError(
            "request.invalid", f"name {asked} with a send_window; steps that have one: {named}"
        )
    windows = found[0].send_window
    every = windows if isinstance(windows, tuple) else (windows,)
    calendars = definition.body.calendars
    return tuple(compile_window(each, zone, calendars) for each in every if each is not None)


def days_of(windows: Sequence[Window], first: dt.date, count: int, zone: str) -> list[Day]:
    """Each local date from `first` on."""
    return [_day(windows, first + n * _DAY, zone) for n in range(count)]


def midnight(date: dt.date, zone: str) -> int:
    """The first instant of a local date."""
    return instant_of(dt.datetime.combine(date, dt.time()), zone)


def _day(windows: Sequence[Window], date: dt.date, zone: str) -> Day:
    start, end = midnight(date, zone), midnight(date + _DAY, zone)
    return Day(
        date=date,
        open=tuple(_stretches(windows, start, end)),
        holiday=any(date.isoformat() in window.holidays for window in windows),
        jump=_jump(start, end, zone),
        exists=start < end,
    )


def _stretches(windows: Sequence[Window], start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    opens = next_opening(windows, start)
    while opens is not None and opens < end:
        closes = closing(windows, opens)
        found.append((opens, end if closes is None else min(closes, end)))
        opens = next_opening(windows, found[-1][1])
    return found


def _jump(start: int, end: int, zone: str) -> Jump | None:
    """The change of the clock between two instants, found by halving."""
    before = _offset(start, zone)
    if _offset(end, zone) == before:
        return None
    early, late = start, end
    while late - early > 1:
        middle = (early + late) // 2
        if _offset(middle, zone) == before:
            early = middle
        else:
            late = middle
    local = local_of(late, zone)
    return Jump(before=local - _offset(late, zone) + before, after=local)


def _offset(ms: int, zone: str) -> dt.timedelta:
    return local_of(ms, zone) - (_EPOCH + ms * _MS)


def _hours(given: Sequence[str]) -> dict[str, list[str]]:
    """Spans by weekday out of texts such as `mon-fri 09:00-12:00,13:00-17:00; sat 10:00-14:00`."""
    hours: dict[str, list[str]] = {}
    for part in ";".join(given).split(";"):
        if part.strip():
            days, spans = _part(part)
            for day in days:
                hours.setdefault(day, []).extend(spans)
    return hours


def _part(text: str) -> tuple[list[str], list[str]]:
    words = text.replace(", ", ",").split()
    if words and not words[0][0].isdigit():
        days = _days(words[0].lower(), text)
        words = words[1:]
    else:
        days = list(WEEKDAYS)
    spans = [span for word in words for span in word.split(",") if span]
    if not spans or not all(map(_SPAN.fullmatch, spans)):
        raise _unreadable(text)
    return days, spans


def _days(word: str, text: str) -> list[str]:
    found: list[str] = []
    for each in word.split(","):
        first, dash, last = each.partition("-")
        if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
            raise _unreadable(text)
        start = WEEKDAYS.index(first)
        length = (WEEKDAYS.index(last) - start) % len(WEEKDAYS) if dash else 0
        found += [WEEKDAYS[(start + n) % len(WEEKDAYS)] for n in range(length + 1)]
    return found


def _unreadable(text: str) -> WrongValue:
    example = '"mon-fri 09:00-12:00,13:00-17:00; sat 10:00-14:00"'
    expected = f"weekdays and spans HH:MM-HH:MM, such as {example}"
    return WrongValue(f"expected {expected}; got {text.strip()!r}", option="--hours")
