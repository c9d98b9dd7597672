"""When a cron expression fires: strictly after, once per gap and fold, by its own fields."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.calendar import instant_of, local_of, parse_cron
from detent.calendar.zones import zone_names
from detent.model.errors import RequestError

BERLIN = "Europe/Berlin"
HOUR = 3_600_000


def at(*parts, zone=BERLIN):
    return instant_of(datetime(*parts), zone)


def test_a_fire_is_strictly_after_the_instant_asked_about():
    nine = parse_cron("0 9 * * *")
    assert nine.next(at(2026, 5, 22, 9) - 1, BERLIN) == at(2026, 5, 22, 9)
    assert nine.next(at(2026, 5, 22, 9), BERLIN) == at(2026, 5, 23, 9)
    assert nine.next(at(2026, 5, 22, 9) + 999, BERLIN) == at(2026, 5, 23, 9)


@pytest.mark.req("SEQ-TIM-3")
def test_the_wall_clock_of_the_zone_decides():
    nine = parse_cron("0 9 * * *")
    now = at(2026, 5, 22, 12)
    assert nine.next(now, "America/New_York") == at(2026, 5, 22, 9, zone="America/New_York")
    with pytest.raises(RequestError) as refused:
        nine.next(now, "Mars/Base")
    assert refused.value.code == "calendar.zone"


@pytest.mark.req("SEQ-TIM-3")
def test_a_time_in_a_gap_fires_once_at_its_end():
    end = at(2026, 3, 29, 3)
    assert parse_cron("30 2 * * *").upcoming(at(2026, 3, 28, 3), BERLIN, 2) == [
        end,
        at(2026, 3, 30, 2, 30),
    ]
    quarters = parse_cron("*/15 * * * *").upcoming(end - 20 * 60_000, BERLIN, 3)
    assert quarters == [end - 15 * 60_000, end, end + 15 * 60_000]


@pytest.mark.req("SEQ-TIM-3")
def test_an_ambiguous_time_fires_once_at_its_first_occurrence():
    first = at(2026, 10, 25, 2, 30)
    half_past = parse_cron("30 2 * * *")
    assert half_past.next(at(2026, 10, 25), BERLIN) == first
    for later in (first, first + HOUR - 1, first + HOUR, first + HOUR + 1):
        assert half_past.next(later, BERLIN) == at(2026, 10, 26, 2, 30)
    # Every time of the fold has fired in its first pass; in the second there is none.
    every_minute = parse_cron("* * * * *")
    assert every_minute.next(first, BERLIN) == first + 60_000
    for later in (first + HOUR // 2 - 1, first + HOUR // 2, first + HOUR):
        assert every_minute.next(later, BERLIN) == at(2026, 10, 25, 3)


def test_a_date_that_was_left_out_fires_at_the_start_of_the_next():
    zone = "Pacific/Apia"
    noon = parse_cron("0 12 * * *").upcoming(at(2011, 12, 29, 0, zone=zone), zone, 3)
    shown = [local_of(ms, zone) for ms in noon]
    assert shown == [datetime(2011, 12, 29, 12), datetime(2011, 12, 31), datetime(2011, 12, 31, 12)]


def test_years_that_are_over_never_fire_again():
    once = parse_cron("0 0 12 24 12 ? 2026,2027")
    assert len(once.upcoming(at(2026, 1, 1), BERLIN, 5)) == 2
    assert once.next(at(2028, 1, 1), BERLIN) is None
    assert once.upcoming(at(2028, 1, 1), BERLIN, 5) == []


def test_a_far_year_is_reached_and_instants_before_1970_are_no_obstacle():
    far = parse_cron("0 0 0 1 1 ? 2099")
    assert far.next(at(1, 6, 1, zone="UTC"), "UTC") == at(2099, 1, 1, zone="UTC")
    assert parse_cron("0 0 1 1 *").next(at(1901, 6, 1, zone="UTC"), "UTC") == at(
        1902, 1, 1, zone="UTC"
    )


@pytest.mark.parametrize("weekday", range(7))
def test_the_rarest_day_is_found_forty_years_ahead(weekday):
    # 29 February on one weekday, over the year 2100, which is no leap year.
    cron = parse_cron(f"0 0 * 2 {(weekday + 1) % 7}#5")
    after = date(2068, 3, 1)
    expected = next(
        day
        for day in (date(year, 2, 29) for year in range(2072, 2150, 4) if year != 2100)
        if day.weekday() == weekday
    )
    while expected < date(2100, 1, 1):
        after, expected = expected, later(expected)
    assert expected.year - after.year in (28, 40, 12)
    found = cron.next(at(after.year, 2, 29, zone="UTC"), "UTC")
    assert local_of(found, "UTC").date() == expected


def later(day):
    years = (year for year in range(day.year + 4, day.year + 60, 4) if year != 2100)
    return next(found for y in years if (found := date(y, 2, 29)).weekday() == day.weekday())


def test_at_the_end_of_the_calendar_there_is_no_next():
    assert parse_cron("0 0 1 1 *").next(at(9999, 6, 1, zone="UTC"), "UTC") is None


def test_no_fires_are_asked_for_and_none_come():
    assert parse_cron("* * * * *").upcoming(0, BERLIN, 0) == []
    assert parse_cron("* * * * *").upcoming(0, BERLIN, -1) == []


values = st.sets(st.integers(1, 28), min_size=1, max_size=4).map(sorted)
weekdays = st.sets(st.integers(0, 6), min_size=1, max_size=3).map(sorted)
day_of_month = st.one_of(st.none(), values)
day_of_week = st.one_of(st.none(), weekdays)


def listed(numbers):
    return "*" if numbers is None else ",".join(map(str, numbers))


@given(day_of_month, day_of_week, st.booleans(), st.integers(1970, 2099), st.integers(1, 12))
def test_the_days_of_a_month_are_those_of_a_plain_reading(of_month, of_week, last, year, month):
    text = listed(of_month) + (",L" if last and of_month else "")
    cron = parse_cron(f"0 0 {text} * {listed(of_week)}")
    length = monthrange(year, month)[1]
    expected = []
    for day in range(1, length + 1):
        by_month = of_month is None or day in of_month or (last and day == length)
        by_week = of_week is None or date(year, month, day).isoweekday() % 7 in of_week
        both_given = of_month is not None and of_week is not None
        if (by_month or by_week) if both_given else (by_month and by_week):
            expected.append(day)
    bits = cron.days.of(year, month)
    assert [day for day in range(40) if bits >> day & 1] == expected


zones = st.sampled_from(zone_names())
instants = st.integers(at(2000, 1, 1), at(2040, 1, 1))
small = st.sets(st.integers(0, 23), min_size=1, max_size=3).map(sorted)
crons = st.builds(
    lambda minutes, hours, of_month, of_week: parse_cron(
        f"{listed(minutes)} {listed(hours)} {listed(of_month)} * {listed(of_week)}"
    ),
    st.one_of(st.none(), small),
    st.one_of(st.none(), small),
    day_of_month,
    day_of_week,
)


@given(crons, instants, zones)
def test_a_fire_is_later_matches_and_is_the_first(cron, now, zone):
    fire = cron.next(now, zone)
    assert fire > now
    assert cron.next(fire - 1, zone) == fire
    assert cron.next((now + fire) // 2, zone) == fire
    local = local_of(fire, zone)
    in_gap = local_of(fire - 1, zone) < local - timedelta(seconds=1)
    assert in_gap or (cron.minutes >> local.minute & 1 and cron.hours >> local.hour & 1)
    assert in_gap or cron.days.of(local.year, local.month) >> local.day & 1


@given(crons, instants, st.integers(0, 9_000_000_000), zones)
def test_asked_later_the_next_fire_is_not_earlier(cron, now, wait, zone):
    assert cron.next(now, zone) <= cron.next(now + wait, zone)


@given(crons, instants, zones)
def test_upcoming_fires_rise_and_are_what_next_would_say_one_by_one(cron, now, zone):
    fires = cron.upcoming(now, zone, 5)
    assert fires == sorted(set(fires))
    assert [cron.next(before, zone) for before in [now, *fires[:-1]]] == fires
