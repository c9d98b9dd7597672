"""The engine's doors: closed ones stay shut, and no handler waits for the engine it runs in."""

from __future__ import annotations

import threading

import pytest

import detent
from detent import sequence, step, wait
from tests.acceptance.stage import digest, refused, virtual

DOOR = sequence("door", wait("w", signal="go"))


def running(path, handlers=(), **settings):
    return detent.Engine(path, handlers=handlers, **settings)


ENGINES = {
    "virtual": virtual,
    "thread": running,
    "process": lambda path, handlers=(): running(path, handlers, writer="process"),
}
every_engine = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES.keys())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


CALLS = {
    "start": lambda engine, _: engine.start(DOOR),
    "start_many": lambda engine, _: engine.start_many(DOOR, [1, 2]),
    "signal": lambda engine, instance: engine.signal(instance, "go"),
    "pause": lambda engine, instance: engine.pause(instance),
    "cancel": lambda engine, instance: engine.cancel(instance),
    "fork": lambda engine, instance: engine.fork(instance, seq=1),
    "migrate": lambda engine, instance: engine.migrate(instance, DOOR),
    "wait_for": lambda engine, instance: engine.wait_for(instance),
    "run_until_idle": lambda engine, _: engine.run_until_idle(),
    "advance": lambda engine, _: engine.advance(1),
    "close": lambda engine, _: engine.close(),
}


@every_engine
@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_blocking_call_inside_a_handler_is_refused_and_nothing_came_of_it(path, make, way):
    used = {}

    @detent.handler
    def meddle(call: str):
        CALLS[call](used["engine"], used["target"])

    @detent.handler("meddle")
    async def meddle_on_the_loop(call: str):
        CALLS[call](used["engine"], used["target"])

    with make(path, [meddle if way == "plain" else meddle_on_the_loop]) as engine:
        used["engine"] = engine
        used["target"] = engine.start(DOOR)
        made = {
            call: engine.start(sequence(call, step("s", "meddle", params={"call": call})))
            for call in CALLS
        }
        for call, instance in made.items():
            assert engine.wait_for(instance) == "failed", call
            assert engine.inspect.show(instance).error["code"] == "engine.reentrant", call
        target = engine.inspect.show(used["target"])
        assert target.summary.state == "waiting"
        assert not target.pause_requested
        assert target.snapshot_version == 1
        assert len(engine.inspect.instances().items) == len(CALLS) + 1


@every_engine
def test_reading_inside_a_handler_is_allowed(path, make):
    used = {}

    @detent.handler
    def look():
        return {"seen": used["engine"].inspect.show(used["target"]).summary.state}

    with make(path, [look]) as engine:
        used["engine"] = engine
        used["target"] = engine.start(DOOR)
        instance = engine.start(sequence("reader", step("s", look)))
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.show(instance).outputs["s"] == {"seen": "waiting"}


@every_engine
def test_a_closed_engine_refuses_every_verb(path, make):
    with make(path) as engine:
        instance = engine.start(DOOR)
    before = digest(path)
    more = {
        "deploy": lambda engine, _: engine.deploy(DOOR),
        "definition": lambda engine, _: engine.definition("door"),
        "deprecate": lambda engine, _: engine.deprecate("door", 1),
        "register": lambda engine, _: engine.register([]),
        "now": lambda engine, _: engine.now(),
        "explain": lambda engine, instance: engine.explain(instance),
        "replay": lambda engine, instance: engine.replay(instance),
        "show": lambda engine, instance: engine.inspect.show(instance),
        "verify": lambda engine, _: engine.inspect.verify(),
    }
    for name, call in (CALLS | more).items():
        if name != "close":
            with refused("engine.closed"):
                call(engine, instance)
    engine.close()
    assert digest(path) == before


def test_closing_answers_everybody_who_waits(path):
    engine = running(path)
    instance = engine.start(DOOR)
    answers = []

    def wait_in_vain():
        try:
            engine.wait_for(instance)
        except detent.DetentError as error:
            answers.append(error.code)

    waiting = threading.Thread(target=wait_in_vain)
    waiting.start()
    while not engine._parts.watch._watchers:
        pass
    engine.close()
    waiting.join(5)
    assert answers == ["engine.closed"]


@every_engine
@pytest.mark.parametrize("doubt", ["repeatable", "keyed", "once"])
@pytest.mark.req("CORE-EFF-1", "CORE-REC-1")
def test_what_was_not_called_when_an_engine_closed_is_called_by_the_next(path, make, doubt):
    """The second engine lacks the handler: its order is given again, and that is no crash."""
    called = []

    @detent.handler(on_doubt=doubt)
    def work():
        called.append(1)

    with make(path, [work]) as engine:
        instance = engine.start(sequence("work", wait("w", signal="go"), step("s", work)))
    with make(path) as engine:
        engine.signal(instance, "go")
        assert engine.wait_for(instance, "running") == "running"
    assert called == []
    with make(path, [work]) as engine:
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.audit(instance, action="error.retried") == []
    assert called == [1]
