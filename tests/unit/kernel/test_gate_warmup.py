"""The warm-up of a resource: the cap of each day, and what a time zone has to say about it."""

from __future__ import annotations

import copy
import datetime as dt

import pytest

from detent.kernel.gate.config import cap_on, change, read_config
from detent.model.errors import RequestError

NOW = 1_767_225_600_000  # 2026-01-01T00:00Z
DAY = 86_400_000
ANNA = {"pool": "mailboxes", "id": "a", "resource_key": "anna@example.com"}


def configured(**fields):
    """A pool with one resource."""
    kv = {}
    change(kv, "pool.set", {"name": "mailboxes"}, NOW)
    if fields:
        change(kv, "resource.set", {**ANNA, **fields}, NOW)
    return kv


def refused(kv, args, code, *words):
    """Prove that a change is refused with a code and these words, and that nothing changed."""
    before = copy.deepcopy(kv)
    with pytest.raises(RequestError) as caught:
        change(kv, "resource.set", args, NOW)
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message
    assert kv == before


def resource(**fields):
    return read_config(configured(enabled=True, **fields)).pools["mailboxes"].resources["a"]


def caps(found, first, days):
    start = dt.date.fromisoformat(first)
    return [cap_on(found, start + dt.timedelta(days=n)) for n in range(days)]


@pytest.mark.req("SEQ-LIM-3")
def test_a_warm_up_rises_day_by_day_to_the_daily_cap():
    found = resource(daily_cap=50, warmup_start="2026-03-02", warmup_days=4, warmup_start_cap=5)
    assert caps(found, "2026-02-28", 8) == [5, 5, 5, 16, 27, 38, 50, 50]


@pytest.mark.req("SEQ-LIM-3")
def test_a_schedule_says_the_cap_of_each_day_and_then_the_daily_cap_holds():
    schedule = [5, 8, 0, 20]
    found = resource(daily_cap=40, warmup_start="2026-03-02", warmup_schedule=schedule)
    assert caps(found, "2026-02-28", 7) == [5, 5, 5, 8, 0, 20, 40]
    found = resource(warmup_start="2026-03-02", warmup_schedule=schedule)
    assert caps(found, "2026-03-02", 5) == [5, 8, 0, 20, None]


def test_without_a_warm_up_the_daily_cap_holds_and_zero_is_no_cap():
    assert caps(resource(daily_cap=7), "2026-03-02", 2) == [7, 7]
    assert caps(resource(), "2026-03-02", 2) == [None, None]
    assert caps(resource(daily_cap=7, warmup_start="2026-03-02"), "2026-03-01", 2) == [7, 7]


def test_a_warm_up_begins_by_itself_on_the_local_date_and_keeps_its_day():
    kv = configured()
    args = {**ANNA, "daily_cap": 50, "warmup_days": 28, "timezone": "America/New_York"}
    assert change(kv, "resource.set", args, NOW)["warmup_start"] == "2025-12-31"
    assert change(kv, "resource.set", args, NOW + 9 * DAY)["warmup_start"] == "2025-12-31"
    again = {**args, "warmup_start": None}
    assert change(kv, "resource.set", again, NOW + 9 * DAY)["warmup_start"] == "2026-01-09"


def test_a_warm_up_that_was_ended_begins_anew_when_asked_for_again():
    kv = configured(daily_cap=50, warmup_days=28)
    args = {"pool": "mailboxes", "id": "a"}
    assert "warmup_start" not in change(kv, "resource.set", {**args, "warmup_days": 0}, NOW)
    made = change(kv, "resource.set", {**args, "warmup_days": 9}, NOW + 30 * DAY)
    assert made["warmup_start"] == "2026-01-31"


@pytest.mark.parametrize(
    ("fields", "legal"),
    [
        ({"daily_cap": 4, "warmup_days": 3, "warmup_start_cap": 5}, {"daily_cap": 5}),
        ({"daily_cap": 4, "warmup_start_cap": 5}, {"daily_cap": 5}),
        ({"warmup_days": 3, "warmup_start_cap": 5}, {"daily_cap": 5}),
        ({"warmup_days": 3}, {"daily_cap": 1}),
        ({"daily_cap": 9, "warmup_schedule": [5, 10]}, {"daily_cap": 10}),
        ({"warmup_schedule": [5], "warmup_days": 3, "daily_cap": 9}, {"warmup_days": 0}),
        ({"warmup_schedule": [5], "warmup_start_cap": 3}, {"warmup_start_cap": 0}),
    ],
)
def test_a_warm_up_that_leads_nowhere_is_refused(fields, legal):
    kv = configured()
    refused(kv, {**ANNA, **fields}, "pool.invalid")
    change(kv, "resource.set", {**ANNA, **fields, **legal}, NOW)


def test_an_update_is_checked_against_what_is_there():
    kv = configured(daily_cap=9, warmup_schedule=[5, 9])
    args = {"pool": "mailboxes", "id": "a"}
    refused(kv, {**args, "daily_cap": 8}, "pool.invalid", "9 above 8")
    change(kv, "resource.set", {**args, "daily_cap": 8, "warmup_schedule": None}, NOW)


def test_what_a_zone_says_is_recorded_and_a_replay_needs_no_zone_data():
    recorded = {}

    def recording(key, make):
        return recorded.setdefault(key, make())

    args = {**ANNA, "daily_cap": 50, "warmup_days": 28, "timezone": "Asia/Tokyo"}
    kv = configured()
    first = change(kv, "resource.set", args, NOW, recording)
    assert [fact["zone"] for fact in recorded.values()] == ["Asia/Tokyo"]

    def given(key, _make):
        return {**recorded[key], "date": "2020-02-02"}

    again = change(configured(), "resource.set", args, NOW, given)
    assert (first["warmup_start"], again["warmup_start"]) == ("2026-01-01", "2020-02-02")


def test_a_zone_that_was_unknown_then_stays_refused_in_a_replay():
    said = {"zone": "Europe/Paris", "tzdata": "1990a", "fault": "there is no such zone"}
    with pytest.raises(RequestError) as caught:
        change(
            configured(),
            "resource.set",
            {**ANNA, "timezone": "Europe/Paris"},
            NOW,
            lambda _key, _make: said,
        )
    assert caught.value.code == "calendar.zone"
