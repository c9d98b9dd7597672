"""Corners of the gate that simulated worlds ran into."""

from __future__ import annotations

import pytest

from detent import Failed, handler, retry, sequence, step
from detent.testing import virtual_engine

SLEEP = sequence("sleeper", step("z", "sleep", params={"duration_ms": 60_000}))


@handler(on_doubt="once")
def pay():
    raise RuntimeError("no answer")


@pytest.mark.req("SEQ-LIM-4")
def test_a_call_that_is_tried_again_after_doubt_needs_its_concurrency_key_again():
    # Doubt is a wait, so the key goes to the next; trying again must not make two of one.
    with virtual_engine([pay]) as engine:
        engine.deploy(SLEEP)
        key = {"concurrency_key": "account", "max_concurrency": 1}
        doubted = engine.start(sequence("payer", step("p", pay)), **key)
        engine.advance(0)
        holder = engine.start(SLEEP, **key)
        engine.advance(0)
        states = [engine.explain(each).state for each in (doubted, holder)]
        assert states == ["waiting", "running"]
        (effect,) = engine.explain(doubted).effects
        engine.resolve(doubted, effect.key, "again")
        assert engine.explain(doubted).state == "scheduled"
        engine.advance(60_000)
        assert engine.explain(holder).state == "completed"
        engine.resolve(doubted, effect.key, "happened", {})
        engine.run_until_idle()
        assert engine.explain(doubted).state == "completed"


@pytest.mark.req("SEQ-LIM-1")
def test_a_key_that_only_a_provider_closed_can_be_opened():
    @handler
    def send(ctx):
        if ctx.attempt == 1:
            raise Failed("too many", retry_after=3_600)

    letter = sequence(
        "letter",
        step("s", send, rate_limit_key="mailbox", retry=retry(2, initial_backoff=1)),
    )
    with virtual_engine([send]) as engine:
        first = engine.start(letter)
        engine.advance(1_000)
        assert "'mailbox'" in engine.explain(first).summary
        engine.limits.open("mailbox")
        engine.advance(0)
        assert engine.explain(first).state == "completed"
