"""A place in line at the gate: what `explain` promises of it, what keeps it, and what ends it."""

from __future__ import annotations

import datetime as dt
import threading

import pytest

import detent
from tests.acceptance.post import Post, define
from tests.acceptance.stage import virtual

OFFICE = {"start_hour": 9, "end_hour": 17}


def at(day, hour, minute=0):
    return dt.datetime(2026, 1, day, hour, minute, tzinfo=dt.UTC)


def promised(post, instance):
    ms = post.engine.explain(instance).earliest_ms
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).replace(microsecond=0)


def reasons(post, instance):
    audit = post.engine.inspect.audit(instance)
    return [each.detail.get("why") for each in audit if each.action == "gate.granted"]


@pytest.mark.req("SEQ-TIM-1", "SEQ-LIM-1")
def test_who_waits_overnight_for_limit_and_window_is_not_overtaken_in_the_morning():
    with Post().open() as post:
        post.engine.limits.set("box", max=1, window="24h")
        letter = post.mail("box", send_window=OFFICE)
        post.engine.advance(to=at(1, 10))
        ids = post.start(letter, "a", "b", "c")
        post.advance(0)
        post.engine.advance(to=at(2, 9, 30))
        ids += post.start(letter, "d")
        post.advance(0)
        told = [promised(post, each) for each in ids[1:]]
        assert told == [at(2, 10), at(3, 10), at(4, 10)]
        ticks = [post.engine.explain(each).earliest for each in ids[1:]]
        post.engine.run_until_idle()
        assert post.times()[1:] == list(zip(ticks, "bcd", strict=True))


@pytest.mark.req("SEQ-TIM-1", "CORE-EXP-1")
def test_a_limit_that_opens_after_hours_is_named_together_with_the_window():
    with Post().open() as post:
        post.engine.limits.set("box", max=1, window="1s")
        post.engine.advance(to=at(5, 10))
        post.engine.limits.close("box", for_="8h")
        (instance,) = post.start(post.mail("box", send_window=OFFICE), "a")
        post.advance(0)
        assert "by the rate limit 'box', then by its send window," in (
            post.engine.explain(instance).summary
        )
        assert promised(post, instance) == at(6, 9)
        post.keeps_its_promise(instance, "box")
        assert post.state(instance) == "completed"


@pytest.mark.req("SEQ-LIM-1")
def test_a_pause_is_no_way_to_the_front_of_the_line():
    with Post().open() as post:
        post.engine.limits.set("box", max=1, window="10s")
        ids = post.start(post.mail("box"), *"abcdef")
        post.advance(1)
        for last in (ids[5], ids[2]):
            post.engine.pause(last)
            post.advance(1)
            post.engine.resume(last)
        post.engine.run_until_idle()
        assert [who for _, who in post.times()] == [*"abdefc"]


@pytest.mark.req("SEQ-LIM-1", "CORE-EXP-1")
@pytest.mark.parametrize("reopen", [False, True])
def test_the_order_at_two_limits_is_the_one_explained_also_after_a_restart(tmp_path, reopen):
    post, path = Post(), tmp_path / "store.db"
    came = [(3, "z", 1), (3, "z", 2), (10, "z", 1), (1, "z", 1), (3, "xz", 0), (0, "z", 1)]
    came += [(0, "z", 1), (0, "z", 1), (3, "x", 1), (0, "x", 1), (0, "z", 1), (0, "x", 1)]
    ids = {}
    with virtual(path, [post.send]) as post.engine:
        post.engine.limits.set("x", max=1, window=300)
        post.engine.limits.set("z", max=1, window=1_500)
        for n, (wait, keys, priority) in enumerate([*came, (10, "z", 1)]):
            post.advance(wait)
            named = ("Low", "Normal", "High")[priority]
            ids[str(n)] = post.start(post.mail(*keys), str(n), priority=named)[0]
        post.advance(0)
        waiting = {who: post.engine.explain(each).earliest for who, each in ids.items()}
        told = {who: tick for who, tick in waiting.items() if tick is not None}
        if not reopen:
            post.engine.run_until_idle()
    with virtual(path, [post.send]) as post.engine:
        post.engine.run_until_idle()
    moved = {sent.who: sent.at for sent in post.log}
    assert told == {who: moved[who] for who in told}


@pytest.mark.req("SEQ-LIM-1")
def test_deleting_a_limit_that_a_provider_closed_lets_everybody_go_on_and_says_so():
    with Post().open() as post:
        post.engine.limits.set("box", max=5, window="10s")
        post.trouble = [detent.Failed("busy", retry_after=3_600)]
        letter = post.mail("box", retry=detent.retry(2, initial_backoff=1))
        ids = post.start(letter, "a")
        post.advance(1)
        ids += post.start(letter, "b")
        post.advance(1)
        post.engine.limits.delete("box")
        post.advance(0)
        assert [post.state(each) for each in ids] == ["completed", "completed"]
        assert reasons(post, ids[1]) == ["the limit 'box' it waited for was deleted"]


@pytest.mark.req("SEQ-LIM-1")
def test_a_closing_that_ran_out_is_not_called_a_deletion():
    with Post().open() as post:
        post.trouble = [detent.Failed("busy", retry_after=20)]
        letter = post.mail("free", retry=detent.retry(2, initial_backoff=1))
        (instance,) = post.start(letter, "a")
        post.engine.run_until_idle()
        assert post.state(instance) == "completed"
        assert reasons(post, instance) == []


@pytest.mark.req("SEQ-LIM-2")
def test_the_limit_of_a_resource_that_is_deleted_is_named_to_who_waited_for_the_pool():
    with Post().open() as post:
        post.engine.limits.set("r", max=1, window="10s")
        post.engine.pools.create("p")
        post.engine.pools.add("p", "r")
        ids = post.start(define(post.letter(pool="p")), "a", "b")
        post.advance(0)
        post.engine.limits.delete("r")
        post.advance(0)
        assert reasons(post, ids[1]) == ["the limit 'r' it waited for was deleted"]


@pytest.mark.req("SEQ-LIM-4", "CORE-EXP-1")
def test_who_waits_for_a_concurrency_key_is_told_who_holds_it_and_before_when_it_cannot_move():
    nap = detent.sequence("nap", detent.step("z", "sleep", params={"duration_ms": 60_000}))
    with Post().open() as post:
        start = post.engine.now()
        holder = post.engine.start(nap, concurrency_key="k")
        waiter = post.engine.start(nap, concurrency_key="k")
        post.advance(0)
        told = post.engine.explain(waiter)
        assert holder in told.summary
        assert holder in told.waits[0].released_by[0]
        assert "Only an input" not in told.summary
        assert told.earliest is None
        bound = dt.datetime.fromtimestamp(told.not_before_ms / 1000, dt.UTC)
        assert bound == start + dt.timedelta(minutes=1)
        post.engine.advance(to=bound)
        assert post.state(waiter) == "running"


@pytest.mark.req("SEQ-LIM-4")
def test_nothing_is_said_of_an_instant_while_a_call_of_the_holder_may_end_at_any_time():
    paying = threading.Event()

    @detent.handler("pay")
    def pay():
        paying.wait(10)

    with virtual(":memory:", [pay]) as engine:
        ids = [engine.start(define(detent.step("p", pay)), concurrency_key="k") for _ in "ab"]
        told = engine.explain(ids[1])
        assert ids[0] in told.summary
        assert (told.earliest, told.not_before_ms) == (None, None)
        paying.set()
        engine.run_until_idle()
        assert engine.explain(ids[1]).state == "completed"


@pytest.mark.req("SEQ-LIM-1", "CORE-EXP-1")
def test_a_step_that_waits_for_an_instant_is_told_what_will_hold_it_then():
    with Post().open() as post:
        post.engine.limits.set("box", max=1, window="1h")
        post.trouble = [detent.Failed("busy")]
        again = post.mail("box", retry=detent.retry(3, initial_backoff=5_000))
        (retried,) = post.start(again, "a")
        post.advance(1)
        told = post.engine.explain(retried)
        assert told.earliest == 50
        assert (
            "then deferred by the rate limit 'box' until 2026-01-01T01:00:00.100Z" in told.summary
        )
        free = post.mail("other", send_window=OFFICE)
        (unheld,) = post.start(free, "b")
        post.advance(0)
        assert "deferred" not in post.engine.explain(unheld).summary
        post.engine.run_until_idle()
        assert (36_001, "a") in post.times()
