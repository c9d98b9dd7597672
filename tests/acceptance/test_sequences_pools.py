"""Pools (SEQ-LIM-2) and warm-up (SEQ-LIM-3): who is handed out, for how long, how often a day."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest

import detent
from detent import Failed, retry, sequence, wait
from tests.acceptance.post import Post, define, most_in_a_window, share

HOUR = 36_000  # ticks
DAY = 24 * HOUR


@pytest.fixture
def post():
    with Post().open() as post:
        yield post


def pooled(post, name="p", strategy="weighted", /, **resources):
    """Make a pool of these resources."""
    post.engine.pools.create(name, strategy)
    for key, fields in resources.items():
        post.engine.pools.add(name, key, **fields)


def one(post, **options):
    """One send through the pool."""
    return define(post.letter(pool="p", **options))


def bys(post):
    return [sent.by for sent in post.log]


# who is handed out --------------------------------------------------------------------------------


@pytest.mark.req("SEQ-LIM-2")
def test_each_resource_is_used_as_often_as_its_weight_says(post):
    pooled(post, a={"weight": 5}, b={"weight": 2}, c={})
    post.start(one(post), *map(str, range(80)))
    post.engine.run_until_idle()
    assert share(post.log) == {"a": 50, "b": 20, "c": 10}
    for n in range(0, 80, 8):  # and not in lumps: every round of eight is shared so
        assert share(post.log[n : n + 8]) == {"a": 5, "b": 2, "c": 1}


@pytest.mark.req("SEQ-LIM-2")
def test_round_robin_takes_them_in_turn_whatever_their_weight(post):
    pooled(post, "p", "round_robin", a={"weight": 9}, b={}, c={})
    post.start(one(post), *map(str, range(9)))
    post.engine.run_until_idle()
    assert bys(post) == ["a", "b", "c"] * 3


@pytest.mark.req("SEQ-LIM-2", "CORE-CLK-5")
def test_chance_uses_all_of_them_and_is_the_same_again_with_the_same_seed():
    def run(seed):
        with Post().open(seed=seed) as post:
            pooled(post, "p", "random", a={}, b={}, c={})
            post.start(one(post), *map(str, range(30)))
            post.engine.run_until_idle()
            return bys(post)

    first = run("one")
    assert run("one") == first
    assert set(first) == {"a", "b", "c"}
    assert run("two") != first


@pytest.mark.req("SEQ-LIM-2")
def test_a_limited_resource_is_passed_over_and_comes_back(post):
    pooled(post, a={}, b={})
    post.engine.limits.set("a", max=1, window="10s")
    post.start(one(post), *"1234")
    post.advance(200)
    post.start(one(post), "5", "6")
    post.engine.run_until_idle()
    assert bys(post)[:4] == ["a", "b", "b", "b"]
    assert sorted(bys(post)[4:]) == ["a", "b"]
    assert most_in_a_window([sent.at for sent in post.log if sent.by == "a"], 10_000) == 1


@pytest.mark.req("SEQ-LIM-2")
def test_a_disabled_resource_is_passed_over_and_comes_back(post):
    pooled(post, a={}, b={"enabled": False})
    post.start(one(post), *"123")
    post.advance(1)
    post.engine.pools.update("p", "b", enabled=True)
    post.engine.pools.update("p", "a", enabled=False)
    post.start(one(post), *"45")
    post.engine.run_until_idle()
    assert bys(post) == ["a", "a", "a", "b", "b"]


@pytest.mark.req("SEQ-LIM-2")
def test_a_resource_is_not_passed_over_because_a_send_on_it_failed(post):
    post.trouble = [Failed("bounced"), ValueError("broken"), Failed("bounced")]
    pooled(post, a={}, b={})
    post.start(one(post), *"12345678")
    post.engine.run_until_idle()
    assert share(post.log) == {"a": 4, "b": 4}


@pytest.mark.req("SEQ-LIM-2")
def test_when_all_are_exhausted_the_first_that_is_free_again_is_waited_for(post):
    pooled(post, a={}, b={})
    post.engine.limits.set("a", max=1, window="30s")
    post.engine.limits.set("b", max=1, window="10s")
    ids = post.start(one(post), *"1234")
    post.advance(1)
    assert post.keeps_its_promise(ids[2], "pool 'p'") == 101
    post.engine.run_until_idle()
    assert [(sent.at, sent.by) for sent in post.log] == [(0, "a"), (0, "b"), (101, "b"), (202, "b")]


@pytest.mark.req("SEQ-LIM-2", "SEQ-LIM-3")
@pytest.mark.parametrize(
    ("zone", "midnight"),
    [
        ("UTC", 24 * HOUR),
        ("Europe/Berlin", 23 * HOUR),
        ("America/New_York", 5 * HOUR),
        ("Asia/Kolkata", 18 * HOUR + HOUR // 2),
        ("Pacific/Kiritimati", 10 * HOUR),
    ],
)
def test_a_daily_cap_defers_to_midnight_of_the_resources_own_zone(post, zone, midnight):
    pooled(post, a={"daily_cap": 2, "timezone": zone})
    ids = post.start(one(post), *"12345")
    post.advance(1)
    assert post.keeps_its_promise(ids[2], "pool 'p'") == midnight
    post.engine.run_until_idle()
    at = [sent.at for sent in post.log]
    assert at == [0, 0, midnight, midnight, midnight + DAY]


@pytest.mark.req("SEQ-LIM-3")
def test_the_day_of_a_cap_is_23_hours_long_when_the_clocks_go_forward(post):
    post.engine.advance(to=dt.datetime(2026, 3, 28, 12, tzinfo=dt.UTC))
    noon = post.tick
    pooled(post, a={"daily_cap": 1, "timezone": "Europe/Berlin"})
    post.start(one(post), *"1234")
    post.engine.run_until_idle()
    at = [(sent.at - noon) / HOUR for sent in post.log]
    assert at == [0, 11, 11 + 23, 11 + 23 + 24]


@pytest.mark.req("SEQ-LIM-2", "CORE-POL-2")
def test_a_limit_of_the_step_and_the_pool_are_asked_for_all_or_none(post):
    pooled(post, a={"daily_cap": 2})
    post.engine.limits.set("box", max=1, window="10s")
    definition = define(post.letter(pool="p", rate_limit_key="box"))
    ids = post.start(definition, *"123")
    post.advance(50)
    (resource,) = post.engine.pools.show("p").resources
    assert (resource.used_today, post.engine.limits.show("box").used) == (1, 1)
    post.advance(100)
    assert "pool 'p'" in post.engine.explain(ids[2]).summary
    assert post.engine.explain(ids[2]).earliest == DAY
    post.engine.run_until_idle()
    assert [sent.at for sent in post.log] == [0, 101, DAY]


# live ---------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-LIM-2")
def test_a_resource_that_is_added_serves_those_who_wait(post):
    pooled(post)
    ids = post.start(one(post), "1", "2")
    post.advance(100)
    told = post.engine.explain(ids[0])
    assert (post.log, told.earliest, "pool 'p'" in told.summary) == ([], None, True)
    post.engine.pools.add("p", "a", daily_cap=1)
    post.engine.run_until_idle()
    assert [(sent.at, sent.by) for sent in post.log] == [(100, "a"), (DAY, "a")]


@pytest.mark.req("SEQ-LIM-2")
def test_a_resource_that_is_removed_is_used_no_more_and_its_waiters_take_another(post):
    pooled(post, a={"daily_cap": 1}, b={"daily_cap": 1})
    post.start(one(post), *"1234")
    post.advance(10)
    post.engine.pools.remove("p", "a")
    post.advance(10)
    post.engine.pools.update("p", "b", daily_cap=2)
    post.engine.run_until_idle()
    found = [(sent.at, sent.by) for sent in post.log]
    assert found == [(0, "a"), (0, "b"), (20, "b"), (DAY, "b")]


@pytest.mark.req("SEQ-LIM-2")
def test_removing_and_adding_a_resource_again_does_not_give_it_a_new_day(post):
    pooled(post, a={"daily_cap": 1})
    post.start(one(post), "1", "2")
    post.advance(10)
    post.engine.pools.remove("p", "a")
    post.advance(10)
    post.engine.pools.add("p", "a", daily_cap=1)
    post.engine.run_until_idle()
    assert [sent.at for sent in post.log] == [0, DAY]


@pytest.mark.req("SEQ-LIM-2")
def test_a_deleted_pool_fails_those_who_wait_for_it(post):
    pooled(post)
    (instance,) = post.start(one(post), "1")
    post.advance(10)
    post.engine.pools.delete("p")
    post.engine.run_until_idle()
    shown = post.engine.inspect.show(instance)
    assert (shown.summary.state, shown.error["code"]) == ("failed", "pool.unknown")


@pytest.mark.req("SEQ-LIM-2")
def test_an_unknown_pool_fails_the_step_at_once_without_a_retry_and_sends_nothing(post):
    (wrong,) = post.start(define(post.letter(pool="boxs", retry=retry(3))), "1")
    pooled(post, "boxes", a={})
    (right,) = post.start(define(post.letter(pool="box{{data.to}}")), "es")
    post.engine.run_until_idle()
    error = post.engine.inspect.show(wrong).error
    assert (post.state(wrong), error["code"]) == ("failed", "pool.unknown")
    assert "boxs" in error["message"]
    assert (post.state(right), bys(post)) == ("completed", ["a"])


# whom an instance keeps ---------------------------------------------------------------------------


@pytest.mark.req("SEQ-LIM-2")
def test_the_resource_is_seen_by_handler_template_audit_and_explain(post):
    seen = []

    @detent.handler("look")
    def look(ctx, told: str, pool: str = ""):
        seen.append((ctx.resource, told))
        raise Failed("again")

    post.engine.register(look)
    pooled(post)
    post.engine.pools.add("p", "anna@example.com", id="a", daily_cap=2)
    params = {"told": "{{context.runtime.resource_key}} {{runtime.resource_key}}"}
    again = retry(9, initial_backoff="1s")
    definition = sequence("look", detent.step("s", look, params=params, pool="p", retry=again))
    instance = post.engine.start(definition)
    post.advance(50)
    assert seen == [("anna@example.com", "anna@example.com anna@example.com")] * 2
    granted = post.engine.inspect.audit(instance, action="gate.granted")
    assert [e.detail for e in granted] == [{"pool": "p", "resource": "anna@example.com"}] * 2
    told = post.engine.explain(instance)
    assert "resource 'anna@example.com'" in told.summary
    assert told.earliest == DAY


@pytest.mark.req("SEQ-LIM-2")
def test_a_retry_uses_the_same_resource_and_waits_for_it_though_others_are_free(post):
    post.trouble = [Failed("busy"), Failed("busy")]
    pooled(post, a={"daily_cap": 2}, b={})
    again = retry(5, initial_backoff="1s")
    (first,) = post.start(one(post, retry=again, sticky=False), "1")
    post.advance(100)
    assert [sent.by for sent in post.log] == ["a", "a"]
    assert post.keeps_its_promise(first, "resource 'a'") == DAY
    post.start(one(post), "2")
    post.engine.run_until_idle()
    assert [(sent.at, sent.who, sent.by) for sent in post.log[2:]] == [
        (DAY, "1", "a"),
        (DAY, "2", "b"),
    ]


@pytest.mark.req("SEQ-LIM-2")
def test_a_retry_whose_resource_is_gone_takes_another(post):
    post.trouble = [Failed("busy")]
    pooled(post, a={}, b={})
    post.start(one(post, retry=retry(5, initial_backoff="5s")), "1")
    post.advance(10)
    post.engine.pools.remove("p", "a")
    post.engine.run_until_idle()
    assert [(sent.at, sent.by) for sent in post.log] == [(0, "a"), (50, "b")]


def course(post, **options):
    """Three sends of one instance, a minute apart."""
    letters = [post.letter(f"l{n}", delay="1m", **options) for n in range(3)]
    return define(*letters, pool="p")


@pytest.mark.req("SEQ-LIM-2")
def test_an_instance_keeps_its_resource_over_its_steps(post):
    pooled(post, a={}, b={}, c={})
    post.start(course(post), *"1234")
    post.engine.run_until_idle()
    used = Counter((sent.who, sent.by) for sent in post.log)
    assert sorted(used.values()) == [3, 3, 3, 3]


@pytest.mark.req("SEQ-LIM-2")
def test_not_sticky_on_the_step_or_on_the_definition_hands_out_anew(post):
    pooled(post, a={}, b={}, c={})
    post.start(course(post, sticky=False), "1")
    post.engine.run_until_idle()
    assert sorted(bys(post)) == ["a", "b", "c"]
    post.log.clear()
    letters = [post.letter(f"l{n}") for n in range(3)]
    post.start(define(*letters, pool="p", sticky=False), "2")
    post.engine.run_until_idle()
    assert sorted(bys(post)) == ["a", "b", "c"]


@pytest.mark.req("SEQ-LIM-2")
@pytest.mark.parametrize("change", [{"enabled": False}, {"daily_cap": 1}])
def test_a_kept_resource_without_capacity_is_given_up_for_another(post, change):
    pooled(post, a={}, b={})
    post.start(course(post), "1")
    post.advance(700)
    assert bys(post) == ["a"]
    post.engine.pools.update("p", "a", **change)
    post.engine.run_until_idle()
    assert bys(post) == ["a", "b", "b"]


@pytest.mark.req("SEQ-LIM-2")
def test_the_pool_of_a_sequence_holds_for_acting_steps_and_a_step_may_name_another(post):
    pooled(post, a={})
    pooled(post, "other", x={})
    inner = detent.parallel("both", post.letter("l1"), post.letter("l2", pool="other"))
    noop = detent.step("n", "noop")
    (instance,) = post.start(define(noop, wait("w", "1m"), inner, pool="p"), "1")
    post.engine.run_until_idle()
    assert sorted(bys(post)) == ["a", "x"]
    granted = post.engine.inspect.audit(instance, action="gate.granted")
    assert sorted(e.node for e in granted) == ["both/l1", "both/l2"]


@pytest.mark.req("SEQ-LIM-2")
def test_a_dry_run_is_given_no_resource_and_uses_no_capacity(post):
    pooled(post, a={"daily_cap": 1})
    dry = post.start(one(post), "1", "2", dry_run=True)
    post.start(one(post), "3")
    post.advance(1)
    assert [post.state(each) for each in dry] == ["completed"] * 2
    assert post.log == [(0, "3", "a")]
    assert post.engine.pools.show("p").resources[0].used_today == 1
