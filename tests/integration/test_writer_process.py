"""The writer's own process dies, again and again; the engine that makes the calls does not."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter

import pytest

from detent import Engine, handler, parallel, sequence, step
from detent.model.errors import StoreError
from detent.runtime import links

KILLS = 15
CLASSES = ("repeatable", "keyed", "queryable", "once")
DEFINITION = sequence(
    "four",
    parallel(
        "all",
        *[[step(f"{doubt}-1", doubt, params={"name": f"{doubt}-1"})] for doubt in CLASSES],
    ),
    *[step(f"{doubt}-2", doubt, params={"name": f"{doubt}-2"}) for doubt in CLASSES],
)


class World:
    """What is outside: a log that every call is appended to, as a provider would keep one."""

    def __init__(self, path):
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words):
        os.write(self._file, (" ".join(words) + "\n").encode())

    def calls(self):
        return Counter(self.path.read_text().splitlines())

    def handlers(self):
        return [self._acting(doubt) for doubt in CLASSES]

    def _acting(self, doubt):
        def asked(request, key):
            self.note("reconciled", key)
            return {"status": "retry"}

        @handler(doubt, on_doubt=doubt, reconcile=asked if doubt == "queryable" else None)
        def act(ctx, name: str):
            self.note("called", ctx.instance_id, name)
            time.sleep(random.random() * 0.05)
            return {"done": name}

        return act


def killed(engine, times, chance):
    """Kill the writer's process at random moments, each time another one."""
    seen = 0
    for _ in range(times):
        link = engine._parts._link
        while link.pid == seen or engine._parts.held:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.15)
        seen = link.pid
        os.kill(seen, signal.SIGKILL)


def start(engine, key):
    """Start an instance whatever becomes of the writer; the key makes it one."""
    while True:
        try:
            return engine.start(DEFINITION, key=key)
        except StoreError as error:
            assert error.code == "store.unavailable"
            time.sleep(0.02)


@pytest.mark.req("CORE-EFF-1", "CORE-EFF-4", "CORE-REC-1")
def test_calls_are_neither_lost_nor_doubled_nor_doubted_when_only_the_writer_dies(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(links, "WRITER_MIN_LIFE_MS", 0)  # as if each had lived for long
    world, chance = World(tmp_path / "calls.log"), random.Random(7)
    with Engine(tmp_path / "s.db", writer="process", handlers=world.handlers()) as engine:
        killer = threading.Thread(target=killed, args=(engine, KILLS, chance))
        killer.start()
        instances = []
        while killer.is_alive():
            instances.append(start(engine, f"key-{len(instances)}"))
            time.sleep(0.02)
        killer.join()
        states = Counter(engine.wait_for(instance) for instance in instances)
        doubts = engine.inspect.doubts()
        crashed = [i for i in instances if "crashed" in str(engine.inspect.audit(i))]
        assert engine.inspect.verify().valid
    assert states == {"completed": len(instances)}
    assert (doubts, crashed) == ([], [])
    wanted = [f"{doubt}-{n}" for doubt in CLASSES for n in (1, 2)]
    assert world.calls() == {f"called {i} {name}": 1 for i in instances for name in wanted}
    assert len(instances) > KILLS
