"""Changes of a zone's clock and the calm between them, on which the search for openings rests."""

from __future__ import annotations

import struct
from datetime import date, timedelta
from importlib.resources import files
from itertools import pairwise

import pytest

from detent.calendar import Span, Window, next_opening
from detent.calendar.changes import CALM_MS, DAY_MS, calm_until, offset_ms
from detent.calendar.plans import stretches_of
from detent.testing.brute_time import changes_of, zone_groups

HOUR = 60
NOW = 1_767_225_600_000  # 2026-01-01T00:00Z
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Africa/Casablanca",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
    "Pacific/Norfolk",
)


def spans_of(minute, days=range(7)):
    """48 spans of a minute on each weekday, as many as a window may have."""
    return tuple(Span(day, k * 30 + minute, k * 30 + minute + 1) for day in days for k in range(48))


def looks(call):
    """What a call gives, and at how many dates of a window it looked."""
    stretches_of.cache_clear()
    found = call()
    return found, stretches_of.cache_info().misses


def test_no_zone_changes_twice_within_a_week_so_that_a_look_a_day_finds_every_change():
    for name, *_ in zone_groups():
        data = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        changes = listed_changes(data)
        assert all(b - a > 6 * 86_400 for a, b in pairwise(changes)), name


def listed_changes(data):
    """The changes that a file of zone data lists, in seconds (RFC 8536, second part)."""
    utc, std, leap, times, types, chars = struct.unpack(">6l", data[20:44])
    start = 44 + times * 5 + types * 6 + chars + leap * 8 + std + utc
    (count,) = struct.unpack(">l", data[start + 32 : start + 36])
    return struct.unpack(f">{count}q", data[start + 44 : start + 44 + 8 * count])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Africa/Casablanca", "Pacific/Apia", "UTC"])
def test_it_is_calm_until_three_days_before_each_change_and_from_three_days_after_it(zone):
    changes = [minute * 60_000 for minute in changes_of(zone, 24 * HOUR)]
    for before, change in zip([0, *changes], changes, strict=False):
        assert calm_until(zone, change - CALM_MS) <= change - CALM_MS
        assert calm_until(zone, change + CALM_MS) <= change + CALM_MS
        start = max(before + CALM_MS + 1, change - CALM_MS - 100 * DAY_MS)
        if start < change - CALM_MS:
            assert calm_until(zone, start) == change - CALM_MS
        assert offset_ms(zone, change - 1) != offset_ms(zone, change)


@pytest.mark.req("SEQ-TIM-1")
def test_windows_that_never_meet_cost_a_look_at_each_change_and_not_at_each_date():
    quiet = [Window(spans_of(minute), "UTC") for minute in (0, 2)]
    assert looks(lambda: next_opening(quiet, NOW)) == (None, 0)
    many = [Window(spans_of(2 * n), zone) for n, zone in enumerate(ZONES)]
    found, dates = looks(lambda: next_opening(many, NOW))
    assert found is None
    assert dates < 2_500  # of 8 windows in 1,827 days


@pytest.mark.req("SEQ-TIM-1")
def test_windows_that_would_meet_on_holidays_only_cost_a_look_at_each_of_them():
    mondays = frozenset(f"{year}-{month:02d}-{day:02d}" for year, month, day in every_monday())
    one = Window((*spans_of(0, [0]), *spans_of(1, range(1, 7))), "UTC")
    other = Window(spans_of(0), "UTC", holidays=mondays)
    found, dates = looks(lambda: next_opening([one, other], NOW))
    assert found == 1_924_819_200_000  # the first Monday that is not listed
    assert dates < 2 * 7 * (len(mondays) + 1)


def every_monday():
    """The Mondays of five years but for the last days of them."""
    first = date(2026, 1, 5)
    return [(first + timedelta(weeks=n)).timetuple()[:3] for n in range(260)]


@pytest.mark.req("SEQ-TIM-1")
def test_windows_that_meet_only_because_a_clock_changes_are_found_to_do_so():
    """Six in the evening in New York is midnight in Berlin, but for some weeks of the year."""
    evening = Window(tuple(Span(day, 18 * 60, 18 * 60 + 30) for day in range(7)), ZONES[1])
    late = Window(tuple(Span(day, 23 * 60, 23 * 60 + 30) for day in range(7)), ZONES[0])
    assert next_opening([evening, late], NOW) == 1_773_007_200_000  # 2026-03-08T22:00Z
