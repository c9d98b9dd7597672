"""Local times become instants, with a stated answer in gaps and folds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.calendar import instant_of, local_of
from detent.calendar.zones import zone_names
from detent.model.errors import RequestError

BERLIN = "Europe/Berlin"
GAP = datetime(2026, 3, 29, 2, 30)
FOLD = datetime(2026, 10, 25, 2, 30)


def utc(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


def test_a_plain_local_time_has_one_instant():
    assert instant_of(datetime(2026, 7, 1, 9), BERLIN) == utc(2026, 7, 1, 7)
    assert instant_of(datetime(2026, 1, 1, 9), BERLIN) == utc(2026, 1, 1, 8)
    assert local_of(utc(2026, 7, 1, 7), BERLIN) == datetime(2026, 7, 1, 9)


@pytest.mark.req("SEQ-TIM-2")
def test_in_a_gap_the_policy_says_which_instant_is_meant():
    end = utc(2026, 3, 29, 1)
    assert instant_of(GAP, BERLIN) == end
    assert instant_of(GAP, BERLIN, "next") == end
    assert instant_of(GAP, BERLIN, "shift") == end + 30 * 60_000
    assert instant_of(GAP, BERLIN, "before") == end - 1_000
    assert local_of(end - 1_000, BERLIN) == datetime(2026, 3, 29, 1, 59, 59)
    assert local_of(end + 30 * 60_000, BERLIN) == datetime(2026, 3, 29, 3, 30)


@pytest.mark.req("SEQ-TIM-2")
def test_in_a_fold_the_policy_says_which_occurrence_is_meant():
    first = utc(2026, 10, 25, 0, 30)
    assert instant_of(FOLD, BERLIN) == first
    assert instant_of(FOLD, BERLIN, fold="second") == first + 3_600_000
    assert local_of(first, BERLIN) == local_of(first + 3_600_000, BERLIN) == FOLD


def test_the_edges_of_a_gap_and_of_a_fold_are_plain_times_but_for_the_first_of_each():
    before, after = datetime(2026, 3, 29, 1, 59, 59), datetime(2026, 3, 29, 3)
    for gap in ("next", "shift", "before"):
        assert instant_of(before, BERLIN, gap) == utc(2026, 3, 29, 0, 59, 59)
        assert instant_of(after, BERLIN, gap) == utc(2026, 3, 29, 1)
    start, end = datetime(2026, 10, 25, 2), datetime(2026, 10, 25, 3)
    assert instant_of(start, BERLIN, fold="second") - instant_of(start, BERLIN) == 3_600_000
    assert instant_of(end, BERLIN, fold="second") == instant_of(end, BERLIN)


def test_a_date_that_a_zone_left_out_is_one_long_gap():
    # Samoa went over the date line and had no 30 December 2011.
    noon = datetime(2011, 12, 30, 12)
    assert local_of(instant_of(noon, "Pacific/Apia"), "Pacific/Apia") == datetime(2011, 12, 31)
    shifted = instant_of(noon, "Pacific/Apia", "shift")
    assert local_of(shifted, "Pacific/Apia") == datetime(2011, 12, 31, 12)
    before = instant_of(noon, "Pacific/Apia", "before")
    assert local_of(before, "Pacific/Apia") == datetime(2011, 12, 29, 23, 59, 59)


def test_half_an_hour_of_summer_time_and_rules_beyond_the_listed_years_hold():
    howe = "Australia/Lord_Howe"
    gap = datetime(2026, 10, 4, 2, 15)
    assert local_of(instant_of(gap, howe, "shift"), howe) == datetime(2026, 10, 4, 2, 45)
    assert instant_of(datetime(2095, 7, 1, 9), BERLIN) == utc(2095, 7, 1, 7)


def test_milliseconds_are_kept_and_smaller_parts_are_cut():
    local = datetime(2026, 7, 1, 9, 0, 0, 123_999)
    assert instant_of(local, BERLIN) == utc(2026, 7, 1, 7) + 123
    assert local_of(utc(2026, 7, 1, 7) + 123, BERLIN) == datetime(2026, 7, 1, 9, 0, 0, 123_000)
    assert local_of(-1, "UTC") == datetime(1969, 12, 31, 23, 59, 59, 999_000)
    assert instant_of(datetime(1969, 12, 31, 23, 59, 59, 999_000), "UTC") == -1


def test_a_time_with_an_offset_and_an_unknown_policy_are_refused():
    with pytest.raises(RequestError, match="without an offset") as refused:
        instant_of(datetime(2026, 1, 1, tzinfo=UTC), BERLIN)
    assert refused.value.code == "calendar.date"
    with pytest.raises(RequestError, match="gap must be next or shift or before, found 'skip'"):
        instant_of(GAP, BERLIN, "skip")
    with pytest.raises(RequestError, match="fold must be first or second, found 'both'"):
        instant_of(GAP, BERLIN, "next", "both")


def test_the_mark_of_a_second_occurrence_on_the_value_itself_says_nothing():
    assert instant_of(FOLD.replace(fold=1), BERLIN) == instant_of(FOLD, BERLIN)


@pytest.mark.parametrize("ms", [10**15, -(10**15), 10**30])
def test_an_instant_outside_the_calendar_is_refused(ms):
    with pytest.raises(RequestError, match="years 1 to 9999") as refused:
        local_of(ms, BERLIN)
    assert refused.value.code == "calendar.date"


zones = st.sampled_from(zone_names())
instants = st.integers(utc(1971, 1, 1), utc(2100, 1, 1))
locals_ = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)


@given(instants, zones)
def test_the_local_time_of_an_instant_leads_back_to_it(ms, zone):
    local = local_of(ms, zone)
    found = [instant_of(local, zone, "next", fold) for fold in ("first", "second")]
    assert ms in found
    assert found[0] <= found[1]


@given(locals_, zones)
def test_the_instant_of_a_local_time_shows_it_or_the_time_is_in_a_gap(local, zone):
    at = instant_of(local, zone)
    shown = local_of(at, zone)
    if shown != local:
        assert shown > local > local_of(at - 1, zone)
        assert local_of(instant_of(local, zone, "before"), zone) < local
        assert local_of(instant_of(local, zone, "shift"), zone) > local


@given(locals_, st.integers(0, 7_200), zones, st.sampled_from(["first", "second"]))
def test_a_later_local_time_is_never_an_earlier_instant(local, seconds, zone, fold):
    later = local + timedelta(seconds=seconds)
    assert instant_of(local, zone, "next", fold) <= instant_of(later, zone, "next", fold)
