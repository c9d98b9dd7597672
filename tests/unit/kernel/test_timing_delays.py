"""When a delay ends: spans, local times, business days and jitter, to the tick."""

from __future__ import annotations

import statistics

import pytest

from detent.calendar import tzdata_version
from detent.kernel.failure import Failure
from tests.unit.kernel.moments import DAY_MS, HOUR_MS, MINUTE_MS, Moment, ms_of, text_of

FRIDAY = "2026-03-06T10:00:00"
NEW_YORK = "America/New_York"


def test_a_plain_delay_ends_after_its_span_and_leaves_no_fact():
    moment = Moment(FRIDAY, delay={"duration": 12_345})

    assert moment.delay() == moment.now_ms + 12_400
    assert moment.facts == {}


@pytest.mark.req("SEQ-TIM-2")
def test_a_local_time_is_read_in_the_zone_of_the_delay_else_of_the_instance():
    local = {"fire_at_local": "2026-07-01T09:30:00"}
    own = Moment(FRIDAY, zone=NEW_YORK, delay=local | {"timezone": "Asia/Tokyo"})
    instance = Moment(FRIDAY, zone=NEW_YORK, delay=local)

    assert own.delay() == ms_of("2026-07-01T09:30:00", "Asia/Tokyo")
    assert instance.delay() == ms_of("2026-07-01T09:30:00", NEW_YORK)


def test_a_local_time_replaces_the_span():
    moment = Moment(FRIDAY, delay={"duration": 5, "fire_at_local": "2026-03-07T00:00:00"})

    assert moment.delay_text() == "2026-03-07T00:00:00"


@pytest.mark.req("SEQ-TIM-2")
def test_a_local_time_in_the_past_is_now():
    past = Moment(FRIDAY, delay={"fire_at_local": "2026-03-06T09:59:59"})
    present = Moment(FRIDAY, delay={"fire_at_local": FRIDAY})

    assert past.delay() == past.now_ms
    assert present.delay() == present.now_ms


# on 8 March 2026 the clocks of New York skip 02:00-03:00, on 1 November they have 01:00-02:00 twice
POLICIES = {
    ("2026-03-08T02:30:00", "next", "first"): "2026-03-08T07:00:00",
    ("2026-03-08T02:30:00", "shift", "first"): "2026-03-08T07:30:00",
    ("2026-03-08T02:30:00", "before", "first"): "2026-03-08T06:59:59",
    ("2026-11-01T01:30:00", "next", "first"): "2026-11-01T05:30:00",
    ("2026-11-01T01:30:00", "next", "second"): "2026-11-01T06:30:00",
}


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize(("local", "gap", "fold"), POLICIES)
def test_in_gaps_and_folds_the_policy_of_the_delay_decides(local, gap, fold):
    moment = Moment(FRIDAY, zone=NEW_YORK, delay={"fire_at_local": local, "gap": gap, "fold": fold})

    assert moment.delay_text("UTC") == POLICIES[local, gap, fold]


@pytest.mark.req("SEQ-TIM-2")
def test_without_a_policy_a_gap_gives_the_next_instant_and_a_fold_the_first():
    gap = Moment(FRIDAY, zone=NEW_YORK, delay={"fire_at_local": "2026-03-08T02:30:00"})
    fold = Moment(FRIDAY, zone=NEW_YORK, delay={"fire_at_local": "2026-11-01T01:30:00"})

    assert gap.delay_text("UTC") == "2026-03-08T07:00:00"
    assert fold.delay_text("UTC") == "2026-11-01T05:30:00"


# business days -----------------------------------------------------------------------------------


def days(moment_text=FRIDAY, duration=DAY_MS, zone="UTC", **options):
    calendars = options.pop("calendars", {})
    config = options.pop("config", None)
    delay = {"duration": duration, "business_days_only": True, **options}
    return Moment(moment_text, zone=zone, delay=delay, calendars=calendars, config=config)


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize(
    ("duration", "target"),
    [
        (HOUR_MS, "2026-03-06T11:00:00"),
        (DAY_MS, "2026-03-09T10:00:00"),
        (2 * DAY_MS, "2026-03-09T10:00:00"),
        (3 * DAY_MS, "2026-03-09T10:00:00"),
        (4 * DAY_MS, "2026-03-10T10:00:00"),
    ],
)
def test_saturday_and_sunday_become_monday_at_the_same_time(duration, target):
    assert days(duration=duration).delay_text() == target


@pytest.mark.req("SEQ-TIM-2")
def test_the_same_wall_time_is_kept_over_a_change_of_the_clocks():
    moment = days(zone=NEW_YORK)

    assert moment.delay_text() == "2026-03-09T10:00:00"
    assert moment.delay() - moment.now_ms == 3 * DAY_MS - HOUR_MS


@pytest.mark.req("SEQ-TIM-2")
def test_the_local_date_counts_and_not_that_of_utc():
    tokyo = days("2026-03-06T20:00:00", duration=0, timezone="Asia/Tokyo")

    assert tokyo.delay_text("Asia/Tokyo") == "2026-03-09T05:00:00"


@pytest.mark.req("SEQ-TIM-2")
def test_holidays_of_the_step_the_config_and_the_country_all_count():
    moment = days(
        holidays=["2026-03-09"],
        config={"holidays": ["2026-03-10"]},
        country="OURS",
        calendars={"OURS": ["2026-03-11"]},
    )

    assert moment.delay_text() == "2026-03-12T10:00:00"


@pytest.mark.req("SEQ-TIM-2")
def test_six_holidays_in_a_row_push_by_more_than_a_day():
    holidays = [f"2026-03-{day:02}" for day in range(9, 15)]
    moment = days(holidays=holidays)

    assert moment.delay_text() == "2026-03-16T10:00:00"
    assert moment.delay() - moment.now_ms > DAY_MS


def test_holidays_mean_nothing_to_other_delays():
    moment = Moment(FRIDAY, delay={"duration": DAY_MS, "holidays": ["2026-03-07"]})

    assert moment.delay_text() == "2026-03-07T10:00:00"


def test_a_past_local_time_on_a_free_day_waits_for_the_next_business_day():
    moment = days("2026-03-07T10:00:00", fire_at_local="2026-03-05T08:00:00")

    assert moment.delay_text() == "2026-03-09T10:00:00"


@pytest.mark.parametrize("config", [None, 5, [], {}, {"holidays": None}, {"other": 1}])
def test_a_config_without_holidays_adds_none(config):
    assert days(config=config).delay_text() == "2026-03-09T10:00:00"


@pytest.mark.parametrize(
    "holidays",
    ["2026-03-09", {"a": 1}, True, [5], ["2026-03-09", None], ["tomorrow"], ["20260309"]],
)
def test_holidays_of_the_config_that_are_no_dates_fail_the_step_by_name(holidays):
    failure = days(config={"holidays": holidays}).delay()

    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == ("definition", "calendar.date")


@pytest.mark.parametrize("resolution_ms", [100, 1_000, 7_000, 60_000])
def test_a_target_between_the_last_tick_of_a_day_and_the_next_is_judged_by_that_tick(resolution_ms):
    """The tick that ends the wait is what counts: the first of Saturday is no business day."""
    moment = Moment(
        ms_of("2026-03-06T23:50:00"),
        resolution_ms=resolution_ms,
        delay={"duration": 10 * MINUTE_MS - 1, "business_days_only": True},
    )
    moment.at(moment.now_ms - moment.now_ms % resolution_ms)
    due = moment.delay()

    assert text_of(due)[:10] in ("2026-03-06", "2026-03-09")
    assert due >= moment.run.now_ms() + 10 * MINUTE_MS - 1


# jitter ------------------------------------------------------------------------------------------


def spread(duration, jitter, number=200, **options):
    """The spans of many instances of one step."""
    found = []
    for n in range(number):
        delay = {"duration": duration, "jitter": jitter, **options}
        moment = Moment(FRIDAY, delay=delay, id=f"i{n}", seed=f"seed {n}")
        found.append(moment.delay() - moment.now_ms)
    return found


@pytest.mark.req("SEQ-TIM-2")
def test_an_hour_with_jitter_lands_near_the_hour_and_differs_between_instances():
    spans = spread(HOUR_MS, 100_000)

    assert all(3_500_000 <= span <= 3_700_000 for span in spans)
    assert len(set(spans)) > 150
    assert abs(statistics.mean(spans) - HOUR_MS) < 10_000
    assert min(spans) < 3_520_000
    assert max(spans) > 3_680_000


@pytest.mark.req("SEQ-TIM-2")
def test_two_hours_within_ten_seconds_stay_within_them():
    spans = spread(2 * HOUR_MS, 10_000)

    assert all(7_190_000 <= span <= 7_210_000 for span in spans)
    assert any(span < 2 * HOUR_MS for span in spans)
    assert any(span > 2 * HOUR_MS for span in spans)


@pytest.mark.req("SEQ-TIM-2")
def test_jitter_is_the_same_each_time_for_the_same_place_of_the_same_instance():
    def once(path="s", **instance):
        moment = Moment(FRIDAY, delay={"duration": HOUR_MS, "jitter": 600_000}, **instance)
        moment.path = path
        return moment.delay()

    assert once() == once()
    others = [once(id="i2"), once(seed="s2"), once(generation=1), once("loop[1]/s")]
    assert once() not in others
    assert len(set(others)) == 4


def test_jitter_needs_no_calendar_and_leaves_no_fact():
    moment = Moment(FRIDAY, delay={"duration": HOUR_MS, "jitter": 5_000})
    moment.delay()

    assert moment.facts == {}


@pytest.mark.req("SEQ-TIM-2")
def test_jitter_never_ends_a_delay_before_it_began():
    assert min(spread(0, HOUR_MS)) == 0
    assert max(spread(0, HOUR_MS)) > 0
    assert min(spread(0, HOUR_MS, fire_at_local="2026-03-06T10:00:01")) == 0


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize("resolution_ms", [100, 7_000, 60_000])
@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "Asia/Kathmandu"])
def test_jitter_never_moves_a_business_day_to_a_day_that_is_none(zone, resolution_ms):
    """Late on the Friday before the clocks change, and early on the Monday after."""
    landed = set()
    for target in ("2026-03-06T23:59:00", "2026-03-07T00:00:30"):
        for n in range(150):
            delay = {
                "fire_at_local": target,
                "business_days_only": True,
                "jitter": 8 * HOUR_MS,
            }
            now = ms_of("2026-03-02T00:00:00", zone)
            moment = Moment(now, zone=zone, delay=delay, id=f"i{n}", resolution_ms=resolution_ms)
            landed.add(text_of(moment.delay(), zone)[:10])

    assert landed == {"2026-03-06", "2026-03-09"}


@pytest.mark.req("SEQ-TIM-2")
def test_jitter_longer_than_a_business_day_is_spread_over_the_whole_of_it():
    """Friday 13 March, 15:00 in New York, plus or minus two days; it is Friday since 9:00."""
    hours = [0] * 24
    for n in range(480):
        delay = {
            "fire_at_local": "2026-03-13T15:00:00",
            "business_days_only": True,
            "jitter": 2 * DAY_MS,
        }
        moment = Moment("2026-03-13T09:00:00", zone=NEW_YORK, delay=delay, id=f"i{n}")
        day, hour = text_of(moment.delay(), NEW_YORK)[:13].split("T")
        assert day == "2026-03-13"
        hours[int(hour)] += 1
    assert hours[:9] == [0] * 9
    assert all(16 <= number <= 56 for number in hours[9:])


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize(
    ("zone", "options"),
    [
        ("Pacific/Pago_Pago", {}),
        ("UTC", {"jitter": 3 * DAY_MS}),
        ("Pacific/Pago_Pago", {"business_days_only": True}),
    ],
)
def test_a_time_beyond_the_year_9999_is_refused_and_the_last_before_it_is_not(zone, options):
    beyond = {"fire_at_local": "9999-12-31T23:59:59", **options}
    moments = [Moment(FRIDAY, zone=zone, delay=beyond, id=f"i{n}") for n in range(8)]
    failures = [each for each in (moment.delay() for moment in moments) if type(each) is Failure]
    assert {failure.code for failure in failures} == {"calendar.date"}
    assert len(failures) == 8 or "jitter" in options
    last = Moment(FRIDAY, delay={"fire_at_local": "9999-12-31T23:59:59"})
    assert text_of(last.delay()) == "9999-12-31T23:59:59"


# facts -------------------------------------------------------------------------------------------


@pytest.mark.req("CORE-CLK-2", "SEQ-TIM-2")
def test_what_the_calendar_said_is_recorded_with_zone_and_version():
    moment = days(zone=NEW_YORK)
    due = moment.delay()

    assert moment.facts == {
        "calendar:delay:s:0": {"ms": due, "zone": NEW_YORK, "tzdata": tzdata_version()}
    }


def test_on_replay_the_recorded_instant_counts_and_not_what_the_calendar_says_today():
    then = days()
    then.delay()
    (key,) = then.facts
    recorded = {**then.facts[key], "ms": ms_of("2026-03-20T10:00:00"), "tzdata": "1999a"}

    again = days()
    again.given[key] = recorded
    assert again.delay_text() == "2026-03-20T10:00:00"
    assert again.facts == {key: recorded}


def test_a_zone_that_is_not_known_here_fails_the_step_and_on_replay_again():
    moment = days()
    moment.run.snapshot.timezone = "Mars/Olympus"
    failure = moment.delay()

    assert (failure.kind, failure.code) == ("definition", "calendar.zone")
    assert "Mars/Olympus" in failure.message
    assert not failure.retryable
    again = days()
    again.given.update(moment.facts)
    assert again.delay() == failure
