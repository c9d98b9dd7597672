"""The times of a schedule that have passed, against walking through all of them."""

from __future__ import annotations

import pytest

from detent.calendar import parse_cron
from detent.kernel.cron_times import NEXT, PASSED, computed
from detent.model import limits

DAY_MS = 86_400_000


def walked(text, zone, first, last):
    """Every time from the first one up to an instant."""
    times, found, at = parse_cron(text), [], first
    while at is not None and at <= last:
        found.append(at)
        at = times.next(at, zone)
    return found


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("*/7 * * * *", 60),
        ("*/5 9-17 * * MON-FRI", 200),
        ("* 3 * * *", 100),
        ("0 0 29 2 *", 4_000),
        ("*/2 * 1 1 *", 800),
    ],
)
@pytest.mark.parametrize("resolution_ms", [100, 60_000])
def test_the_latest_times_are_those_that_a_walk_finds(text, zone, days, resolution_ms):
    start = 1_767_225_600_000
    first = parse_cron(text).next(start, zone)
    now = start + days * DAY_MS + 12_345
    since = now - resolution_ms
    fact = computed(PASSED, f"{first}:{since}:{now}:{zone}:{text}")
    missed = walked(text, zone, first, since)
    assert fact["missed"] == missed[-limits.CRON_MISSED_MOST :]
    assert fact["count"] == min(len(missed), limits.CRON_COUNTED)
    assert fact["on_time"] == [at for at in walked(text, zone, first, now) if at > since]
    assert fact["zone"] == zone


def test_times_of_one_tick_are_all_on_time():
    fact = computed(PASSED, "20000:0:60000:UTC:*/20 * * * * *")
    assert (fact["on_time"], fact["missed"]) == ([20_000, 40_000, 60_000], [])


def test_the_edge_between_missed_and_on_time():
    fact = computed(PASSED, "3600000:3600000:3600100:UTC:0 * * * *")
    assert (fact["on_time"], fact["missed"], fact["count"]) == ([], [3_600_000], 1)
    fact = computed(PASSED, "3600000:3599999:3600099:UTC:0 * * * *")
    assert (fact["on_time"], fact["missed"], fact["count"]) == ([3_600_000], [], 0)


def test_the_next_time_may_be_none():
    assert computed(NEXT, "0:UTC:0 0 0 1 1 ? 1970")["ms"] is None
    assert computed(NEXT, "-1:UTC:0 0 0 1 1 ? 1970")["ms"] == 0
