"""A command that finds no running engine carries itself out and lets nothing else move."""

from __future__ import annotations

import pytest

import detent
from detent import Engine, sequence, step
from detent.bootstrap.reach import reach
from detent.runtime.settings import WriterSettings

LETTER = sequence("letter", step("send", "send", params={"n": "{{data.n}}"}, rate_limit_key="box"))
ALARM = sequence("alarm", step("ring", "send", params={"n": 0}, delay="5s"))
MINUTE = 60_000


@pytest.fixture
def store(tmp_path):
    """A store in virtual time with a handler's log, opened by whoever needs it."""
    path, calls = tmp_path / "s.db", []

    @detent.handler("send")
    async def send(n: int):
        calls.append(n)

    Engine(path, clock="virtual", handlers=[send]).close()
    return path, send, calls


def errand(path):
    return Engine(path, turns=WriterSettings(errand=True))


@pytest.mark.req("SEQ-LIM-1", "CORE-POL-1")
def test_nobody_in_line_passes_while_nobody_could_make_the_call(store):
    """Grants given out while no engine runs would all be called at once when one does."""
    path, send, calls = store
    with Engine(path, handlers=[send]) as engine:
        engine.limits.set("box", max=1, window="10s")
        for n in range(4):
            engine.start(LETTER, {"n": n})
        engine.advance(0)
    for _ in range(3):
        with errand(path) as engine:
            engine.advance(MINUTE)
            engine.limits.set("other", max=1, window="10s")
    with Engine(path, handlers=[send]) as engine:
        engine.advance(0)
        assert calls == [0, 1]  # one before, one now
        engine.run_until_idle()
        assert calls == [0, 1, 2, 3]
        assert engine.inspect.verify().valid


@pytest.mark.req("SEQ-LIM-1")
def test_an_instance_that_an_errand_moves_stands_in_line_instead_of_taking_a_slot(store):
    path, send, calls = store
    with Engine(path, handlers=[send]) as engine:
        engine.limits.set("box", max=1, window="10s")
        held = [engine.start(LETTER, {"n": n}, at=engine.now()) for n in range(2)]
        engine.advance(0)
        engine.pause(held[1])
    with errand(path) as engine:
        engine.advance(MINUTE)
        engine.resume(held[1])
    with Engine(path, handlers=[send]) as engine:
        assert "rate limit 'box'" in engine.explain(held[1]).summary
        engine.run_until_idle()
        assert calls == [0, 1]
        assert engine.replay(held[1]).identical


@pytest.mark.req("CORE-CLK-3", "SEQ-TIM-3")
def test_no_wait_ends_and_no_schedule_fires_on_an_errand(store):
    path, send, _calls = store
    with Engine(path, handlers=[send]) as engine:
        waiting = engine.start(ALARM)
        engine.deploy(ALARM)
        engine.crons.create("alarm", "* * * * *", id="every-minute")
        engine.advance(0)
    with errand(path) as engine:
        engine.advance(10 * MINUTE)
        engine.limits.set("other", max=1, window="10s")
        assert engine.inspect.show(waiting).summary.state == "scheduled"
        assert len(engine.inspect.instances().items) == 1
    with Engine(path, handlers=[send]) as engine:
        engine.advance(MINUTE)
        assert engine.inspect.show(waiting).summary.state == "completed"
        assert len(engine.inspect.instances().items) == 4  # with one made up for, and two on time


def test_a_command_without_an_owner_is_an_errand(store):
    path, *_ = store
    with reach(path) as door:
        assert isinstance(door, Engine)
        assert door._settings.turns.errand
