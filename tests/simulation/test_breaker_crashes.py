"""A breaker whose engine dies at every write: it opens all the same, and one probe is made."""

from __future__ import annotations

from contextlib import suppress

import pytest

import detent
from detent.bootstrap.assemble import Parts
from detent.bootstrap.engine import Engine
from detent.bootstrap.settings import Settings, check
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from detent.testing.simulation import new_database

FAILING, WAITING = 3, 4
COOLDOWN_MS = 10_000
PAY = detent.sequence("order", detent.step("pay", "pay", params={"n": "{{ data.n }}"}))


class Provider:
    """The outside, which outlives every engine: it is down for the first orders."""

    def __init__(self):
        self.engine = None
        self.called = []  # which order, and when in milliseconds
        provider = self

        @detent.handler("pay", on_doubt="keyed")
        async def pay(n: int):
            provider.called.append((n, round(provider.engine.now().timestamp() * 1000)))
            if n < FAILING:
                raise detent.Failed("down", retryable=False)
            return {"paid": n}

        self.pay = pay


def opened(store, provider):
    settings = Settings(
        path=":memory:",
        clock="virtual",
        seed="test",
        breaker_threshold=FAILING,
        breaker_cooldown_ms=COOLDOWN_MS,
    )
    parts = Parts(check(settings), store)
    try:
        parts.open([provider.pay])
    except BaseException:
        with suppress(BaseException):
            parts.close()
        raise
    provider.engine = Engine.over(parts)
    return provider.engine


def live(store, provider):
    """One life: orders that fail open the breaker, further ones wait for the probe."""
    engine = opened(store, provider)
    try:
        for n in range(FAILING):
            engine.start(PAY, {"n": n}, key=f"order-{n}")
            engine.advance(0)
        for n in range(FAILING, FAILING + WAITING):
            engine.start(PAY, {"n": n}, key=f"order-{n}")
        engine.run_until_idle()
    finally:
        with suppress(Crash):
            engine.close()


def ending(connection, provider):
    """What the store holds in the end; the chain and every record are sound."""
    engine = opened(FaultyStore(connection), provider)
    rows = engine.inspect.instances().items
    found = sorted((engine.inspect.show(row.id).data["n"], row.state) for row in rows)
    for row in rows:
        told = engine.replay(row.id)
        assert told.identical, told.first_difference
    assert engine.inspect.verify().valid
    breaker = engine.breakers.show("pay")
    engine.close()
    return found, (breaker.state, breaker.failures)


@pytest.mark.req("SEQ-HND-5", "CORE-REC-1")
def test_a_breaker_opens_and_one_probe_closes_it_whenever_the_engine_dies():
    connection, provider = new_database(1), Provider()
    clean = FaultyStore(connection)
    live(clean, provider)
    expected = ending(connection, provider)
    states = [(n, "failed" if n < FAILING else "completed") for n in range(FAILING + WAITING)]
    assert expected == (states, ("closed", 0))
    for write in range(1, clean.writes + 1):
        for moment in MOMENTS:
            connection, provider = new_database(1), Provider()
            with suppress(Crash):
                live(FaultyStore(connection, Fault(write, moment, statement=write % 7)), provider)
            live(FaultyStore(connection), provider)
            assert ending(connection, provider) == expected, f"{write}:{moment}"
            check_calls(provider.called, f"{write}:{moment}")
            connection.close()


def check_calls(called, where):
    """Nobody but the probe is called before the cool-down is over and the probe has worked."""
    opened_at = max(at for n, at in called if n < FAILING)
    later = [(n, at) for n, at in called if n >= FAILING]
    assert min(at for _, at in later) >= opened_at + COOLDOWN_MS, where
    assert {n for n, _ in later} == set(range(FAILING, FAILING + WAITING)), where
    probe = later[0][0]  # keyed: a call that was cut off is repeated under the same key
    first_other = next(index for index, (n, _) in enumerate(later) if n != probe)
    assert all(n == probe for n, _ in later[:first_other]), where
