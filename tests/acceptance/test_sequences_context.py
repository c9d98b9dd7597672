"""The context of an instance: who may write where (SEQ-CTX-1)."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step, sub_sequence, wait
from tests.acceptance.stage import actions, finished, virtual


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


@pytest.mark.req("SEQ-CTX-1")
def test_an_object_a_handler_returns_is_merged_into_data_and_nothing_else_is(engine):
    results = {
        "object": {"a": 1},
        "list": [1, 2],
        "text": "t",
        "number": 5,
        "nothing": None,
    }

    @detent.handler
    def give(which: str):
        return results[which]

    engine.register(give)
    steps = [step(name, give, params={"which": name}) for name in results]
    shown = finished(engine, sequence("s", *steps), {"z": 0})
    assert shown.data == {"z": 0, "a": 1}
    assert shown.outputs == results


@pytest.mark.req("SEQ-CTX-1")
def test_outputs_of_built_in_handlers_stay_out_of_data(engine):
    shown = finished(
        engine,
        sequence(
            "s",
            step("t", "transform", params={"a": 9, "b": 9}),
            step("l", "log", params={"message": "m"}),
            step("k", "set_state", params={"key": "x", "value": 1}),
        ),
        {"a": 1},
    )
    assert shown.data == {"a": 1}
    assert shown.outputs["t"] == {"a": 9, "b": 9}


@pytest.mark.req("SEQ-CTX-1")
def test_a_handler_cannot_write_config_audit_or_runtime_through_any_door(engine):
    @detent.handler
    def meddle(ctx: detent.HandlerContext):
        ctx.data["direct"] = 1
        ctx.config["k"] = 2
        return {"config": {"k": 3}, "audit": ["x"], "runtime": {"attempt": 9}, "ok": True}

    engine.register(meddle)
    definition = sequence(
        "s",
        step("m", meddle),
        step("after", "transform", params={"k": "{{ config.k }}", "a": "{{ runtime.attempt }}"}),
    )
    shown = finished(engine, definition, {"d": 1}, config={"k": 1})
    assert shown.config == {"k": 1}
    assert shown.outputs["after"] == {"k": 1, "a": 0}
    assert "direct" not in shown.data
    assert shown.data["ok"] is True
    assert "x" not in actions(engine, shown.summary.id)


@pytest.mark.req("SEQ-CTX-1")
def test_a_signal_a_person_and_a_child_write_data_only(engine):
    engine.deploy(sequence("child", step("s", "set_state", params={"key": "child", "value": 1})))
    definition = sequence(
        "s",
        wait("w", signal="go", store_as="config"),
        step("h", "noop", wait_for_input={"prompt": "?", "store_as": "runtime"}),
        sub_sequence("c", "child", input={"config": {"k": 7}, "from_child": 1}),
        step("last", "transform", params={"k": "{{ config.k }}", "state": "{{ state.child }}"}),
    )
    instance = engine.start(definition, {}, config={"k": 1})
    engine.signal(instance, "update_context", {"data": {"a": 1}, "config": {"k": 2}})
    engine.signal(instance, "go", {"k": 3})
    engine.signal(instance, "human_input:h", {"value": "yes", "config": {"k": 4}})
    assert engine.wait_for(instance) == "completed"
    shown = engine.inspect.show(instance)
    assert shown.config == {"k": 1}
    assert shown.outputs["last"] == {"k": 1, "state": None}
    assert shown.data["a"] == 1
    assert shown.data["from_child"] == 1


@pytest.mark.req("SEQ-CTX-1")
def test_the_runtime_is_the_engine_s_and_tells_step_and_attempt(engine):
    tried = []

    @detent.handler
    def shaky(step: str, attempt: int):
        tried.append((step, attempt))
        raise detent.Failed("no")

    engine.register(shaky)
    params = {"step": "{{ runtime.current_step }}", "attempt": "{{ runtime.attempt }}"}
    retry = detent.retry(3, initial_backoff="1s")
    finished(engine, sequence("s", step("a", shaky, params=params, retry=retry)))
    assert tried == [("a", 0), ("a", 1), ("a", 2)]


@pytest.mark.req("SEQ-CTX-1")
def test_the_audit_of_an_instance_only_grows(engine):
    instance = engine.start(sequence("s", wait("w", signal="go"), step("a", "noop")))
    seen = []
    for act in (
        lambda: engine.signal(instance, "update_context", {"audit": []}),
        lambda: engine.pause(instance),
        lambda: engine.resume(instance),
        lambda: engine.signal(instance, "go"),
    ):
        act()
        entries = engine.inspect.audit(instance)
        assert entries[: len(seen)] == seen
        assert len(entries) > len(seen)
        seen = entries


@pytest.mark.req("SEQ-CTX-1")
def test_a_context_of_150_kilobytes_round_trips_and_data_cannot_grow_over_the_limit(engine):
    @detent.handler
    def grow(name: str, size: int):
        return {name: "x" * size}

    engine.register(grow)
    data = {"text": "x" * 150_000}
    definition = sequence(
        "s",
        step("fits", grow, params={"name": "a", "size": 100_000}),
        step("over", grow, params={"name": "b", "size": 100_000}),
    )
    shown = finished(engine, definition, data)
    assert shown.summary.state == "failed"
    assert shown.error["code"] == "payload.too_large"
    assert set(shown.data) == {"text", "a"}
    assert shown.data["text"] == data["text"]
