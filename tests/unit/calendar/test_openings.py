"""When windows are open: alone and together, over midnight, holidays and changes of offset."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from detent.calendar import Span, Window, closing, instant_of, is_open, last_closing, next_opening
from detent.model.limits import CALENDAR_HORIZON_DAYS

BERLIN = "Europe/Berlin"
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def at(*parts, zone=BERLIN):
    return instant_of(datetime(*parts), zone)


def daily(start, end, zone=BERLIN, **options):
    return Window(tuple(Span(day, start, end) for day in range(7)), zone, **options)


OFFICE = Window(tuple(Span(day, 540, 1020) for day in range(5)), BERLIN)
NIGHT = daily(22 * 60, 30 * 60)


@pytest.mark.req("SEQ-TIM-1")
def test_a_window_is_open_from_its_start_and_no_longer_at_its_end():
    opens, closes = at(2026, 5, 22, 9), at(2026, 5, 22, 17)
    assert not is_open([OFFICE], opens - 1)
    assert is_open([OFFICE], opens)
    assert is_open([OFFICE], closes - 1)
    assert not is_open([OFFICE], closes)


@pytest.mark.req("SEQ-TIM-1")
def test_outside_the_next_opening_is_named_and_inside_it_is_now():
    assert next_opening([OFFICE], at(2026, 5, 22, 8)) == at(2026, 5, 22, 9)
    assert next_opening([OFFICE], at(2026, 5, 22, 12) + 7) == at(2026, 5, 22, 12) + 7
    assert next_opening([OFFICE], at(2026, 5, 22, 17)) == at(2026, 5, 25, 9)


@pytest.mark.req("SEQ-TIM-1")
def test_a_window_over_midnight_belongs_to_the_day_it_starts_on():
    friday_night = Window((Span(4, 22 * 60, 30 * 60),), BERLIN)
    assert is_open([friday_night], at(2026, 5, 23, 5, 59))
    assert not is_open([friday_night], at(2026, 5, 23, 6))
    assert not is_open([friday_night], at(2026, 5, 22, 3))
    assert next_opening([friday_night], at(2026, 5, 23, 6)) == at(2026, 5, 29, 22)


def test_a_holiday_closes_the_spans_that_start_on_it_and_no_others():
    night = daily(22 * 60, 30 * 60, holidays=frozenset({"2026-05-25"}))
    assert is_open([night], at(2026, 5, 25, 5))
    assert not is_open([night], at(2026, 5, 25, 23))
    assert not is_open([night], at(2026, 5, 26, 5))
    assert next_opening([night], at(2026, 5, 25, 6)) == at(2026, 5, 26, 22)


def test_windows_together_are_open_where_all_of_them_are():
    mornings = daily(6 * 60, 10 * 60)
    assert is_open([OFFICE, mornings], at(2026, 5, 22, 9, 30))
    assert not is_open([OFFICE, mornings], at(2026, 5, 22, 10))
    assert next_opening([OFFICE, mornings], at(2026, 5, 22, 10)) == at(2026, 5, 25, 9)
    assert closing([OFFICE, mornings], at(2026, 5, 22, 9)) == at(2026, 5, 22, 10)


def test_windows_of_different_zones_meet_in_instants():
    new_york = daily(9 * 60, 17 * 60, "America/New_York")
    meet = at(2026, 5, 22, 9, zone="America/New_York")
    assert next_opening([OFFICE, new_york], at(2026, 5, 22, 8)) == meet == at(2026, 5, 22, 15)
    assert closing([OFFICE, new_york], meet) == at(2026, 5, 22, 17)


def test_no_window_at_all_is_always_open():
    assert is_open([], 5)
    assert next_opening([], 5) == last_closing([], 5) == 5
    assert closing([], 5) is None


def test_closing_follows_spans_that_touch_or_overlap():
    split = Window((Span(0, 540, 720), Span(0, 720, 900), Span(0, 800, 1000)), BERLIN)
    assert closing([split], at(2026, 5, 25, 10)) == at(2026, 5, 25, 16, 40)
    assert closing([split], at(2026, 5, 25, 8)) is None


def test_what_never_closes_has_no_closing():
    whole = daily(0, 1440)
    assert is_open([whole], at(2026, 3, 29, 1, 59))
    assert closing([whole], at(2026, 3, 29, 1)) is None
    overlapping = Window((*whole.spans, Span(2, 60, 120)), BERLIN)
    assert closing([overlapping], at(2026, 3, 29, 1)) is None
    assert closing([whole, OFFICE], at(2026, 5, 22, 12)) == at(2026, 5, 22, 17)


def test_a_holiday_ends_what_is_open_day_and_night():
    whole = daily(0, 1440, holidays=frozenset({"2026-05-25"}))
    assert closing([whole], at(2026, 5, 1)) == at(2026, 5, 25)
    assert next_opening([whole], at(2026, 5, 25)) == at(2026, 5, 26)


def test_the_last_closing_is_now_while_open_and_else_the_end_of_what_was():
    assert last_closing([OFFICE], at(2026, 5, 22, 12)) == at(2026, 5, 22, 12)
    assert last_closing([OFFICE], at(2026, 5, 22, 17)) == at(2026, 5, 22, 17)
    assert last_closing([OFFICE], at(2026, 5, 24, 12)) == at(2026, 5, 22, 17)
    assert last_closing([OFFICE], at(2026, 5, 25, 9)) == at(2026, 5, 22, 17)
    assert last_closing([OFFICE], at(2026, 5, 25, 9) + 1) == at(2026, 5, 25, 9) + 1


def test_the_last_closing_looks_past_short_spans_to_longer_ones_of_the_day_before():
    mixed = Window((Span(0, 23 * 60, 47 * 60), Span(1, 8 * 60, 9 * 60)), BERLIN)
    assert last_closing([mixed], at(2026, 5, 27, 3)) == at(2026, 5, 26, 23)
    assert last_closing([mixed, OFFICE], at(2026, 5, 27, 3)) == at(2026, 5, 26, 17)


@pytest.mark.parametrize(
    ("gap", "opens", "closes"),
    [("next", (3, 0), (4, 0)), ("shift", (3, 30), (4, 0)), ("before", (1, 59, 59), (4, 0))],
)
def test_an_opening_inside_a_gap_follows_the_policy(gap, opens, closes):
    window = daily(150, 240, gap=gap)
    day = (2026, 3, 29)
    assert next_opening([window], at(*day)) == at(*day, *opens)
    assert closing([window], at(*day, *opens)) == at(*day, *closes)


@pytest.mark.parametrize(("gap", "minutes"), [("next", 0), ("before", 0), ("shift", 30)])
def test_a_window_inside_a_gap_is_closed_that_day_unless_it_is_shifted(gap, minutes):
    window = daily(135, 165, gap=gap)
    following = next_opening([window], at(2026, 3, 29))
    assert following == (at(2026, 3, 29, 3, 15) if minutes else at(2026, 3, 30, 2, 15))
    assert closing([window], following) == following + 30 * MINUTE


def test_a_window_inside_a_fold_opens_once_in_the_pass_that_the_policy_names():
    first, second = daily(135, 165), daily(135, 165, fold="second")
    opens = at(2026, 10, 25, 2, 15)
    assert next_opening([first], at(2026, 10, 25)) == opens
    assert closing([first], opens) == opens + 30 * MINUTE
    assert next_opening([first], opens + HOUR) == at(2026, 10, 26, 2, 15)
    assert next_opening([second], at(2026, 10, 25)) == opens + HOUR


def test_a_later_date_can_open_before_one_that_is_shifted():
    # Samoa had no Friday 30 December 2011: what opens at nine on it opens at nine on Saturday.
    zone = "Pacific/Apia"
    window = Window((Span(4, 540, 600), Span(5, 480, 500)), zone, gap="shift")
    saturday = (2011, 12, 31)
    assert next_opening([window], at(2011, 12, 29, zone=zone)) == at(*saturday, 8, zone=zone)
    assert next_opening([window], at(*saturday, 8, 20, zone=zone)) == at(*saturday, 9, zone=zone)


def test_a_window_around_a_fold_is_open_an_hour_longer():
    window = daily(60, 240)
    assert closing([window], at(2026, 10, 25, 1)) == at(2026, 10, 25, 1) + 4 * HOUR


def test_a_fold_over_midnight_does_not_hide_the_day_that_has_begun():
    # St John's 2010: at 00:01 on 7 November the clock went back to 23:01 of the day before.
    zone = "America/St_Johns"
    window = daily(0, 8 * 60, zone)
    opens = at(2010, 11, 7, zone=zone)
    assert closing([window], opens) == opens + 9 * HOUR
    assert all(is_open([window], opens + n * MINUTE) for n in range(9 * 60))


def test_an_opening_is_found_up_to_the_horizon_and_not_beyond():
    # Mondays only, and every Monday but the last is a holiday: it lies exactly on the horizon.
    last = datetime(2031, 5, 26)
    holidays = [last.date() - timedelta(weeks=week) for week in range(1, 300)]
    window = Window((Span(0, 0, 60),), "UTC", frozenset(map(date.isoformat, holidays)))
    opens = instant_of(last, "UTC")
    edge = opens - CALENDAR_HORIZON_DAYS * DAY
    assert next_opening([window], edge) == opens
    assert next_opening([window], edge - 1) is None
    assert next_opening([window], edge + 1) == opens


def test_a_closing_is_found_back_to_the_horizon_and_not_beyond():
    first = datetime(2026, 5, 25)
    holidays = [first.date() + timedelta(weeks=week) for week in range(1, 300)]
    window = Window((Span(0, 0, 60),), "UTC", frozenset(map(date.isoformat, holidays)))
    closes = instant_of(first, "UTC") + HOUR
    edge = closes + CALENDAR_HORIZON_DAYS * DAY
    assert last_closing([window], edge) == closes
    assert last_closing([window], edge + 1) is None
    assert last_closing([window], edge - 1) == closes


def test_windows_that_never_meet_have_no_opening_whenever_asked():
    early, late = daily(540, 600), daily(600, 660)
    for day in (1, 2, 3, 400):
        now = at(2026, 1, 1) + day * DAY
        assert next_opening([early, late], now) is None
        assert last_closing([early, late], now) is None
        assert not is_open([early, late], now)


@pytest.mark.parametrize("ms", [10**15, -(10**15), instant_of(datetime(9999, 12, 31), "UTC")])
def test_at_the_ends_of_the_calendar_nothing_breaks(ms):
    assert next_opening([OFFICE], ms) is None or ms < 0
    assert last_closing([OFFICE], ms) is None or ms > 0
    assert closing([OFFICE], ms) is None
