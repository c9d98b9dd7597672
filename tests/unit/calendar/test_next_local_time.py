"""The next time of day in a zone, by every day or by business days."""

from __future__ import annotations

import datetime as dt

import pytest

from detent.calendar import next_local_time

BERLIN = "Europe/Berlin"


def ms(text):
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("after", "time", "holidays", "expected"),
    [
        ("2026-01-05T07:00+01:00", "09:00", None, "2026-01-05T09:00+01:00"),
        ("2026-01-05T09:00+01:00", "09:00", None, "2026-01-05T09:00+01:00"),
        ("2026-01-05T09:00:00.001+01:00", "09:00", None, "2026-01-06T09:00+01:00"),
        ("2026-01-02T10:00+01:00", "09:00", frozenset(), "2026-01-05T09:00+01:00"),
        (
            "2026-01-02T10:00+01:00",
            "09:00",
            frozenset(("2026-01-05",)),
            "2026-01-06T09:00+01:00",
        ),
        # the night in which 02:30 does not exist: the end of the gap
        ("2026-03-29T00:00+01:00", "02:30", None, "2026-03-29T03:00+02:00"),
        # the night in which it exists twice: the first, and after it the next day's
        ("2026-10-25T00:00+02:00", "02:30", None, "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:45+02:00", "02:30", None, "2026-10-26T02:30+01:00"),
    ],
)
def test_the_next_time_of_day_is_found(after, time, holidays, expected):
    assert next_local_time(ms(after), BERLIN, time, holidays) == ms(expected)
