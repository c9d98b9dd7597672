"""Signals: control words and names of one's own (SEQ-SIG)."""

from __future__ import annotations

import threading
import time

import pytest

import detent
from detent import loop, parallel, sequence, step, wait
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    actions,
    digest,
    outputs,
    refused,
    state,
    virtual,
)

SLEEPER = sequence(
    "sleeper", step("s", "sleep", params={"duration_ms": HOUR_MS}), step("after", "noop")
)
DOOR = sequence("door", wait("w", signal="go"), step("after", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


@pytest.mark.req("SEQ-SIG-1")
def test_a_pause_interrupts_a_sleep_at_once_and_it_keeps_its_due_tick(engine):
    instance = engine.start(SLEEPER)
    engine.advance(HOUR_MS // 2)
    engine.signal(instance, "pause")
    assert state(engine, instance) == "paused"
    engine.signal(instance, "resume")
    assert state(engine, instance) == "running"
    engine.advance(HOUR_MS // 2 - 100)
    assert state(engine, instance) == "running"
    engine.advance(100)
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-SIG-1")
def test_a_sleep_that_ended_while_paused_goes_on_at_the_resume(engine):
    instance = engine.start(SLEEPER)
    engine.signal(instance, "pause")
    engine.advance(DAY_MS)
    assert state(engine, instance) == "paused"
    engine.signal(instance, "resume")
    assert state(engine, instance) == "completed"


@pytest.mark.req("SEQ-SIG-1")
@pytest.mark.parametrize("definition", [SLEEPER, DOOR], ids=["sleep", "wait"])
def test_a_cancel_ends_a_sleep_or_a_wait_at_once(engine, definition):
    instance = engine.start(definition)
    engine.signal(instance, "cancel")
    assert state(engine, instance) == "cancelled"
    assert "after" not in engine.inspect.show(instance).outputs


@pytest.mark.req("SEQ-SIG-1")
def test_pause_and_cancel_reach_a_running_sleep_in_real_time(path):
    with detent.Engine(path) as engine:
        for name, end in (("pause", "paused"), ("cancel", "cancelled")):
            instance = engine.start(SLEEPER)
            began = time.monotonic()
            engine.signal(instance, name)
            assert engine.wait_for(instance, end) == end
            assert time.monotonic() - began < 1


@pytest.mark.req("SEQ-SIG-1")
def test_a_pause_while_a_call_is_under_way_lets_it_end_and_stops_before_the_next_step(path):
    begun, release = threading.Event(), threading.Event()
    called = []

    @detent.handler
    def slow():
        begun.set()
        release.wait(10)
        return {"slow": 1}

    @detent.handler
    def after():
        called.append(1)

    with detent.Engine(path, handlers=[slow, after]) as engine:
        instance = engine.start(sequence("s", step("a", slow), step("b", after)))
        assert begun.wait(5)
        engine.signal(instance, "pause")
        assert engine.wait_for(instance, "paused") == "paused"
        release.set()
        while not engine.inspect.audit(instance, action="effect.applied"):
            pass
        assert state(engine, instance) == "paused"
        assert called == []
        engine.resume(instance)
        assert engine.wait_for(instance) == "completed"
        assert engine.inspect.show(instance).outputs["a"] == {"slow": 1}
        assert called == [1]


@pytest.mark.req("SEQ-SIG-1")
def test_a_signal_that_changes_nothing_is_taken_and_journaled(engine):
    instance = engine.start(DOOR)
    engine.signal(instance, "resume")
    assert state(engine, instance) == "waiting"
    assert actions(engine, instance).count("event.received") == 1


@pytest.mark.req("SEQ-SIG-1", "SEQ-CTX-1")
@pytest.mark.parametrize(
    ("payload", "data"),
    [
        ({"data": {"a": 2}}, {"a": 2, "b": 1}),
        ({"a": 2, "c": 3}, {"a": 2, "b": 1, "c": 3}),
        ({"data": {"a": None}}, {"a": None, "b": 1}),
        ({"data": 5}, {"a": 1, "b": 1, "data": 5}),
        (
            {"data": {"x": 1}, "config": {"k": 9}, "audit": [1], "runtime": {}},
            {"a": 1, "b": 1, "x": 1},
        ),
        ({}, {"a": 1, "b": 1}),
    ],
)
def test_update_context_merges_into_data_and_touches_nothing_else(engine, payload, data):
    instance = engine.start(DOOR, {"a": 1, "b": 1}, config={"k": 1})
    engine.signal(instance, "update_context", payload)
    shown = engine.inspect.show(instance)
    assert shown.data == data
    assert shown.config == {"k": 1}


@pytest.mark.req("SEQ-SIG-1")
def test_signals_are_processed_before_the_next_step_in_the_order_they_were_sent(engine):
    definition = sequence(
        "s", step("d", "noop", delay="1h"), step("t", "transform", params={"n": "{{ data.n }}"})
    )
    instance = engine.start(definition, {"n": 0})
    for n in range(1, 6):
        engine.signal(instance, "update_context", {"n": n})
    engine.run_until_idle()
    assert engine.inspect.show(instance).outputs["t"] == {"n": 5}


@pytest.mark.req("SEQ-SIG-1")
def test_a_signal_during_a_delay_is_processed_at_once_and_does_not_shorten_it(engine):
    instance = engine.start(sequence("s", step("d", "noop", delay="1h")))
    due = engine.explain(instance).earliest
    engine.signal(instance, "update_context", {"n": 1})
    engine.signal(instance, "anything")
    assert engine.inspect.show(instance).data == {"n": 1}
    assert engine.explain(instance).earliest == due
    engine.signal(instance, "cancel")
    assert state(engine, instance) == "cancelled"


# names of one's own -------------------------------------------------------------------------------


@pytest.mark.req("SEQ-SIG-2")
@pytest.mark.parametrize("name", ["go", "custom:go", {"custom": "go"}])
def test_a_name_of_one_s_own_is_given_in_any_of_its_forms(engine, name):
    instance = engine.start(DOOR)
    engine.signal(instance, name, {"x": 1})
    assert state(engine, instance) == "completed"
    assert engine.inspect.show(instance).outputs["w"] == {"x": 1}


@pytest.mark.req("SEQ-SIG-2")
@pytest.mark.parametrize("payload", [None, 0, "", [], {}, False, 1.5, "text", [1, {"a": None}]])
def test_any_json_is_a_payload_and_becomes_the_output(engine, payload):
    instance = engine.start(sequence("s", wait("w", "1d", signal="go", store_as="got")))
    engine.signal(instance, "go", payload)
    assert state(engine, instance) == "completed"
    shown = engine.inspect.show(instance)
    assert shown.outputs["w"] == payload
    assert shown.data["got"] == payload


@pytest.mark.req("SEQ-SIG-2")
def test_one_that_nobody_waits_for_yet_is_kept_and_the_oldest_of_its_name_is_taken(engine):
    definition = sequence(
        "s", wait("t", "1h"), wait("a", signal="x"), wait("b", signal="y"), wait("c", signal="x")
    )
    instance = engine.start(definition)
    for name, payload in (("x", 1), ("y", 2), ("x", 3), ("x", 4), ("z", 5)):
        engine.signal(instance, name, payload)
    assert engine.inspect.show(instance).kept_signals == 5
    assert set(engine.explain(instance).signals) == {"x", "y", "z"}
    engine.run_until_idle()
    shown = engine.inspect.show(instance)
    assert shown.summary.state == "completed"
    assert [shown.outputs[id] for id in "abc"] == [1, 2, 3]
    assert shown.kept_signals == 0


@pytest.mark.req("SEQ-SIG-2")
def test_each_is_taken_once_also_with_several_who_wait(engine):
    both = parallel("p", wait("a", signal="go"), wait("b", signal="go"))
    instance = engine.start(sequence("s", both))
    engine.signal(instance, "go", 1)
    assert state(engine, instance) == "waiting"
    engine.signal(instance, "go", 2)
    assert state(engine, instance) == "completed"
    shown = engine.inspect.show(instance)
    assert [shown.outputs["a"], shown.outputs["b"]] == [1, 2]


@pytest.mark.req("SEQ-SIG-2")
def test_a_kept_signal_survives_a_restart(path):
    with virtual(path) as engine:
        instance = engine.start(sequence("s", wait("t", "1h"), wait("a", signal="x")))
        engine.signal(instance, "x", {"large": "y" * 50_000})
    with virtual(path) as engine:
        engine.advance(HOUR_MS)
        assert state(engine, instance) == "completed"
        assert engine.inspect.show(instance).outputs["a"] == {"large": "y" * 50_000}


@pytest.mark.req("SEQ-SIG-2", "CORE-INB-1")
def test_megabyte_payloads_pass_and_come_back_whole(path):
    texts = [chr(ord("a") + n) * 1_000_000 for n in range(6)]
    definition = sequence("s", loop("l", "true", wait("w", signal="x"), max_iterations=6))
    for settings in ({"writer": "thread"}, {"writer": "process"}):
        place = path.with_name(settings["writer"])
        with detent.Engine(place, **settings) as engine:
            instance = engine.start(definition)
            for text in texts:
                engine.signal(instance, "x", text)
            assert engine.wait_for(instance) == "completed"
            got = [out for block, out in outputs(engine, instance) if block == "w"]
            assert got == texts
            assert engine.inspect.verify().valid
            assert engine.replay(instance).identical


@pytest.mark.req("SEQ-SIG-2")
def test_many_large_signals_that_nobody_takes_do_not_harm_the_instance(engine):
    instance = engine.start(DOOR)
    for n in range(20):
        engine.signal(instance, "other", {"n": n, "text": "x" * 200_000})
    engine.signal(instance, "go", "fine")
    assert engine.wait_for(instance) == "completed"
    assert engine.replay(instance).identical


@pytest.mark.req("SEQ-SIG-1")
def test_a_signal_for_nobody_is_refused(engine, path):
    before = digest(path)
    with refused("instance.not_found"):
        engine.signal("019b76da-a800-7dc0-9869-bd9e49907eb8", "go")
    assert digest(path) == before
