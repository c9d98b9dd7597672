"""Whether a step may act now: windows in local time, several at once, and the misfire policy."""

from __future__ import annotations

import pytest

from detent.calendar import tzdata_version
from detent.kernel.failure import Failure
from tests.unit.kernel.moments import DAY_MS, HOUR_MS, MINUTE_MS, Moment, ms_of, text_of

NEW_YORK = "America/New_York"
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def at(now, window, zone="UTC", **more):
    return Moment(now, zone=zone, send_window=window, **more)


# local time on a Wednesday -> None (it may act) or when the next window opens
NINE_TO_FIVE = {
    "2026-03-04T08:59:59": "2026-03-04T09:00:00",
    "2026-03-04T09:00:00": None,
    "2026-03-04T16:59:59": None,
    "2026-03-04T17:00:00": "2026-03-05T09:00:00",
    "2026-03-04T23:59:59": "2026-03-05T09:00:00",
}


@pytest.mark.req("SEQ-TIM-1")
@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "Asia/Kathmandu", "Pacific/Kiritimati"])
@pytest.mark.parametrize("now", NINE_TO_FIVE)
def test_the_hours_of_the_contract_are_in_the_zone_of_the_instance_and_half_open(now, zone):
    moment = at(now, {}, zone)
    opening = moment.window()

    assert (None if opening is None else text_of(opening, zone)) == NINE_TO_FIVE[now]


def test_the_opening_is_at_minute_zero_and_the_step_may_act_then():
    moment = at("2026-03-04T03:17:23", {"start_hour": 8, "end_hour": 9}, NEW_YORK)
    opening = moment.window()

    assert text_of(opening, NEW_YORK) == "2026-03-04T08:00:00"
    assert moment.at(opening - 100).window() == opening
    assert moment.at(opening).window() is None


NIGHT = {"start": "22:30", "end": "06:15", "days": [4]}  # Friday night
NIGHTS = {
    "2026-03-06T05:00:00": "2026-03-06T22:30:00",
    "2026-03-06T22:29:59": "2026-03-06T22:30:00",
    "2026-03-06T22:30:00": None,
    "2026-03-07T06:14:59": None,
    "2026-03-07T06:15:00": "2026-03-13T22:30:00",
    "2026-03-07T22:30:00": "2026-03-13T22:30:00",
}


@pytest.mark.req("SEQ-TIM-1")
@pytest.mark.parametrize("now", NIGHTS)
def test_a_window_over_midnight_belongs_to_the_day_it_begins_on(now):
    opening = at(now, NIGHT).window()

    assert (None if opening is None else text_of(opening)) == NIGHTS[now]


def test_whole_hours_whose_end_is_before_their_start_wrap_midnight():
    window = {"start_hour": 22, "end_hour": 6}

    assert at("2026-03-04T05:59:59", window).window() is None
    assert at("2026-03-04T06:00:00", window).window_text() == "2026-03-04T22:00:00"


HOURS = {"hours": {"mon": ["09:00-12:00", "13:00-17:00"], "sat": ["22:00-02:00"]}}
PER_DAY = {
    "2026-03-02T11:59:59": None,
    "2026-03-02T12:00:00": "2026-03-02T13:00:00",
    "2026-03-02T17:00:00": "2026-03-07T22:00:00",
    "2026-03-08T01:59:59": None,
    "2026-03-08T02:00:00": "2026-03-09T09:00:00",
}


@pytest.mark.req("SEQ-TIM-1")
@pytest.mark.parametrize("now", PER_DAY)
def test_each_weekday_has_its_own_hours(now):
    opening = at(now, HOURS).window()

    assert (None if opening is None else text_of(opening)) == PER_DAY[now]


def test_a_whole_day_ends_at_midnight():
    whole = {"hours": {day: ["00:00-24:00"] for day in WEEK[:5]}}

    assert at("2026-03-06T23:59:59", whole).window() is None
    assert at("2026-03-07T00:00:00", whole).window_text() == "2026-03-09T00:00:00"


@pytest.mark.req("SEQ-TIM-1")
def test_the_windows_own_zone_goes_before_that_of_the_instance():
    window = {"timezone": "Asia/Tokyo"}
    moment = at("2026-03-04T10:00:00", window)

    assert moment.window() == ms_of("2026-03-05T09:00:00", "Asia/Tokyo")
    assert at("2026-03-04T02:00:00", window).window() is None


@pytest.mark.req("SEQ-TIM-1")
def test_of_several_windows_all_must_be_open():
    both = [{"timezone": NEW_YORK}, {"timezone": "Europe/Paris"}]

    assert at("2026-03-04T13:59:59", both).window_text() == "2026-03-04T14:00:00"
    assert at("2026-03-04T14:00:00", both).window() is None
    assert at("2026-03-04T15:59:59", both).window() is None
    # between the two changes of the clocks they are one hour nearer
    assert at("2026-03-10T12:00:00", both).window_text() == "2026-03-10T13:00:00"


@pytest.mark.req("SEQ-TIM-1")
def test_on_holidays_the_window_stays_shut():
    window = {"holidays": ["2026-03-04"], "country": "OURS"}
    moment = at("2026-03-04T10:00:00", window, calendars={"OURS": ["2026-03-05"]})

    assert moment.window_text() == "2026-03-06T09:00:00"


@pytest.mark.req("SEQ-TIM-1")
@pytest.mark.parametrize(
    ("gap", "opens"),
    [
        ("next", "2026-03-08T07:00:00"),
        ("shift", "2026-03-08T07:30:00"),
        ("before", "2026-03-08T06:59:59"),
    ],
)
def test_a_window_that_opens_in_a_gap_opens_by_its_policy(gap, opens):
    window = {"start": "02:30", "end": "04:00", "gap": gap}
    moment = at("2026-03-07T12:00:00", window, NEW_YORK)

    assert text_of(moment.window()) == opens


# never -------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-1")
def test_windows_that_never_meet_fail_the_step_by_name():
    never = [{"days": [0]}, {"days": [1]}]
    failure = at("2026-03-04T10:00:00", never).window()

    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == ("definition", "calendar.window")
    assert not failure.retryable


def test_a_window_that_closes_before_the_next_tick_is_passed_over():
    """The piece that two windows share lasts a second; no tick of a minute falls into it."""
    window = {"start": "02:30", "end": "03:00", "gap": "before"}
    moment = Moment(
        ms_of("2026-03-07T12:00:00", NEW_YORK) + 30_000,
        zone=NEW_YORK,
        resolution_ms=MINUTE_MS,
        send_window=window,
    )

    assert text_of(moment.window(), NEW_YORK) == "2026-03-09T02:30:00"


def test_a_zone_that_is_not_known_here_fails_the_step_and_on_replay_again():
    moment = at("2026-03-04T10:00:00", {})
    moment.run.snapshot.timezone = "Mars/Olympus"
    failure = moment.window()

    assert (failure.kind, failure.code) == ("definition", "calendar.zone")
    again = at("2026-03-04T10:00:00", {})
    again.given.update(moment.facts)
    assert again.window() == failure


# misfires ----------------------------------------------------------------------------------------

LATE = {"send_late_within": 30 * MINUTE_MS}


@pytest.mark.req("SEQ-TIM-1")
def test_a_step_that_missed_its_window_acts_within_the_time_it_may_be_late():
    missed = "2026-03-04T16:50:00"

    assert at("2026-03-04T17:00:00", LATE).window(missed) is None
    assert at("2026-03-04T17:29:59", LATE).window(missed) is None
    assert text_of(at("2026-03-04T17:30:00", LATE).window(missed)) == "2026-03-05T09:00:00"


def test_without_that_time_it_waits_for_the_next_window():
    moment = at("2026-03-04T17:00:00", {})

    assert text_of(moment.window("2026-03-04T16:50:00")) == "2026-03-05T09:00:00"


def test_a_step_that_came_after_the_window_has_missed_nothing():
    moment = at("2026-03-04T17:10:00", LATE)

    assert text_of(moment.window("2026-03-04T17:00:00")) == "2026-03-05T09:00:00"
    assert text_of(moment.window("2026-03-04T17:10:00")) == "2026-03-05T09:00:00"


@pytest.mark.req("SEQ-TIM-1")
def test_a_step_that_waited_for_a_window_which_passed_while_nobody_ran_has_missed_it():
    """It wanted to act before the opening; the machine was off from then until after the close."""
    moment = at("2026-03-04T17:10:00", LATE)

    assert moment.window("2026-03-04T06:00:00") is None
    assert text_of(at("2026-03-04T17:40:00", LATE).window("2026-03-04T06:00:00")) == (
        "2026-03-05T09:00:00"
    )


def test_of_several_windows_each_that_is_shut_must_allow_to_be_late():
    missed = "2026-03-04T16:50:00"
    wide = {"start_hour": 8, "end_hour": 20}

    assert at("2026-03-04T17:10:00", [LATE, wide]).window(missed) is None
    assert at("2026-03-04T17:10:00", [LATE, LATE]).window(missed) is None
    assert at("2026-03-04T17:10:00", [LATE, {}]).window(missed) is not None


def test_windows_that_were_not_open_together_since_were_not_missed():
    morning = {"start_hour": 8, "end_hour": 12, "send_late_within": 2 * HOUR_MS}
    noon = {"start_hour": 13, "end_hour": 17}
    moment = at("2026-03-04T13:30:00", [morning, noon])

    assert isinstance(moment.window("2026-03-04T08:00:00"), Failure)


# facts -------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-TIM-1")
def test_every_verdict_is_recorded_with_zone_and_version():
    shut = at("2026-03-04T20:00:00", [{}, {"timezone": "Asia/Tokyo"}], NEW_YORK)
    shut.window()
    late = at("2026-03-04T17:10:00", LATE)
    late.window("2026-03-04T16:50:00")

    ((key, fact),) = shut.facts.items()
    assert key.startswith("calendar:window:s:0:")
    assert fact["zone"] == f"{NEW_YORK}, Asia/Tokyo"
    assert fact["tzdata"] == tzdata_version()
    ((_, fact),) = late.facts.items()
    assert (fact["ms"], fact["late"]) == (late.now_ms, True)


def test_on_replay_the_recorded_verdict_counts():
    then = at("2026-03-04T10:00:00", {})
    assert then.window() is None
    ((key, fact),) = then.facts.items()

    again = at("2026-03-04T10:00:00", {})
    again.given[key] = {**fact, "ms": then.now_ms + DAY_MS, "tzdata": "1999a"}
    assert again.window() == then.now_ms + DAY_MS
    assert again.facts == again.given


def test_windows_are_compiled_once_for_each_zone():
    moment = at("2026-03-04T10:00:00", {}, NEW_YORK)
    moment.window()
    first = moment.node.windows[NEW_YORK]
    moment.at("2026-03-05T10:00:00").window()

    assert moment.node.windows == {NEW_YORK: first}
    assert moment.node.windows[NEW_YORK] is first
