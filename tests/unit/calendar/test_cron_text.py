"""Cron expressions as they are written: what each sign means, and what is refused."""

from __future__ import annotations

from datetime import datetime

import pytest

from detent.calendar import instant_of, local_of, parse_cron
from detent.model.errors import RequestError
from detent.model.limits import CRON_CHARS


def fires(text, count=3, after=(2026, 1, 1), zone="UTC"):
    """The next local times as text, after the first instant of 2026, a Thursday."""
    found = parse_cron(text).upcoming(instant_of(datetime(*after), zone), zone, count)
    return [f"{local_of(ms, zone):%Y-%m-%d %H:%M:%S}" for ms in found]


def days(text, count=3):
    return [fire[5:10] for fire in fires(text, count)]


@pytest.mark.req("SEQ-TIM-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 9 * * *", "2026-01-01 09:30:00"),
        ("15 30 9 * * *", "2026-01-01 09:30:15"),
        ("15 30 9 1 1 * 2028", "2028-01-01 09:30:15"),
        ("0 0 9 * * MON-FRI *", "2026-01-01 09:00:00"),
        ("* * * * *", "2026-01-01 00:01:00"),
        ("* * * * * *", "2026-01-01 00:00:01"),
        ("  30   9 * * * ", "2026-01-01 09:30:00"),
    ],
)
def test_five_six_and_seven_fields_are_read(text, expected):
    assert fires(text, 1) == [expected]
    assert parse_cron(text).text == text


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("0 1,5,9 * * *", [1, 5, 9]),
        ("0 6-8 * * *", [6, 7, 8]),
        ("0 */8 * * *", [8, 16, 0]),
        ("0 5-20/6 * * *", [5, 11, 17]),
        ("0 20/2 * * *", [20, 22, 20]),
        ("0 1-2,22-23/1 * * *", [1, 2, 22]),
        ("0 7,07 * * *", [7, 7, 7]),
    ],
)
def test_lists_ranges_and_steps_are_read(text, hours):
    assert [int(fire[11:13]) for fire in fires(text)] == hours


@pytest.mark.parametrize("sunday", ["0", "7", "SUN", "sun", "Sun"])
def test_sunday_has_two_numbers_and_a_name(sunday):
    assert days(f"0 0 * * {sunday}", 2) == ["01-04", "01-11"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 * * MON", ["01-05", "01-12", "01-19"]),
        ("0 0 * * fri-sun", ["01-02", "01-03", "01-04"]),
        ("0 0 * * 5-7", ["01-02", "01-03", "01-04"]),
        ("0 0 * * 6,SUN", ["01-03", "01-04", "01-10"]),
        ("0 0 * * 1/3", ["01-04", "01-05", "01-08"]),
        ("0 0 1 FEB,apr *", ["02-01", "04-01", "02-01"]),
        ("0 0 1 JAN-MAR/2 *", ["03-01", "01-01", "03-01"]),
        ("0 0 ? * TUE", ["01-06", "01-13", "01-20"]),
        ("0 0 13 * ?", ["01-13", "02-13", "03-13"]),
    ],
)
def test_names_of_months_and_weekdays_are_read(text, expected):
    assert days(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 L * *", ["01-31", "02-28", "03-31"]),
        ("0 0 1,L * *", ["01-31", "02-01", "02-28"]),
        ("0 0 * * FRIL", ["01-30", "02-27", "03-27"]),
        ("0 0 * * 5L", ["01-30", "02-27", "03-27"]),
        ("0 0 * * FRI#2", ["01-09", "02-13", "03-13"]),
        ("0 0 * * 7#1,WED#5", ["01-04", "02-01", "03-01"]),
        ("0 0 * * MON#5", ["03-30", "06-29", "08-31"]),
    ],
)
def test_last_days_and_numbered_weekdays_are_read(text, expected):
    assert days(text) == expected


def test_two_restricted_day_fields_match_either_and_a_star_makes_both_needed():
    assert days("0 0 13 * FRI", 4) == ["01-02", "01-09", "01-13", "01-16"]
    assert days("0 0 */2 * FRI", 2) == ["01-09", "01-23"]
    assert days("0 0 L * SUN", 5) == ["01-04", "01-11", "01-18", "01-25", "01-31"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * 32 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * FOO *", "month"),
        ("* * * * 8", "day of week"),
        ("* * * * FUN", "day of week"),
        ("* * * * L", "day of week"),
        ("* * * * FRI#0", "day of week"),
        ("* * * * FRI#6", "day of week"),
        ("* * * * ABCL", "day of week"),
        ("* * 15W * *", "day of month"),
        ("* * LW * *", "day of month"),
        ("60 * * * * *", "second"),
        ("* * * * * * 1969", "year"),
        ("* * * * * * 2100", "year"),
        ("? * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/60 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("* 22-4 * * *", "hour"),
        ("* * * * FRI-TUE", "day of week"),
        ("-1 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("1.5 * * * *", "minute"),
        ("*-5 * * * *", "minute"),
        ("٣ * * * *", "minute"),
        ("00001 * * * *", "minute"),
        ("* * * * \u017fun", "day of week"),
        ("* * * * \u017fUN#1", "day of week"),
    ],
)
def test_a_wrong_field_is_named(text, field):
    with pytest.raises(RequestError, match=f"the {field} of a cron expression must be") as refused:
        parse_cron(text)
    assert refused.value.code == "calendar.cron"
    assert refused.value.details == {"field": field}


@pytest.mark.parametrize("text", ["", "*", "* * * *", "* * * * * * * *", "@daily"])
def test_a_wrong_number_of_fields_is_refused(text):
    with pytest.raises(RequestError, match="5 fields, 6 with seconds first") as refused:
        parse_cron(text)
    assert refused.value.code == "calendar.cron"


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 0 29 2 ? 2027", "0 0 0 ? 2 MON#5 2026-2039"]
)
def test_what_no_date_can_match_is_refused(text):
    with pytest.raises(RequestError, match="never do") as refused:
        parse_cron(text)
    assert refused.value.code == "calendar.cron"


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2,12 *", "0 0 30 2 MON"])
def test_what_some_date_can_match_is_not(text):
    assert fires(text, 1)


def test_the_length_has_a_limit_and_other_values_are_refused():
    assert parse_cron("* * * * *".ljust(CRON_CHARS))
    for text in ("* * * * *".ljust(CRON_CHARS + 1), None, 5):
        with pytest.raises(RequestError, match=f"at most {CRON_CHARS}") as refused:
            parse_cron(text)
        assert refused.value.code == "calendar.cron"
