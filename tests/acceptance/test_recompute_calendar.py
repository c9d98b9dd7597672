"""What the calendar said stays as recorded; `recompute` tells what it would say today."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent.kernel import timing

FRIDAY = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


@detent.handler
def send() -> dict[str, bool]:
    """An act."""
    return {"sent": True}


@pytest.fixture
def sent(detent_engines):
    engine = detent_engines([send], epoch_ms=int(FRIDAY.timestamp()) * 1000)
    delay = {"duration": 86_400_000, "business_days_only": True}
    instance = engine.start(detent.sequence("mail", detent.step("send", send, delay=delay)))
    engine.run_until_idle()
    return engine, instance


@pytest.mark.req("CORE-RPL-1")
def test_the_same_zone_data_says_the_same_again(sent):
    engine, instance = sent
    assert engine.inspect.recompute(instance) == []


@pytest.mark.req("SEQ-TIM-2")
def test_other_data_changes_no_replay_and_shows_what_would_differ(sent, monkeypatch):
    engine, instance = sent
    real = timing.business_instant

    def closed_on_monday(ms, zone, holidays, *policies):
        return real(ms, zone, holidays | {"2026-01-05"}, *policies)

    monkeypatch.setattr(timing, "business_instant", closed_on_monday)
    (change,) = engine.inspect.recompute(instance)
    assert change.fact.startswith("calendar:delay:send")
    assert change.now["ms"] - change.recorded["ms"] == 86_400_000
    assert engine.replay(instance).identical
