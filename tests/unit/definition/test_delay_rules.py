"""Every rule for delays: what is just allowed, and what is just not."""

from __future__ import annotations

import pytest

from tests.unit.definition.samples import a_sequence, a_step, check_rule, message_of


def waiting(**options):
    return a_step(delay={"duration": 1, **options})


# a block that is allowed, one that is not, the fault's place below it, its code, its HTTP status
DELAYS = {
    "a span or a local time is given": (
        a_step(delay={"fire_at_local": "2026-03-01T09:00:00"}),
        a_step(delay={"timezone": "UTC"}),
        "delay.duration",
        "missing",
        422,
    ),
    "a span is not negative": (
        a_step(delay={"duration": 0}),
        a_step(delay={"duration": -1}),
        "delay.duration",
        "duration",
        422,
    ),
    "business days are wanted or not": (
        waiting(business_days_only=True),
        waiting(business_days_only=1),
        "delay.business_days_only",
        "type",
        422,
    ),
    "jitter is not negative": (
        waiting(jitter=0),
        waiting(jitter=-1),
        "delay.jitter",
        "duration",
        422,
    ),
    "a holiday is a day that exists": (
        waiting(holidays=["2028-02-29"]),
        waiting(holidays=["2028-12-25", "2026-02-29"]),
        "delay.holidays[1]",
        "date",
        400,
    ),
    "a holiday has one spelling": (
        waiting(holidays=["2026-12-25"]),
        waiting(holidays=["20261225"]),
        "delay.holidays[0]",
        "date",
        400,
    ),
    "holidays are a list": (
        waiting(holidays=[]),
        waiting(holidays="2026-12-25"),
        "delay.holidays",
        "type",
        422,
    ),
    "a local time is a date and a time": (
        waiting(fire_at_local="2026-03-01T09:00:00"),
        waiting(fire_at_local="2026-03-01 09:00:00"),
        "delay.fire_at_local",
        "date",
        400,
    ),
    "a local time carries no offset": (
        waiting(fire_at_local="2026-03-01T09:00:00"),
        waiting(fire_at_local="2026-03-01T09:00:00Z"),
        "delay.fire_at_local",
        "date",
        400,
    ),
    "a time zone is known": (
        waiting(timezone="Europe/Paris"),
        waiting(timezone="Europe/Pariss"),
        "delay.timezone",
        "timezone",
        400,
    ),
    "a time zone is a name": (
        waiting(timezone="UTC"),
        waiting(timezone=1),
        "delay.timezone",
        "type",
        422,
    ),
    "a country is a name": (waiting(), waiting(country=49), "delay.country", "type", 422),
    "a country is not blank": (waiting(), waiting(country=" "), "delay.country", "blank", 400),
    "a country is known": (waiting(), waiting(country="XX"), "delay.country", "country", 400),
    "a gap is left in one of three ways": (
        waiting(gap="shift"),
        waiting(gap="skip"),
        "delay.gap",
        "choice",
        422,
    ),
    "a fold is taken in one of two ways": (
        waiting(fold="second"),
        waiting(fold="last"),
        "delay.fold",
        "choice",
        422,
    ),
}


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize("rule", DELAYS)
def test_for_delays_the_rule_holds_that(rule):
    check_rule(DELAYS[rule])


def test_a_zone_that_nearly_exists_is_named_with_the_one_that_does():
    assert "Europe/Paris" in message_of(a_sequence(waiting(timezone="Europe/Pariss")))
