"""Warm-up (SEQ-LIM-3): how many a resource sends on each day of its own time zone, over weeks."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.post import EPOCH_MS, TICK_MS, Post, define
from tests.acceptance.stage import refused


@pytest.fixture
def post():
    with Post().open() as post:
        post.engine.pools.create("p")
        yield post


def crowd(post, count):
    """So many instances, all due at once."""
    definition = define(post.letter(pool="p"))
    return post.engine.start_many(definition, [{"to": str(n)} for n in range(count)])


def per_day(post, zone="UTC"):
    """How many were sent on each local date, in order, without those on which none was."""
    dates = Counter()
    for sent in post.log:
        ms = EPOCH_MS + sent.at * TICK_MS
        dates[dt.datetime.fromtimestamp(ms / 1000, ZoneInfo(zone)).date().isoformat()] += 1
    return dict(sorted(dates.items()))


@pytest.mark.req("SEQ-LIM-3")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Auckland"])
def test_a_linear_warm_up_over_three_weeks_sends_its_cap_on_every_single_day(post, zone):
    ramp = {"warmup_days": 21, "warmup_start_cap": 5, "daily_cap": 50, "timezone": zone}
    added = post.engine.pools.add("p", "new", **ramp)
    caps = [5 + 45 * day // 21 for day in range(21)] + [50] * 2
    ids = crowd(post, sum(caps) + 1)
    post.engine.run_until_idle()
    found = per_day(post, zone)
    start = added.warmup_start
    days = [(start + dt.timedelta(days=n)).isoformat() for n in range(24)]
    assert found == dict(zip(days, [*caps, 1], strict=True))
    assert {post.state(each) for each in ids[::50]} == {"completed"}


@pytest.mark.req("SEQ-LIM-3")
def test_an_explicit_schedule_is_kept_day_by_day_and_then_the_full_cap_holds(post):
    caps = [5, 5, 10, 0, 20, 40]
    post.engine.pools.add("p", "new", warmup_schedule=caps, daily_cap=45)
    crowd(post, sum(caps) + 45 + 3)
    post.engine.run_until_idle()
    assert per_day(post) == {
        "2026-01-01": 5,
        "2026-01-02": 5,
        "2026-01-03": 10,
        "2026-01-05": 20,  # the fourth day has no permits at all
        "2026-01-06": 40,
        "2026-01-07": 45,
        "2026-01-08": 3,
    }


@pytest.mark.req("SEQ-LIM-3")
def test_before_the_day_it_begins_the_first_cap_holds(post):
    ramp = {"warmup_days": 2, "warmup_start_cap": 1, "daily_cap": 5}
    post.engine.pools.add("p", "new", warmup_start="2026-01-03", **ramp)
    crowd(post, 12)
    post.engine.run_until_idle()
    assert list(per_day(post).values()) == [1, 1, 1, 3, 5, 1]


@pytest.mark.req("SEQ-LIM-3", "SEQ-LIM-2")
def test_beside_a_warm_one_a_new_one_takes_only_what_its_day_allows(post):
    post.engine.pools.add("p", "old")
    post.engine.pools.add("p", "new", warmup_days=10, warmup_start_cap=2, daily_cap=12)
    for _ in range(3):
        crowd(post, 20)
        post.advance(24 * 36_000)
    days = [post.log[n : n + 20] for n in (0, 20, 40)]
    assert [sum(sent.by == "new" for sent in day) for day in days] == [2, 3, 4]
    assert len(post.log) == 60


@pytest.mark.req("SEQ-LIM-3", "CORE-EXP-1")
def test_explain_foretells_the_day_of_someone_far_back_in_the_line(post):
    post.engine.pools.add("p", "new", warmup_schedule=[1, 2, 3], daily_cap=3)
    ids = crowd(post, 10)
    post.advance(1)
    for place, day in ((1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (9, 4)):
        assert post.engine.explain(ids[place]).earliest == day * 24 * 36_000
    post.keeps_its_promise(ids[9], "pool 'p'")


@pytest.mark.req("SEQ-LIM-3")
def test_a_warm_up_that_is_changed_holds_for_today_and_counts_what_was_sent(post):
    post.engine.pools.add("p", "new", warmup_days=10, warmup_start_cap=2, daily_cap=12)
    crowd(post, 8)
    post.advance(10)
    post.engine.pools.update("p", "new", warmup_start_cap=5)
    post.advance(10)
    assert [sent.at for sent in post.log] == [0, 0, 10, 10, 10]
    post.engine.pools.update("p", "new", warmup_start_cap=1)
    post.advance(10)
    assert len(post.log) == 5
    post.engine.run_until_idle()
    assert list(per_day(post).values()) == [5, 2, 1]


@pytest.mark.req("SEQ-LIM-3")
@pytest.mark.parametrize(
    "wrong",
    [
        {"warmup_days": -1},
        {"warmup_days": 5, "warmup_start_cap": 20, "daily_cap": 10},
        {"warmup_days": 5, "warmup_start_cap": 5},
        {"warmup_schedule": []},
        {"warmup_schedule": [5, -1]},
        {"warmup_schedule": [5], "warmup_days": 3, "daily_cap": 9},
        {"warmup_days": 5, "daily_cap": 9, "warmup_start": "2026-02-30"},
    ],
)
def test_a_warm_up_that_cannot_be_is_refused_and_nothing_is_added(post, wrong):
    with refused("pool.invalid"):
        post.engine.pools.add("p", "new", **wrong)
    assert post.engine.pools.show("p").resources == ()
