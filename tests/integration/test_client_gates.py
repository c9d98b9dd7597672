"""Limits, pools and schedules through three doors: the same results, the same refusals."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent import sequence, step, wait
from tests.integration.doors import doors, fresh


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with doors(tmp_path_factory.mktemp("gates") / "s.db") as made:
        yield made


@pytest.fixture(params=["engine", "client", "awaited"])
def door(request, house):
    return getattr(house, request.param)


def refusal(call):
    with pytest.raises(detent.DetentError) as found:
        call()
    assert isinstance(found.value, detent.RequestError)
    return found.value.code


# limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["mail", "mail/gmail.com?x=1#y", "ü ñ", "..", "%2F"])
def test_a_limit_is_set_closed_opened_and_removed_whatever_its_key_is(door, key):
    tenant = fresh("acme")
    made = door.limits.set(key, max=3, window="1h", tenant=tenant)
    assert (made.key, made.max, made.window_ms) == (key, 3, 3_600_000)
    closed = door.limits.close(key, for_=dt.timedelta(minutes=5), tenant=tenant)
    assert closed.closed_until_ms is not None
    assert door.limits.open(key, tenant=tenant).closed_until_ms is None
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    shut = door.limits.close(key, until=until, tenant=tenant)
    assert shut.closed_until_ms == pytest.approx(until.timestamp() * 1000, abs=1)
    assert [each.key for each in door.limits.list(tenant=tenant)] == [key]
    assert door.limits.show(key, tenant=tenant).used == 0
    door.limits.delete(key, tenant=tenant)
    assert list(door.limits.list(tenant=tenant)) == []
    for verb in (door.limits.show, door.limits.delete, door.limits.open):
        assert refusal(lambda verb=verb: verb(key, tenant=tenant)) == "limit.unknown"


WRONG_LIMITS = {
    "max": {"max": 0, "window": "1h"},
    "text": {"max": "3", "window": "1h"},
    "window": {"max": 1, "window": "soon"},
    "float": {"max": 1, "window": 1.5},
    "long": {"max": 1, "window": "9999d"},
}


@pytest.mark.parametrize("name", WRONG_LIMITS)
def test_a_limit_that_cannot_be_is_refused_with_the_same_code(door, name):
    assert refusal(lambda: door.limits.set("k", **WRONG_LIMITS[name])) == "limit.invalid"


def test_a_limit_is_closed_for_some_time_and_not_for_none(door):
    tenant = fresh("acme")
    door.limits.set("k", max=1, window="1h", tenant=tenant)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    for how in ({}, {"until": later, "for_": "1h"}, {"for_": "never"}, {"for_": "0s"}):
        assert refusal(lambda how=how: door.limits.close("k", tenant=tenant, **how)) == (
            "limit.invalid"
        )
    bare = later.replace(tzinfo=None)
    assert refusal(lambda: door.limits.close("k", until=bare, tenant=tenant)) == "request.invalid"
    assert refusal(lambda: door.limits.set("", max=1, window="1h")) == "limit.invalid"


# pools -------------------------------------------------------------------------------------------


def test_a_pool_is_made_filled_changed_and_removed(door):
    tenant = fresh("acme")
    assert door.pools.create("mail boxes/1", tenant=tenant).strategy == "weighted"
    assert door.pools.create("mail boxes/1", "random", tenant=tenant).strategy == "random"
    added = door.pools.add("mail boxes/1", "a@x.org", weight=3, daily_cap=50, tenant=tenant)
    assert (added.id, added.weight, added.daily_cap, added.cap_today) == ("a@x.org", 3, 50, 50)
    day = dt.datetime.now(dt.UTC).date()
    warm = door.pools.add(
        "mail boxes/1",
        "b@x.org",
        id="b",
        tenant=tenant,
        daily_cap=100,
        warmup_days=10,
        warmup_start_cap=10,
        warmup_start=day,
    )
    assert (warm.id, warm.warmup_start, warm.cap_today) == ("b", day, 10)
    assert door.pools.update("mail boxes/1", "b", weight=2, tenant=tenant).weight == 2
    assert door.pools.update("mail boxes/1", "b", enabled=False, tenant=tenant).enabled is False
    found = door.pools.show("mail boxes/1", tenant=tenant)
    assert [each.id for each in found.resources] == ["a@x.org", "b"]
    door.pools.remove("mail boxes/1", "a@x.org", tenant=tenant)
    assert [each.id for each in door.pools.list(tenant=tenant)[0].resources] == ["b"]
    door.pools.delete("mail boxes/1", tenant=tenant)
    assert list(door.pools.list(tenant=tenant)) == []


def test_a_resource_that_is_added_again_keeps_its_warm_up(door):
    tenant = fresh("acme")
    day = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=3)
    door.pools.create("p", tenant=tenant)
    fields = {"daily_cap": 100, "warmup_days": 10, "tenant": tenant}
    door.pools.add("p", "a", warmup_start=day, **fields)
    assert door.pools.add("p", "a", weight=2, **fields).warmup_start == day


def test_what_is_not_in_a_pool_is_not_found_there(door):
    tenant = fresh("acme")
    for call in (
        lambda: door.pools.show("p", tenant=tenant),
        lambda: door.pools.delete("p", tenant=tenant),
        lambda: door.pools.add("p", "a", tenant=tenant),
        lambda: door.pools.remove("p", "a", tenant=tenant),
    ):
        assert refusal(call) == "pool.unknown"
    door.pools.create("p", tenant=tenant)
    for call in (
        lambda: door.pools.remove("p", "a", tenant=tenant),
        lambda: door.pools.update("p", "a", weight=2, tenant=tenant),
    ):
        assert refusal(call) == "resource.unknown"


WRONG_RESOURCES = {
    "typo": ({"wieght": 2}, "pool.invalid"),
    "text": ({"weight": "2"}, "pool.invalid"),
    "negative": ({"daily_cap": -1}, "pool.invalid"),
    "zone": ({"timezone": "Mars/Base"}, "calendar.zone"),
    "day": ({"warmup_start": "2026-02-30", "warmup_days": 3, "daily_cap": 9}, "pool.invalid"),
    "alone": ({"warmup_start_cap": 5}, "pool.invalid"),
}


@pytest.mark.parametrize("name", WRONG_RESOURCES)
def test_a_resource_that_cannot_be_is_refused_with_the_same_code(door, name):
    tenant, (fields, code) = fresh("acme"), WRONG_RESOURCES[name]
    door.pools.create("p", tenant=tenant)
    door.pools.add("p", "there", tenant=tenant)
    assert refusal(lambda: door.pools.add("p", "a", tenant=tenant, **fields)) == code
    assert refusal(lambda: door.pools.update("p", "there", tenant=tenant, **fields)) == code
    assert refusal(lambda: door.pools.create("p", "fair", tenant=tenant)) == "pool.invalid"


# schedules ---------------------------------------------------------------------------------------


def test_a_schedule_is_made_changed_stopped_and_ended(door):
    tenant, id = fresh("acme"), "daily/1"
    made = sequence(fresh("report"), wait("w", signal="go"))
    door.deploy(made, tenant=tenant)
    cron = door.crons.create(
        made.name,
        "0 9 * * MON-FRI",
        id=id,
        tenant=tenant,
        timezone="Europe/Berlin",
        overlap="skip",
        missed="all",
        missed_limit=3,
        priority="High",
        data={"n": 1},
        metadata={"by": "test"},
    )
    assert (cron.id, cron.sequence, cron.version, cron.timezone) == (
        id,
        made.name,
        None,
        "Europe/Berlin",
    )
    assert (cron.overlap_policy, cron.missed_policy, cron.missed_limit) == ("skip", "all", 3)
    assert (cron.priority, cron.data, cron.metadata) == ("High", {"n": 1}, {"by": "test"})
    fires = door.crons.next_fires(id, 3, tenant=tenant)
    assert len(fires) == 3
    assert fires[0].timestamp() * 1000 == cron.next_fire_ms
    changed = door.crons.update(id, f"{made.name}@1", tenant=tenant, expr="30 8 * * *", data=None)
    assert (changed.cron_expr, changed.version, changed.definition) == ("30 8 * * *", 1, made.hash)
    assert changed.data is None
    assert door.crons.disable(id, tenant=tenant).enabled is False
    assert door.crons.enable(id, tenant=tenant).enabled is True
    assert [each.id for each in door.crons.list(tenant=tenant)] == [id]
    door.crons.delete(id, tenant=tenant)
    for call in (
        lambda: door.crons.show(id, tenant=tenant),
        lambda: door.crons.delete(id, tenant=tenant),
        lambda: door.crons.update(id, tenant=tenant, enabled=True),
    ):
        assert refusal(call) == "cron.not_found"


def test_a_definition_is_stored_by_the_schedule_that_pins_it(door):
    tenant = fresh("acme")
    made = sequence(fresh("report"), wait("w", signal="go"))
    cron = door.crons.create(made, "0 9 * * *", tenant=tenant)
    assert (cron.version, cron.definition) == (1, made.hash)
    assert door.definition(made.name, tenant=tenant) == made


def test_a_schedule_that_cannot_be_is_refused_with_the_same_code(door):
    tenant = fresh("acme")
    made = sequence(fresh("report"), wait("w", signal="go"))
    unknown = sequence(fresh("report"), step("s", "nobody_does_this"))

    def create(definition=made, expr="0 9 * * *", **options):
        return lambda: door.crons.create(definition, expr, tenant=tenant, **options)

    create(id="one")()
    assert refusal(create(id="one")) == "cron.exists"
    assert refusal(create(expr="whenever")) == "calendar.cron"
    assert refusal(create(expr="0 0 0 1 1 * 1999")) == "calendar.cron"
    assert refusal(create(timezone="Mars/Base")) == "calendar.zone"
    assert refusal(create(overlap="maybe")) == refusal(create(priority="Urgent"))
    assert refusal(create("nowhere")) == "definition.unknown"
    assert refusal(create(unknown)) == "handler.unknown"
    assert refusal(create(colour="red")) == "request.invalid"
    assert refusal(create(id="")) == "request.invalid"


def test_an_expression_is_previewed_without_storing_anything(door):
    after = dt.datetime(2026, 3, 28, 12, tzinfo=dt.UTC)
    fires = door.crons.preview("0 9 * * *", "Europe/Berlin", 2, after=after)
    assert [each.isoformat() for each in fires] == [
        "2026-03-29T07:00:00+00:00",
        "2026-03-30T07:00:00+00:00",
    ]
    assert len(door.crons.preview("* * * * *", n=3)) == 3
    assert refusal(lambda: door.crons.preview("* * * * *", n=0)) == "request.invalid"
