"""Instants and spans as people read them: local ISO time, and how far from now."""

from __future__ import annotations

import datetime as dt
import re

_UNITS = (
    ("year", 365 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1_000),
)
_UTC = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_NEAR_MS = 1_000


def local(ms: int) -> str:
    """An instant as local ISO time to the second, with its offset."""
    instant = dt.datetime.fromtimestamp(ms / 1000, dt.UTC).astimezone()
    return instant.isoformat(timespec="seconds")


def instant(ms: int | None, now_ms: int) -> str:
    """An instant with its distance from now: `2026-01-01T12:00:00+01:00 (in 3 h)`."""
    return "" if ms is None else f"{local(ms)} ({relative(ms, now_ms)})"


def in_local(text: str) -> str:
    """A sentence whose UTC instants are written as all others are: local, to the second."""
    return _UTC.sub(lambda found: local(from_iso(found[0])), text)


def relative(ms: int, now_ms: int) -> str:
    """How far an instant is from now: `in 3 h`, `5 min ago`, `now`."""
    distance = ms - now_ms
    if abs(distance) < _NEAR_MS:
        return "now"
    return f"in {span(distance)}" if distance > 0 else f"{span(-distance)} ago"


def span(ms: int) -> str:
    """A length of time in its largest unit, and the next one where that helps: `1 h 30 min`."""
    for place, (unit, size) in enumerate(_UNITS):
        if ms < size:
            continue
        whole, rest = divmod(ms, size)
        named = unit if unit != "year" or whole == 1 else "years"
        finer = _UNITS[place + 1] if place + 1 < len(_UNITS) else None
        small = rest // finer[1] if finer is not None and whole < 10 else 0  # noqa: PLR2004 - 9 h 30 min, 12 h
        return f"{whole} {named} {small} {finer[0]}" if finer and small else f"{whole} {named}"
    return f"{ms} ms"


def from_iso(text: str) -> int:
    """Epoch milliseconds of an ISO instant."""
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)
