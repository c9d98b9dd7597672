"""Business days, and jitter that stays within one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.calendar import business_instant, instant_of, is_business_day, jittered, local_of
from detent.calendar.zones import zone_names
from detent.model.errors import RequestError

BERLIN = "Europe/Berlin"
NONE = frozenset()
HOUR = 3_600_000
DAY = 24 * HOUR


def at(*parts, zone=BERLIN):
    return instant_of(datetime(*parts), zone)


@pytest.mark.req("SEQ-TIM-2")
def test_monday_to_friday_are_business_days_but_for_holidays():
    friday, saturday, sunday = at(2026, 5, 22, 9), at(2026, 5, 23, 9), at(2026, 5, 24, 9)
    assert is_business_day(friday, BERLIN, NONE)
    assert not is_business_day(friday, BERLIN, frozenset({"2026-05-22"}))
    assert not is_business_day(saturday, BERLIN, NONE)
    assert not is_business_day(sunday, BERLIN, NONE)


def test_the_local_date_decides():
    # Friday 23:00 in New York is Saturday in Berlin.
    late = at(2026, 5, 22, 23, zone="America/New_York")
    assert is_business_day(late, "America/New_York", NONE)
    assert not is_business_day(late, BERLIN, NONE)


@pytest.mark.req("SEQ-TIM-2")
def test_an_instant_off_a_business_day_moves_to_the_same_wall_time_of_the_next_one():
    friday, saturday = at(2026, 5, 22, 9, 30), at(2026, 5, 23, 9, 30)
    assert business_instant(friday, BERLIN, NONE) == friday
    assert business_instant(saturday, BERLIN, NONE) == at(2026, 5, 25, 9, 30)
    whit_monday = frozenset({"2026-05-25"})
    assert business_instant(saturday, BERLIN, whit_monday) == at(2026, 5, 26, 9, 30)


def test_six_holidays_in_a_row_are_all_passed_over():
    holidays = frozenset(f"2026-06-{day:02d}" for day in range(1, 7))
    assert business_instant(at(2026, 6, 1, 9), BERLIN, holidays) == at(2026, 6, 8, 9)


def test_the_wall_time_stays_over_a_change_of_offset():
    # The clock changes on Sunday 29 March: the same wall time is 47 hours away.
    saturday = at(2026, 3, 28, 9)
    assert business_instant(saturday, BERLIN, NONE) == at(2026, 3, 30, 9) == saturday + 47 * HOUR


def test_a_wall_time_in_a_gap_follows_the_policy_but_never_off_the_business_day():
    # Cairo 2026: Friday 24 April has no time from 00:00 to 01:00; Thursday is made a holiday.
    zone, thursday = "Africa/Cairo", frozenset({"2026-04-23"})
    asked = at(2026, 4, 23, 0, 30, zone=zone)
    end = at(2026, 4, 24, 1, zone=zone)
    assert business_instant(asked, zone, thursday, "next") == end
    assert business_instant(asked, zone, thursday, "shift") == end + HOUR // 2
    assert business_instant(asked, zone, thursday, "before") == end


def test_a_date_that_was_left_out_is_no_business_day():
    # Samoa had no Friday 30 December 2011.
    zone, thursday = "Pacific/Apia", frozenset({"2011-12-29"})
    asked = at(2011, 12, 29, 9, zone=zone)
    assert business_instant(asked, zone, thursday) == at(2012, 1, 2, 9, zone=zone)


@pytest.mark.parametrize("text", ["2026-02-30", "20260101", "2026-W01-1", "2026-1-1", "", "soon"])
def test_a_holiday_that_is_no_date_is_refused(text):
    with pytest.raises(RequestError, match="YYYY-MM-DD") as refused:
        is_business_day(0, BERLIN, frozenset({text}))
    assert refused.value.code == "calendar.date"


def test_the_end_of_the_calendar_is_said_and_not_run_over():
    last_days = frozenset({"9999-12-31", "9999-12-30"})
    with pytest.raises(RequestError) as refused:
        business_instant(at(9999, 12, 30, 9, zone="UTC"), "UTC", last_days)
    assert refused.value.code == "calendar.date"


@pytest.mark.req("SEQ-TIM-2")
def test_jitter_without_business_days_just_moves():
    noon = at(2026, 5, 22, 12)
    assert jittered(noon, 90 * HOUR, BERLIN) == noon + 90 * HOUR
    assert jittered(noon, -7, BERLIN, None) == noon - 7


def test_jitter_on_a_business_day_stays_within_it():
    late = at(2026, 5, 22, 23)
    assert jittered(late, HOUR - 1, BERLIN, NONE) == late + HOUR - 1
    assert jittered(late, HOUR, BERLIN, NONE) == late + HOUR - 1
    assert jittered(late, -23 * HOUR, BERLIN, NONE) == at(2026, 5, 22)
    assert jittered(late, -23 * HOUR - 1, BERLIN, NONE) == at(2026, 5, 22)
    assert jittered(late, 0, BERLIN, NONE) == late


def test_jitter_knows_days_that_begin_in_a_gap():
    # Cairo 2026: Friday 24 April begins at 01:00.
    zone = "Africa/Cairo"
    first = at(2026, 4, 24, 1, zone=zone)
    assert jittered(first + HOUR, -5 * HOUR, zone, NONE) == first
    assert jittered(first - HOUR, 5 * HOUR, zone, NONE) == first - 1


zones = st.sampled_from(zone_names())
instants = st.integers(at(2000, 1, 1), at(2040, 1, 1))


@given(instants, st.integers(-2 * DAY, 2 * DAY), zones)
def test_jitter_keeps_the_local_date_and_never_goes_further_than_its_offset(ms, offset, zone):
    moved = jittered(ms, offset, zone, NONE)
    assert local_of(moved, zone).date() == local_of(ms, zone).date()
    assert min(ms, ms + offset) <= moved <= max(ms, ms + offset)


@given(instants, zones, st.sets(st.integers(0, 9)))
def test_a_moved_instant_is_on_a_business_day_later_and_stays_there(ms, zone, days):
    today = local_of(ms, zone).date()
    holidays = frozenset((today + timedelta(days=n)).isoformat() for n in days)
    moved = business_instant(ms, zone, holidays)
    assert moved >= ms
    assert is_business_day(moved, zone, holidays)
    assert business_instant(moved, zone, holidays) == moved
    assert (moved == ms) == is_business_day(ms, zone, holidays)
