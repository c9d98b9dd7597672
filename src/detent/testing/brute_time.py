"""Brute force over wall clocks: every minute around a change of offset, one after the other.

It shares nothing with `detent.calendar`: it reads the zones itself, asks them one question only
(the offset at an instant, which is never ambiguous), and finds the instants of a local time by
looking at all minutes of twelve days. Minutes are whole numbers since 1970, in UTC or local.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from detent.model.errors import invariant

FIRST_YEAR, LAST_YEAR = 2000, 2040
DAY = 1_440
REACH = 6 * DAY

_YEARS = (FIRST_YEAR, LAST_YEAR + 1)
_MINUTE = timedelta(minutes=1)


def zone_groups() -> list[list[str]]:
    """Return the names of all zones, those with the very same data together."""
    names = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    groups: dict[bytes, list[str]] = {}
    for name in sorted(names):
        if name != "Factory":
            data = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
            groups.setdefault(data, []).append(name)
    return list(groups.values())


@cache
def _rules(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


def offset_at(name: str, minute: int) -> int:
    """Return the minutes that the wall clock is ahead of UTC at an instant."""
    offset = datetime.fromtimestamp(minute * 60, _rules(name)).utcoffset() or timedelta()
    invariant(not offset % _MINUTE, "offsets since 2000 are whole minutes")
    return offset // _MINUTE


def changes_of(name: str, step: int) -> Iterator[int]:
    """Find the minutes at which the offset changes, by looking every `step` minutes."""
    first, end = (int(datetime(y, 1, 1, tzinfo=UTC).timestamp()) // 60 for y in _YEARS)
    before = offset_at(name, first)
    for late in range(first + step, end + step, step):
        after = offset_at(name, late)
        if after != before:
            yield next(m for m in range(late - step, late + 1) if offset_at(name, m) != before)
        before = after


class Walk:
    """Every minute around one change: what the wall clock shows, and when it shows a time."""

    def __init__(self, name: str, change: int) -> None:
        self.change = change
        self.minutes = range(change - REACH, change + REACH)
        self.local = [minute + offset_at(name, minute) for minute in self.minutes]
        self.shown: dict[int, list[int]] = {}
        for minute, local in zip(self.minutes, self.local, strict=True):
            self.shown.setdefault(local, []).append(minute)
        self.leaps = [
            (before, after, minute)
            for before, after, minute in zip(
                self.local[:-1], self.local[1:], self.minutes[1:], strict=True
            )
            if after > before + 1
        ]
        around = self.local[REACH - 1] + 1, self.local[REACH]
        self.low, self.high = min(around), max(around)
        self.is_gap = around[0] < around[1]

    def second(self, local: int, gap: str, fold: str) -> int:
        """Return the second in UTC that a local minute begins at, under the two policies."""
        shown = self.shown.get(local)
        if shown is not None:
            return 60 * (shown[0] if fold == "first" else shown[-1])
        before, after, end = next(leap for leap in self.leaps if leap[0] < local < leap[1])
        if gap == "shift":
            return 60 * self.shown[local + after - before - 1][0]
        return 60 * end if gap == "next" else 60 * end - 1

    def dates(self) -> range:
        """Return the local dates around the change, as days since 1970."""
        middle = self.low // DAY
        return range(middle - 3, middle + 4)


class Openings:
    """Whether something is open at every minute, and at the last second before each minute.

    No edge lies anywhere else: those of `before` are last seconds, all others whole minutes.
    """

    def __init__(self, walk: Walk) -> None:
        self._first = walk.minutes[0]
        self._flags = bytearray(2 * len(walk.minutes))

    def open_between(self, start: int, end: int) -> None:
        """Mark from one second to another; nothing if they do not come in that order."""
        low, high = self._place(start), self._place(end)
        self._flags[low:high] = b"\1" * max(0, high - low)

    def both(self, other: Openings) -> Openings:
        """Keep only what is open in the other one too."""
        self._flags = bytearray(a & b for a, b in zip(self._flags, other._flags, strict=True))
        return self

    def is_open(self, second: int) -> bool:
        """Tell whether it is open at a second."""
        return bool(self._flags[self._place(second)])

    def next_opening(self, second: int) -> int:
        """Return the first second from here on that is open."""
        return self._second(self._flags.find(1, self._place(second)))

    def closing(self, second: int) -> int | None:
        """Return the first second from here on that is shut, None if it is shut already."""
        if not self.is_open(second):
            return None
        return self._second(self._flags.find(0, self._place(second)))

    def last_closing(self, second: int) -> int:
        """Return the latest second up to here with an open one just before it."""
        return self._second(self._flags.rfind(1, 0, self._place(second)) + 1)

    def _place(self, second: int) -> int:
        minute, rest = divmod(second + 1, 60)
        invariant(rest <= 1, "only whole minutes and last seconds are looked at")
        return 2 * (minute - self._first) - 1 + rest

    def _second(self, place: int) -> int:
        invariant(0 < place < len(self._flags), "the answer lies within the minutes looked at")
        return 60 * (self._first + (place + 1) // 2) - place % 2
