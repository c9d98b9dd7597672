"""Explain: what every standing instance waits for, and the instant at which it moves (CORE-EXP)."""

from __future__ import annotations

import datetime as dt
import random

import pytest

import detent
from detent import (
    Failed,
    for_each,
    loop,
    parallel,
    race,
    saga,
    saga_step,
    sequence,
    step,
    sub_sequence,
    try_catch,
    wait,
)
from tests.acceptance.stage import HOUR_MS, state, virtual


@detent.handler
def shaky(ctx: detent.HandlerContext):
    if ctx.attempt < 3:
        raise Failed("not yet")
    return {}


@detent.handler
def steady():
    return {}


def cannot_tell(ctx: detent.HandlerContext):
    return detent.Retry("busy")


@detent.handler(on_doubt="queryable", reconcile=cannot_tell)
def lost():
    raise ConnectionError("lost")


@detent.handler(on_doubt="once")
def doubtful():
    raise ConnectionError("lost")


@detent.policy
def at_dawn(now_ms: int):
    if now_ms // HOUR_MS % 24 >= 6:
        return detent.allow()
    return detent.defer("at dawn", for_ms=HOUR_MS)


HANDLERS = [shaky, steady, lost, doubtful, at_dawn]
RETRY = detent.retry(4, initial_backoff="90s", jitter=20_000)
POPULATION = {
    "timer": [wait("w", "{m}m"), step("s", "noop")],
    "signal": [wait("w", signal="go")],
    "signal or timer": [wait("w", "{m}m", signal="go"), step("s", steady)],
    "sleep": [step("s", "sleep", params={"duration_ms": "{m}m"})],
    "delay": [step("s", steady, delay="{m}m")],
    "retry": [step("s", shaky, retry=RETRY)],
    "person": [step("s", "human_review", wait_for_input={"timeout": "{m}m"})],
    "person for ever": [step("s", "human_review", wait_for_input={"prompt": "?"})],
    "deadline": [step("s", "noop", delay="5h", deadline="{m}m")],
    "race": [race("r", wait("a", "{m}m"), [wait("b", "3h")])],
    "parallel": [
        parallel("p", wait("a", "{m}m"), [step("b", shaky, retry=RETRY)], [wait("c", "1s")])
    ],
    "poll": [loop("l", "true", step("s", "noop"), max_iterations=3, poll_interval=45)],
    "each": [for_each("e", "items", wait("w", "{m}m"))],
    "child": [sub_sequence("c", "child"), wait("w", "{m}m")],
    "reconciled": [step("s", lost)],
    "undecided": [step("s", doubtful)],
    "caught": [try_catch("t", do=step("f", "fail"), catch=wait("w", "{m}m"))],
    "saga": [
        saga(
            "g",
            saga_step("one", step("do", steady), wait("undo", "{m}m")),
            saga_step("two", step("no", "fail")),
        )
    ],
    "deferred": [step("s", steady)],
}


def made(name, minutes):
    """The definition with its durations filled in."""

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [fill(each) for each in value]
        return minutes * 60_000 if value == "{m}m" else value

    policies = [{"handler": at_dawn}] if name == "deferred" else []
    return sequence(f"{name} {minutes}", *fill(POPULATION[name]), policies=policies)


def populate(engine, chance):
    engine.deploy(sequence("child", wait("w", "25m")))
    found = []
    for name in POPULATION:
        for _ in range(3):
            definition = made(name, chance.randint(1, 300))
            at = dt.timedelta(minutes=chance.choice((0, 0, 17))) or None
            found.append(engine.start(definition, {"items": [1, 2]}, at=at))
    engine.advance(0)
    for instance in found[::5]:
        if state(engine, instance) in ("waiting", "scheduled", "running"):
            engine.pause(instance)
    for instance in found[2::7]:
        if state(engine, instance) not in ("completed", "failed", "cancelled"):
            engine.cancel(instance)
    return found


def standing(engine):
    """Version and promised tick of every instance, children included."""
    every = [each.id for each in engine.inspect.instances().items]
    return {
        id: (engine.inspect.show(id).snapshot_version, engine.explain(id).earliest) for id in every
    }


@pytest.mark.req("CORE-EXP-1")
@pytest.mark.parametrize("seed", range(3))
def test_nothing_moves_before_the_promised_instant_and_at_it_something_does(seed):
    """At every stand-still: one tick before the earliest promise, and then at it."""
    with virtual(handlers=HANDLERS, seed=f"explain {seed}") as engine:
        populate(engine, random.Random(seed))
        for _ in range(400):
            engine.advance(0)
            before = standing(engine)
            promised = [earliest for _, earliest in before.values() if earliest is not None]
            if not promised:
                break
            target = min(promised)
            now = engine.advance(0)
            assert target > now
            if target - 1 > now:
                engine.advance(to=target - 1)
                assert standing(engine) == before
            engine.advance(to=target)
            after = standing(engine)
            for id, (version, earliest) in before.items():
                if earliest == target:
                    assert after[id][0] > version, engine.explain(id)
                elif earliest is not None:
                    assert after[id][0] == version, engine.explain(id)
        else:
            pytest.fail("the population does not come to rest")
        ends = {state(engine, id) for id in before}
        assert ends == {"completed", "failed", "cancelled", "waiting", "paused"}


@pytest.mark.req("CORE-EXP-1")
def test_every_standing_instance_says_why_since_when_and_what_would_release_it():
    with virtual(handlers=HANDLERS) as engine:
        for instance in populate(engine, random.Random(7)):
            told = engine.explain(instance)
            assert told.summary.endswith(".")
            if told.state in ("completed", "failed", "cancelled"):
                assert told.earliest is None
                continue
            assert told.waits or told.effects or told.state == "paused"
            for each in told.waits:
                assert each.text
                assert each.released_by, each
                assert each.since <= engine.advance(0)
            if told.earliest is None and told.state != "paused":
                ways = [way for each in told.waits for way in each.released_by]
                assert ways or told.effects


WORDS = {
    "timer": "waits for a time",
    "signal": "signal 'go'",
    "sleep": "sleeps",
    "person for ever": "answer",
    "undecided": "person",
}


@pytest.mark.req("CORE-EXP-1")
@pytest.mark.parametrize("name", WORDS)
def test_the_reason_is_told_in_plain_words(name):
    with virtual(handlers=HANDLERS) as engine:
        instance = engine.start(made(name, 30))
        engine.advance(0)
        assert WORDS[name] in engine.explain(instance).summary


@pytest.mark.req("CORE-EXP-1")
def test_a_paused_one_says_that_a_person_must_resume_it_and_an_ended_one_that_nothing_moves_it():
    with virtual() as engine:
        instance = engine.start(sequence("s", step("s", "sleep", params={"duration_ms": HOUR_MS})))
        engine.pause(instance)
        told = engine.explain(instance)
        assert "resumed" in told.summary
        assert told.earliest is None
        engine.advance(10 * HOUR_MS)
        assert state(engine, instance) == "paused"
        engine.cancel(instance)
        assert "nothing moves it" in engine.explain(instance).summary
