"""Circuit breakers beside workers, limits, caches, branches, pauses, forks and settings."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step
from tests.acceptance.provider import (
    SECOND,
    Provider,
    at,
    orders,
    states,
)
from tests.acceptance.stage import proved, refused, state, virtual


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def engine(provider):
    with virtual(handlers=provider.handlers, breaker_threshold=5) as made:
        yield made
        proved(made)


@pytest.mark.req("SEQ-HND-5", "SEQ-HND-3")
def test_workers_reports_count_and_an_open_breaker_hands_nothing_out():
    one = sequence("one", step("a", "charge"))
    with virtual(workers=True, breaker_threshold=5) as engine:
        for failures in range(1, 6):
            instance = engine.start(one)
            engine.advance(0)
            (task,) = engine.work.poll("charge", "w")
            engine.work.fail(task.id, "w", task.claim_epoch, "no", retryable=False)
            engine.advance(0)
            assert state(engine, instance) == "failed"
            shown = engine.breakers.show("charge")
            assert (shown.failures, shown.state) == (failures, "open" if failures > 4 else "closed")
        waiting = [engine.start(one) for _ in range(2)]
        engine.advance(0)
        assert states(engine, waiting) == ["scheduled"] * 2
        assert not engine.work.poll("charge", "w")
        engine.advance(60 * SECOND)
        (task,) = engine.work.poll("charge", "w", limit=10)
        assert states(engine, waiting) == ["waiting", "scheduled"]
        engine.work.complete(task.id, "w", task.claim_epoch, {})
        engine.advance(0)
        assert states(engine, waiting) == ["completed", "waiting"]
        proved(engine)


@pytest.mark.req("SEQ-HND-5", "SEQ-HND-3")
def test_the_next_attempt_of_a_worker_waits_for_an_open_breaker():
    retry = detent.retry(9, initial_backoff=100)
    with virtual(workers=True, breaker_threshold=5) as engine:
        instance = engine.start(sequence("one", step("a", "charge", retry=retry)))
        for _ in range(5):
            engine.advance(10 * SECOND)
            (task,) = engine.work.poll("charge", "w")
            engine.work.fail(task.id, "w", task.claim_epoch, "no", retryable=True)
        engine.advance(10 * SECOND)
        assert not engine.work.poll("charge", "w")
        assert "circuit breaker of 'charge'" in engine.explain(instance).summary
        engine.advance(60 * SECOND)
        (task,) = engine.work.poll("charge", "w")
        assert task.attempt == 5
        proved(engine)


@pytest.mark.req("SEQ-HND-5", "SEQ-LIM-1")
def test_who_waits_for_a_limit_when_the_breaker_opens_uses_up_nothing(engine, provider):
    limited = sequence("l", step("pay", "pay", params={"n": "{{data.n}}"}, rate_limit_key="box"))
    engine.limits.set("box", max=1, window="10s")
    ids = orders(engine, 2, limited, first=100)
    assert states(engine, ids) == ["failed", "scheduled"]
    orders(engine, 4)  # opens it
    assert provider.count == 5
    engine.advance(11 * SECOND)
    assert (state(engine, ids[1]), provider.count) == ("scheduled", 5)
    assert "circuit breaker of 'pay'" in engine.explain(ids[1]).summary
    assert engine.limits.show("box").used == 0
    provider.down = False
    engine.run_until_idle()
    assert state(engine, ids[1]) == "completed"
    assert engine.limits.show("box").used == 1


@pytest.mark.req("SEQ-HND-5")
def test_a_pause_steps_out_of_the_line_and_a_cancel_ends_the_wait(engine, provider):
    orders(engine, 5)
    paused, cancelled, other = orders(engine, 3, first=5)
    engine.pause(paused)
    engine.cancel(cancelled)
    provider.down = False
    engine.run_until_idle()
    assert states(engine, [paused, cancelled, other]) == ["paused", "cancelled", "completed"]
    engine.resume(paused)
    engine.run_until_idle()
    assert state(engine, paused) == "completed"


@pytest.mark.req("SEQ-HND-5")
def test_what_cannot_be_called_fails_at_once_and_is_no_probe(engine, provider):
    orders(engine, 5)
    broken = sequence("b", step("pay", "pay", params={"n": "{{ nowhere.n }}"}))
    wrong = orders(engine, 1, broken)
    right = orders(engine, 1, first=5)
    assert states(engine, wrong + right) == ["failed", "scheduled"]
    assert at(engine, right[0]) == 60


def test_a_known_result_passes_an_open_breaker(engine, provider):
    provider.down = False
    cached = detent.loop("l", "true", step("pay", "pay", cache_key="k"), max_iterations=2)
    stopped = sequence("c", step("first", "pay", cache_key="k"), detent.wait("w", "10s"), cached)
    instance = engine.start(stopped)
    engine.advance(0)
    provider.down = True
    orders(engine, 5)
    engine.advance(10 * SECOND)
    assert state(engine, instance) == "completed"


def test_a_dry_run_neither_asks_nor_counts(engine, provider):
    orders(engine, 5)
    (dry,) = orders(engine, 1, dry_run=True)
    assert state(engine, dry) in ("completed", "failed")
    assert engine.breakers.show("pay").failures == 5


@pytest.mark.req("SEQ-HND-5")
def test_a_step_that_must_be_told_something_more_counts_its_failure_once(engine, provider):
    engine.deploy(sequence("child", step("s", "noop")))
    caught = detent.try_catch("t", do=step("pay", "pay"), catch=detent.sub_sequence("c", "child"))
    instance = engine.start(sequence("s", caught))
    engine.run_until_idle()
    assert (state(engine, instance), provider.count) == ("completed", 1)
    assert engine.breakers.show("pay").failures == 1


@pytest.mark.req("SEQ-HND-5")
def test_the_branches_of_one_instance_share_the_breaker_too(engine, provider):
    branches = [[step(f"p{n}", "pay")] for n in range(7)]
    both = sequence("s", detent.parallel("p", *branches), detent.wait("w", "1s"))
    first = engine.start(both)
    engine.advance(0)
    assert (state(engine, first), provider.count) == ("failed", 7)  # all were called at once
    (late,) = orders(engine, 1, both)
    assert (state(engine, late), provider.count) == ("scheduled", 7)
    provider.down = False
    engine.run_until_idle()
    assert state(engine, late) == "completed"
    assert len(engine.inspect.audit(late, action="gate.granted")) == 1


def test_a_fork_reports_nothing_of_its_origin(engine, provider):
    (origin,) = orders(engine, 1)
    engine.fork(origin, seq=1)
    engine.run_until_idle()
    assert engine.breakers.show("pay").failures == provider.count


@pytest.mark.req("SEQ-HND-5")
def test_the_threshold_and_the_cool_down_are_settings(provider):
    settings = {"breaker_threshold": 2, "breaker_cooldown_ms": 5_000}
    with virtual(handlers=provider.handlers, **settings) as engine:
        orders(engine, 2)
        shown = engine.breakers.show("pay")
        assert (shown.state, shown.threshold, shown.cooldown_ms) == ("open", 2, 5_000)
        (late,) = orders(engine, 1)
        assert at(engine, late) == 5


def test_a_threshold_of_nought_switches_breakers_off(provider):
    with virtual(handlers=provider.handlers, breaker_threshold=0) as engine:
        orders(engine, 9)
        assert provider.count == 9
        assert engine.breakers.list() == []


@pytest.mark.parametrize(
    "settings", [{"breaker_threshold": -1}, {"breaker_cooldown_ms": 0}, {"breaker_threshold": "5"}]
)
def test_settings_out_of_range_are_refused(settings):
    with refused("request.invalid"):
        virtual(**settings)
