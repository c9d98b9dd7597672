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
from detent.runtime.writer import Writer
from tests.integration.engine_processes import noted, run

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
            if error.code != "store.unavailable":
                raise
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
        actions = {each.action for i in instances for each in engine.inspect.audit(i)}
        assert engine.inspect.verify().valid
    assert states == {"completed": len(instances)}
    assert actions.isdisjoint({"error.retried", "effect.escalated", "effect.reconciled"})
    wanted = [f"{doubt}-{n}" for doubt in CLASSES for n in (1, 2)]
    assert world.calls() == {f"called {i} {name}": 1 for i in instances for name in wanted}
    assert len(instances) > KILLS


def settled(holds):
    """Wait until something holds."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.005)


@pytest.mark.req("CORE-SCH-4", "CORE-EFF-4")
def test_the_lock_is_the_engines_as_long_as_its_calls_may_run(tmp_path, caplog):
    entered, release = threading.Event(), threading.Event()

    @handler("pay", on_doubt="once")
    def pay():
        entered.set()
        release.wait(20)
        return {"paid": True}

    engine = Engine(tmp_path / "s.db", writer="process", handlers=[pay])
    instance = engine.start(sequence("p", step("a", "pay")))
    assert entered.wait(20)
    link = engine._parts._link
    first = link.pid
    os.kill(first, signal.SIGKILL)
    settled(lambda: link.pid != first and not engine._parts.held)
    os.kill(link.pid, signal.SIGKILL)  # it dies too young to be followed by a third
    settled(lambda: link._service.desk._shut is not None)
    with pytest.raises(StoreError, match=r"store\.owned"):
        Engine(tmp_path / "s.db", handlers=[pay])
    release.set()
    engine.close()
    with Engine(tmp_path / "s.db", handlers=[pay]) as engine:  # nobody heard the outcome
        assert engine.wait_for(instance, "waiting") == "waiting"
        assert [each.state for each in engine.inspect.doubts()] == ["indeterminate"]


DEADLY = """
@detent.handler
def deadly(ctx: detent.HandlerContext):
    note("call", ctx.key)
    os.kill(os.getpid(), signal.SIGKILL)


with detent.Engine(path, handlers=[deadly], writer="process") as engine:
    say(engine.wait_for(engine.start(sequence("d", step("s", deadly)), key="d")))
"""


def harmless():
    return {}


@pytest.mark.req("CORE-REC-3")
def test_a_handler_that_kills_the_engine_is_a_crash_though_its_writer_ends_in_order(tmp_path):
    path = tmp_path / "s.db"
    for _ in range(2):
        assert run(DEADLY, path)[0] == -signal.SIGKILL
    with Engine(path, handlers=[handler("deadly")(harmless)]) as engine:
        (shown,) = engine.inspect.instances().items
        assert engine.wait_for(shown.id) == "completed"
        retried = engine.inspect.audit(shown.id, action="error.retried")
    assert [each.detail["crashes"] for each in retried] == [1, 2]
    assert len(noted(path)) == 2


@pytest.mark.req("CORE-EFF-4", "CORE-REC-1")
def test_a_writers_thread_that_dies_is_followed_by_another_and_leaves_no_connection(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(links, "WRITER_MIN_LIFE_MS", 0)
    path, world = tmp_path / "s.db", World(tmp_path / "calls.log")
    turn, left, fell = Writer.turn, [], []

    def falling(writer):
        if left and random.random() < 0.3:
            fell.append(left.pop())
            raise ValueError("a fault of ours")
        return turn(writer)

    monkeypatch.setattr(Writer, "turn", falling)
    with Engine(path, handlers=world.handlers()) as engine:
        settled(lambda: engine.inspect.instances() is not None)
        connections = opened(path)
        instances = []
        for n in range(30):
            left.append(n)
            instances.append(start(engine, f"key-{n}"))
        states = Counter(engine.wait_for(instance) for instance in instances)
        left.clear()
        settled(lambda: opened(path) == connections)
    assert fell
    assert states == {"completed": len(instances)}
    assert set(world.calls().values()) == {1}
    assert len(world.calls()) == len(instances) * 2 * len(CLASSES)
    assert opened(path) == 0
    Engine(path).close()  # nor is the lock left behind


def opened(path):
    """How many descriptors of the store and its lock are open in this process."""
    found = []
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))  # noqa: PTH115
        except OSError:
            continue
    return sum(each in (str(path), f"{path}.lock") for each in found)
