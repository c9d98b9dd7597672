"""Delays and send windows (SEQ-TIM), at the top and deep inside other blocks."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from detent import for_each, parallel, router, sequence, step, try_catch, wait
from tests.acceptance.stage import DAY_MS, HOUR_MS, finished, state, virtual

# Virtual time begins on Thursday, 1 January 2026, at midnight in UTC.
PARIS = "Europe/Paris"
OFFICE = {"hours": {day: ["09:00-17:00"] for day in ("mon", "tue", "wed", "thu", "fri")}}


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def flat(block):
    return sequence("flat", block)


def deep(block):
    """The same block three composites down."""
    inner = parallel("p", [wait("aside", 1)], [block])
    return sequence(
        "deep", try_catch("t", do=router("r", default=inner), catch=[step("again", "fail")])
    )


anywhere = pytest.mark.parametrize("place", [flat, deep])


def acted(engine, definition, zone="UTC", **options):
    """Start an instance and give the local time at which it ends, which explain must foretell."""
    instance = engine.start(definition, timezone=zone, **options)
    engine.advance(1_000)
    told = engine.explain(instance).earliest_ms
    now_ms = round(engine.now().timestamp() * 1000)
    engine.advance(told - now_ms - 100)
    assert state(engine, instance) == "scheduled"
    engine.advance(100)
    assert state(engine, instance) == "completed"
    assert engine.replay(instance).identical
    return engine.now().astimezone(ZoneInfo(zone)).strftime("%a %d %b %H:%M:%S")


@pytest.mark.req("SEQ-TIM-2")
@anywhere
def test_a_delay_until_a_local_time(engine, place):
    delay = {"fire_at_local": "2026-03-29T02:30:00"}  # skipped by the clocks of Paris
    assert acted(engine, place(step("s", "noop", delay=delay)), PARIS) == "Sun 29 Mar 03:00:00"


@pytest.mark.req("SEQ-TIM-2")
@anywhere
def test_a_delay_of_business_days(engine, place):
    delay = {"duration": "2d", "business_days_only": True, "holidays": ["2026-01-05"]}
    definition = place(step("s", "noop", delay=delay))
    config = {"holidays": ["2026-01-06"]}
    assert acted(engine, definition, PARIS, config=config) == "Wed 07 Jan 01:00:00"


@pytest.mark.req("SEQ-TIM-2")
def test_holidays_of_a_country_move_a_delay(engine):
    pytest.importorskip("holidays")
    delay = {"duration": "5d", "business_days_only": True, "country": "DE-BY"}
    definition = flat(step("s", "noop", delay=delay))
    assert acted(engine, definition, "Europe/Berlin") == "Wed 07 Jan 01:00:00"  # Epiphany


@pytest.mark.req("SEQ-TIM-2")
@anywhere
def test_jitter_differs_between_instances_and_is_the_same_in_every_run(place):
    definition = place(step("s", "noop", delay={"duration": "1h", "jitter": "100s"}))

    def spans():
        with virtual() as engine:
            instances = [engine.start(definition) for _ in range(20)]
            engine.advance(1_000)
            return [engine.explain(each).earliest_ms for each in instances]

    first = spans()
    epoch_ms = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1000
    assert all(3_500 <= (ms - epoch_ms) / 1000 <= 3_700 for ms in first)
    assert len(set(first)) > 15
    assert spans() == first


@pytest.mark.req("SEQ-TIM-2")
def test_each_iteration_has_a_jitter_of_its_own(engine):
    inner = step("s", "noop", delay={"duration": "1h", "jitter": "30m"})
    shown = finished(engine, sequence("n", for_each("each", "items", inner)), {"items": [1, 2, 3]})
    ticks = [
        entry.tick
        for entry in engine.inspect.audit(shown.summary.id)
        if entry.action == "step.executed"
    ]
    spans = [after - before for before, after in zip([0, *ticks], ticks, strict=False)]
    assert len(set(spans)) == 3


@pytest.mark.req("SEQ-TIM-1")
@anywhere
def test_outside_its_window_a_step_waits_for_the_next_opening(engine, place):
    definition = place(step("s", "noop", send_window=OFFICE))
    engine.advance(DAY_MS + 18 * HOUR_MS)
    assert acted(engine, definition, PARIS) == "Mon 05 Jan 09:00:00"


@pytest.mark.req("SEQ-TIM-1")
@anywhere
def test_inside_its_window_a_step_acts_at_once(engine, place):
    engine.advance(10 * HOUR_MS)
    instance = engine.start(place(step("s", "noop", send_window=OFFICE)), timezone=PARIS)
    engine.advance(1_000)
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-TIM-1")
def test_the_window_is_that_of_the_recipients_zone(engine):
    definition = flat(step("s", "noop", send_window=OFFICE))
    assert acted(engine, definition, "America/New_York") == "Thu 01 Jan 09:00:00"


@pytest.mark.req("SEQ-TIM-1", "SEQ-TIM-2")
def test_the_window_is_looked_at_when_the_delay_is_over(engine):
    definition = flat(step("s", "noop", delay="20h", send_window=OFFICE))
    instance = engine.start(definition, timezone=PARIS)
    engine.run_until_idle()
    assert state(engine, instance) == "completed"
    assert engine.now() == dt.datetime(2026, 1, 2, 8, tzinfo=dt.UTC)


@pytest.mark.req("SEQ-TIM-1")
def test_windows_that_are_never_open_together_fail_the_instance(engine):
    never = [{"days": [0]}, {"days": [1]}]
    shown = finished(engine, flat(step("s", "noop", send_window=never)))
    assert shown.summary.state == "failed"
    assert shown.error["code"] == "calendar.window"
