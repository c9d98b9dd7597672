"""Virtual time: orders whose handler is registered later are performed then, and not before."""

from __future__ import annotations

import pytest

from detent import Engine, handler, sequence, step
from detent.model.decision import HandlerSpec
from detent.model.link import Control

CLASSES = ("repeatable", "once")


def later(doubt, called):
    @handler("later", on_doubt=doubt)
    def act():
        called.append(1)
        return {"done": True}

    return act


@pytest.fixture(params=CLASSES)
def parked(request, tmp_path):
    """An engine with an order of a handler that is known and not here, as after a restart."""
    path, called = tmp_path / "s.db", []
    act = later(request.param, called)
    with Engine(path, clock="virtual", handlers=[act]) as engine:
        instance = engine.start(sequence("s", step("a", "later")))
    with Engine(path, clock="virtual") as engine:
        spec = HandlerSpec(name="later", doubt=request.param)
        engine._parts.submit(Control("register", args=[{"name": "later", "doubt": spec.doubt}]))
        engine.advance(1_000)
        assert engine._parts.parked() == {"later": 1}
        yield engine, instance, act, called


def test_a_parked_order_is_performed_once_its_handler_is_registered(parked):
    engine, instance, act, called = parked
    assert called == []
    engine.register([act])
    assert called == []  # time stands still until somebody moves it
    engine.run_until_idle()
    assert (called, engine._parts.parked()) == ([1], {})
    assert engine.wait_for(instance) == "completed"
    assert engine.replay(instance).identical


@pytest.mark.req("CORE-EFF-1")
def test_a_parked_order_that_is_cancelled_is_never_performed_and_leaves_no_doubt(parked):
    engine, instance, act, called = parked
    engine.cancel(instance)
    engine.advance(1_000)
    assert engine._parts.parked() == {}
    engine.register([act])
    engine.run_until_idle()
    assert called == []
    assert engine.wait_for(instance) == "cancelled"
    assert engine.inspect.doubts() == []
