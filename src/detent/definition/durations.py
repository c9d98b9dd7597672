"""Durations as people write them in Python: 1500, 1.5, "3d", "2h30m", timedelta."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

Duration = int | float | str | timedelta
"""Whole milliseconds, seconds with a fraction, a text such as "2h30m", or a timedelta."""

_UNITS_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000, 1)
_TEXT = re.compile(
    r"(?:([0-9]{1,12})w)?(?:([0-9]{1,12})d)?(?:([0-9]{1,12})h)?"
    r"(?:([0-9]{1,12})m)?(?:([0-9]{1,12})s)?(?:([0-9]{1,12})ms)?"
)
_MICROSECOND = timedelta(microseconds=1)


def to_duration(value: Any) -> Any:
    """Give the wire form of a duration; what is none is left as it is, for `normalize` to name."""
    if isinstance(value, timedelta):
        return _rounded(value // _MICROSECOND)
    if not isinstance(value, str):
        return value
    match = _TEXT.fullmatch(value.strip())
    if match is None or not any(match.groups()):
        return value
    counts = (int(digits or 0) for digits in match.groups())
    return sum(count * unit for count, unit in zip(counts, _UNITS_MS, strict=True))


def to_whole_seconds(value: Any) -> Any:
    """Give seconds for a text or timedelta; a number is taken as seconds already."""
    if not isinstance(value, (str, timedelta)):
        return value
    ms = to_duration(value)
    if type(ms) is not int:
        return ms
    return ms / 1000 if ms % 1000 else ms // 1000


def _rounded(microseconds: int) -> int:
    return (microseconds + 500) // 1000
