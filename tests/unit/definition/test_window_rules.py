"""Every rule for send windows: what is just allowed, and what is just not."""

from __future__ import annotations

import pytest

from detent.model.limits import SEND_WINDOWS, WINDOW_SPANS
from tests.unit.definition.samples import a_sequence, a_step, check_rule, faults_of, message_of


def within(**options):
    return a_step(send_window=options)


def open_on(**hours):
    return a_step(send_window={"hours": hours})


SPANS = [f"{n // 2:02}:{n % 2 * 30:02}-{n // 2:02}:{n % 2 * 30 + 29:02}" for n in range(48)]

# a block that is allowed, one that is not, the fault's place below it, its code, its HTTP status
WINDOWS = {
    "a window is an object": (within(), a_step(send_window="9-17"), "send_window", "type", 422),
    "a list has a window": (
        a_step(send_window=[{}]),
        a_step(send_window=[]),
        "send_window",
        "empty",
        400,
    ),
    "a list has few windows": (
        a_step(send_window=[{}] * SEND_WINDOWS),
        a_step(send_window=[{}] * (SEND_WINDOWS + 1)),
        "send_window",
        "size",
        400,
    ),
    "each window of a list is one": (
        a_step(send_window=[{}, {"start_hour": 8}]),
        a_step(send_window=[{}, {"start_hour": 17}]),
        "send_window[1].end_hour",
        "range",
        400,
    ),
    "an hour begins in the day": (
        within(start_hour=23),
        within(start_hour=24),
        "send_window.start_hour",
        "range",
        400,
    ),
    "an hour ends in the day": (
        within(end_hour=0),
        within(end_hour=-1),
        "send_window.end_hour",
        "range",
        400,
    ),
    "whole hours differ": (
        within(start_hour=16),
        within(start_hour=17),
        "send_window.end_hour",
        "range",
        400,
    ),
    "a day is one of the week": (
        within(days=[0, 6]),
        within(days=[0, 7]),
        "send_window.days[1]",
        "range",
        400,
    ),
    "a time has hours and minutes": (
        within(start="09:30", end="17:15"),
        within(start="9:30", end="17:15"),
        "send_window.start",
        "date",
        400,
    ),
    "a window begins before midnight": (
        within(start="23:59", end="06:00"),
        within(start="24:00", end="06:00"),
        "send_window.start",
        "date",
        400,
    ),
    "a window ends at midnight at the latest": (
        within(start="00:00", end="24:00"),
        within(start="00:00", end="24:01"),
        "send_window.end",
        "date",
        400,
    ),
    "a minute is one of sixty": (
        within(start="09:00", end="09:59"),
        within(start="09:00", end="09:60"),
        "send_window.end",
        "date",
        400,
    ),
    "a time is text": (
        within(start="09:00", end="17:00"),
        within(start=900, end="17:00"),
        "send_window.start",
        "type",
        422,
    ),
    "a start has its end": (
        within(start="09:00", end="17:00"),
        within(start="09:00"),
        "send_window.end",
        "missing",
        422,
    ),
    "an end has its start": (
        within(start="09:00", end="17:00"),
        within(end="17:00"),
        "send_window.start",
        "missing",
        422,
    ),
    "start and end differ": (
        within(start="09:00", end="09:01"),
        within(start="09:00", end="09:00"),
        "send_window.end",
        "range",
        400,
    ),
    "times stand without whole hours": (
        within(start="09:00", end="17:00", days=[0]),
        within(start="09:00", end="17:00", end_hour=17),
        "send_window.end_hour",
        "exclusive",
        400,
    ),
    "hours of weekdays stand alone": (
        open_on(mon=["09:00-17:00"]),
        within(hours={"mon": ["09:00-17:00"]}, days=[0]),
        "send_window.days",
        "exclusive",
        400,
    ),
    "hours of weekdays stand without times": (
        open_on(mon=["09:00-17:00"]),
        within(hours={"mon": ["09:00-17:00"]}, start_hour=9),
        "send_window.start_hour",
        "exclusive",
        400,
    ),
    "a weekday has its short name": (
        open_on(sun=["09:00-17:00"]),
        open_on(sun=["09:00-17:00"], sunday=["09:00-17:00"]),
        "send_window.hours.sunday",
        "choice",
        422,
    ),
    "hours are given by weekday": (
        open_on(mon=["09:00-17:00"]),
        within(hours=["09:00-17:00"]),
        "send_window.hours",
        "type",
        422,
    ),
    "some weekday is open": (
        open_on(mon=[], tue=["09:00-17:00"]),
        open_on(mon=[], tue=[]),
        "send_window.hours",
        "empty",
        400,
    ),
    "a weekday has a list of spans": (
        open_on(mon=["09:00-12:00", "13:00-17:00"]),
        open_on(mon="09:00-17:00"),
        "send_window.hours.mon",
        "type",
        422,
    ),
    "a weekday has few spans": (
        open_on(mon=SPANS[:WINDOW_SPANS]),
        open_on(mon=[*SPANS[:WINDOW_SPANS], "23:59-24:00"]),
        "send_window.hours.mon",
        "size",
        400,
    ),
    "a span has two times": (
        open_on(fri=["22:00-02:00"]),
        open_on(fri=["22:00-02:00", "22:00"]),
        "send_window.hours.fri[1]",
        "date",
        400,
    ),
    "a span is written in one way": (
        open_on(fri=["09:00-24:00"]),
        open_on(fri=["09:00 - 24:00"]),
        "send_window.hours.fri[0]",
        "date",
        400,
    ),
    "the ends of a span differ": (
        open_on(fri=["09:00-09:01"]),
        open_on(fri=["09:00-09:00"]),
        "send_window.hours.fri[0]",
        "range",
        400,
    ),
    "the zone of a window is known": (
        within(timezone="Asia/Kathmandu"),
        within(timezone="Asia/Atlantis"),
        "send_window.timezone",
        "timezone",
        400,
    ),
    "a holiday of a window exists": (
        within(holidays=["2026-12-25"]),
        within(holidays=["2026-12-32"]),
        "send_window.holidays[0]",
        "date",
        400,
    ),
    "the country of a window is known": (
        within(),
        within(country="XX"),
        "send_window.country",
        "country",
        400,
    ),
    "a gap of a window is left in one of three ways": (
        within(gap="before"),
        within(gap="after"),
        "send_window.gap",
        "choice",
        422,
    ),
    "a fold of a window is taken in one of two ways": (
        within(fold="first"),
        within(fold=2),
        "send_window.fold",
        "type",
        422,
    ),
    "nothing is late by less than nothing": (
        within(send_late_within=0),
        within(send_late_within=-1),
        "send_window.send_late_within",
        "duration",
        422,
    ),
}


@pytest.mark.req("SEQ-TIM-1")
@pytest.mark.parametrize("rule", WINDOWS)
def test_for_windows_the_rule_holds_that(rule):
    check_rule(WINDOWS[rule])


def test_a_weekday_in_full_is_named_with_its_short_name():
    raw = a_sequence(open_on(mon=["09:00-17:00"], tues=["09:00-17:00"]))
    assert 'did you mean "tue"?' in message_of(raw)


def test_a_window_that_never_opens_is_told_how_a_whole_day_is_written():
    assert "24:00" in message_of(a_sequence(within(start="00:00", end="00:00")))


def test_every_fault_of_several_windows_is_named_at_once():
    windows = [
        {"start_hour": 24, "days": [9]},
        {"start": "8", "timezone": "nowhere"},
        {"hours": {"mon": ["8-9"]}, "start": "09:00"},
    ]
    assert faults_of(a_sequence(a_step(send_window=windows))) == [
        ("blocks[0].send_window[0].days[0]", "definition.range"),
        ("blocks[0].send_window[0].start_hour", "definition.range"),
        ("blocks[0].send_window[1].end", "definition.missing"),
        ("blocks[0].send_window[1].start", "definition.date"),
        ("blocks[0].send_window[1].timezone", "definition.timezone"),
        ("blocks[0].send_window[2].hours.mon[0]", "definition.date"),
        ("blocks[0].send_window[2].start", "definition.exclusive"),
    ]


def test_a_faulty_value_inside_hours_is_reported_once():
    raw = a_sequence(open_on(mon=float("nan"), tue=["09:00-17:00"]))
    assert faults_of(raw) == [("blocks[0].send_window.hours.mon", "definition.number")]
