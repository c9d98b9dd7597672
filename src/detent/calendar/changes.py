"""When the wall clock of a zone changes, and the calm in between.

At least `CALM_MS` away from every change the offset of a zone is one and the same for all that a
window can open around an instant: its spans start up to two days before it and end up to two days
after it, and no offset is as long as a day. There a week is like the next one.

The zone data does not tell its changes. They are found by looking once a day: no two of them are
less than a week apart in any zone, and a test sees to it that this stays so.
"""

from __future__ import annotations

from functools import lru_cache

from detent.calendar.local import aware_of
from detent.model.errors import RequestError
from detent.model.limits import CALENDAR_HORIZON_DAYS

DAY_MS = 86_400_000
CALM_MS = 3 * DAY_MS
_DAY = 86_400
_CHUNK = 256  # days looked at together
_CHUNKS = CALENDAR_HORIZON_DAYS // _CHUNK + 2  # looked through for the next change


def calm_until(zone: str, ms: int) -> int:
    """Return until when a zone is calm from an instant on; the instant or less if it is not."""
    return _next_change(zone, ms - CALM_MS) - CALM_MS


def offset_ms(zone: str, ms: int) -> int:
    """Return how far the wall clock of a zone is ahead of UTC at an instant."""
    return _offset(zone, ms // 1000) * 1000


def _next_change(zone: str, ms: int) -> int:
    """Return the first change from an instant on; without one, an instant beyond the horizon."""
    chunk = ms // (_CHUNK * DAY_MS)
    for each in range(chunk, chunk + _CHUNKS):
        for change in _changes(zone, each):
            if change >= ms:
                return change
    return (chunk + _CHUNKS) * _CHUNK * DAY_MS


@lru_cache(maxsize=8_192)
def _changes(zone: str, chunk: int) -> tuple[int, ...]:
    """Return the first millisecond after each change in a stretch of days."""
    first = chunk * _CHUNK * _DAY
    found = []
    try:
        before = _offset(zone, first)
        for second in range(first + _DAY, first + (_CHUNK + 1) * _DAY, _DAY):
            after = _offset(zone, second)
            if after != before:
                found.append(_halved(zone, second - _DAY, second) * 1000)
                before = after
    except RequestError:
        # The edge of the calendar: nothing is calm there.
        return tuple(range(first * 1000, (first + _CHUNK * _DAY) * 1000, DAY_MS))
    return tuple(found)


def _halved(zone: str, early: int, late: int) -> int:
    before = _offset(zone, early)
    while late - early > 1:
        middle = (early + late) // 2
        if _offset(zone, middle) == before:
            early = middle
        else:
            late = middle
    return late


def _offset(zone: str, second: int) -> int:
    offset = aware_of(second, zone).utcoffset()
    return 0 if offset is None else offset.days * _DAY + offset.seconds
