"""Instants and spans as people read them."""

from __future__ import annotations

import pytest

from detent.cli.times import from_iso, instant, local, relative, span

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (90_000, "1 min 30 s"),
        (HOUR, "1 h"),
        (HOUR + 30 * 60_000, "1 h 30 min"),
        (12 * HOUR + 30 * 60_000, "12 h"),
        (3 * 24 * HOUR + 5 * HOUR, "3 d 5 h"),
        (365 * 24 * HOUR, "1 year"),
        (2 * 365 * 24 * HOUR, "2 years"),
    ],
)
def test_a_span_is_told_in_its_largest_units(ms, text):
    assert span(ms) == text


def test_the_distance_from_now_says_its_direction():
    assert relative(3 * HOUR, 0) == "in 3 h"
    assert relative(0, 3 * HOUR) == "3 h ago"
    assert relative(500, 0) == "now"


def test_an_instant_is_local_iso_time_that_reads_back_as_the_same_moment():
    moment = 1_767_225_600_000
    assert from_iso(local(moment)) == moment
    assert instant(moment, moment - HOUR) == f"{local(moment)} (in 1 h)"
    assert instant(None, 0) == ""
