"""Wrong limits, pools and schedules are refused in the words of whoever asked."""

from __future__ import annotations

import datetime as dt

import pytest

from detent import Engine, RequestError, sequence, step


@pytest.fixture
def engine():
    with Engine(clock="virtual", seed="words") as engine:
        engine.limits.set("mailbox", max=10, window="1h")
        engine.pools.create("boxes")
        engine.pools.add("boxes", "anna@example.com", daily_cap=10)
        engine.deploy(sequence("report", step("a", "noop")))
        yield engine


def said(wrong):
    with pytest.raises(RequestError) as caught:
        wrong()
    return caught.value.message


def test_a_float_is_no_window_since_its_unit_would_be_a_guess(engine):
    for wrong in (60.0, 1.5, float("nan")):
        message = said(lambda wrong=wrong: engine.limits.set("m", max=1, window=wrong))
        assert "whole milliseconds, not a float" in message
    assert "not a float" in said(lambda: engine.limits.close("mailbox", for_=60.0))
    assert [each.key for each in engine.limits.list()] == ["mailbox"]
    assert engine.limits.set("m", max=1, window=60).window_ms == 60


def test_a_span_or_an_instant_out_of_bounds_is_named_as_it_was_given(engine):
    long = said(lambda: engine.limits.set("m", max=1, window="500d"))
    assert "window must be" in long
    assert "at most 366 days; got '500d'" in long
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    early = said(lambda: engine.limits.close("mailbox", until=past))
    assert early == (
        "until must lie ahead, by 100 years at most; got 2020-01-01T00:00:00+00:00, "
        "and it is 2026-01-01T00:00:00+00:00"
    )
    far = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
    assert "until must lie ahead" in said(lambda: engine.limits.close("mailbox", until=far))
    assert engine.limits.show("mailbox").closed_until_ms is None


def test_a_resource_that_is_not_there_is_named_with_its_pool(engine):
    for wrong in (
        lambda: engine.pools.remove("boxes", "anna@exmple.com"),
        lambda: engine.pools.update("boxes", "anna@exmple.com", weight=2),
    ):
        assert said(wrong) == (
            "there is no resource 'anna@exmple.com' in pool 'boxes'; "
            "did you mean 'anna@example.com'?"
        )


def test_a_field_that_no_resource_has_is_answered_with_those_it_has(engine):
    unknown = said(lambda: engine.pools.add("boxes", "b", colour=1))
    assert unknown.startswith("a resource has no field 'colour'; it has name, weight, enabled")
    near = said(lambda: engine.pools.update("boxes", "anna@example.com", wieght=2))
    assert near == "a resource has no field 'wieght'; did you mean 'weight'?"


def test_a_part_of_a_warm_up_without_one_is_refused_and_not_ignored(engine):
    cap = said(lambda: engine.pools.add("boxes", "b", warmup_start_cap=5))
    assert cap == "warmup_start_cap has no effect alone: it needs warmup_days with a daily_cap"
    anna = ("boxes", "anna@example.com")
    first = said(lambda: engine.pools.update(*anna, warmup_start="2026-02-02"))
    assert "or a warmup_schedule" in first
    assert [each.id for each in engine.pools.show("boxes").resources] == ["anna@example.com"]
    engine.pools.update(*anna, warmup_days=3, warmup_start_cap=1)
    moved = engine.pools.update(*anna, warmup_start="2026-02-02")
    assert moved.warmup_start == dt.date(2026, 2, 2)  # now there is a warm-up
    ended = engine.pools.update(*anna, warmup_days=0)
    assert ended.cap_today == 10


def test_a_day_that_does_not_exist_is_told_from_a_wrong_form(engine):
    warm = {"warmup_schedule": [1, 2], "daily_cap": 5}
    day = said(lambda: engine.pools.add("boxes", "b", warmup_start="2026-02-30", **warm))
    assert day == "warmup_start: there is no day 2026-02-30"
    form = said(lambda: engine.pools.add("boxes", "b", warmup_start="30.1.2026", **warm))
    assert "YYYY-MM-DD" in form


def test_a_schedule_speaks_of_the_options_that_its_caller_knows(engine):
    unknown = said(lambda: engine.crons.create("report", "0 9 * * *", every=1))
    assert unknown.startswith("a schedule has no setting 'every'; it has expr, timezone, overlap,")
    overlap = said(lambda: engine.crons.create("report", "0 9 * * *", overlap="queue"))
    assert overlap.startswith("overlap must be one of allow, skip")
    missed = said(lambda: engine.crons.create("report", "0 9 * * *", missed="some"))
    assert missed.startswith("missed must be one of one, all, none")
    assert engine.crons.list() == ()
