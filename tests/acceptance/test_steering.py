"""Steering through the engine: every verb is recorded, replays, and survives a restart."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent import loop, parallel, sequence, step, sub_sequence, wait
from detent.bootstrap.visitor import Visitor
from detent.model import limits
from detent.testing import Calls
from tests.acceptance.post import EPOCH_MS, Post
from tests.acceptance.stage import (
    HOUR_MS,
    actions,
    moves,
    nodes,
    outputs,
    proved,
    refused,
    state,
    virtual,
)

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def engine():
    """Whatever a test does: the chain verifies, and every instance replays to the same bytes."""
    with virtual() as engine:
        yield engine
        proved(engine)


# data and state ----------------------------------------------------------------------------------


@pytest.mark.req("SEQ-CTX-1")
def test_data_is_replaced_whatever_the_state_and_config_is_not(engine):
    made = engine.start(sequence("s", step("a", "noop")), {"old": 1}, config={"c": 1})
    engine.run_until_idle()
    engine.set_data(made, {"new": [1, 2]})
    shown = engine.inspect.show(made)
    assert (shown.data, shown.config) == ({"new": [1, 2]}, {"c": 1})
    assert shown.summary.state == "completed"
    with refused("payload.too_large"):
        engine.set_data(made, {"v": "x" * limits.CONTEXT_BYTES})
    with refused("instance.not_found"):
        engine.set_data("nobody", {})
    assert engine.inspect.show(made).data == {"new": [1, 2]}


@pytest.mark.req("CORE-STM-1", "CORE-STM-6")
def test_states_are_set_by_the_table_and_every_move_is_audited(engine):
    made = engine.start(sequence("s", wait("w", "1h"), step("a", "noop")), at=HOUR)
    assert engine.set_state(made, "paused") == "paused"
    with refused("instance.transition"):
        engine.set_state(made, "completed")
    assert engine.set_state(made, "scheduled", at=2 * HOUR) == "scheduled"
    assert engine.inspect.show(made).summary.due_ms == 2 * HOUR_MS + EPOCH_MS
    engine.advance(HOUR_MS)
    assert state(engine, made) == "scheduled"
    engine.advance(HOUR_MS)
    with refused("instance.transition"):
        engine.set_state(made, "paused")
    with refused("instance.transition"):
        engine.set_state(made, "running")
    assert engine.set_state(made, "failed") == "failed"
    assert engine.set_state(made, "scheduled") == "waiting"
    engine.run_until_idle()
    assert moves(engine, made) == [
        ("scheduled", "paused"),
        ("paused", "scheduled"),
        ("scheduled", "running"),
        ("running", "waiting"),
        ("waiting", "failed"),
        ("failed", "scheduled"),
        ("scheduled", "running"),
        ("running", "waiting"),
        ("waiting", "running"),
        ("running", "completed"),
    ]
    with refused("instance.transition"):
        engine.set_state(made, "scheduled")


@pytest.mark.parametrize("wrong", ["done", "", None, 5])
def test_what_is_no_state_is_refused_at_the_door(engine, wrong):
    made = engine.start(sequence("s", wait("w", signal="x")))
    with refused("request.invalid"):
        engine.set_state(made, wrong)
    with refused("request.invalid"):
        engine.set_state(made, "cancelled", at=HOUR)
    with refused("request.invalid"):
        engine.set_state(made, "scheduled", at=dt.datetime(2030, 1, 1))  # noqa: DTZ001


@pytest.mark.req("CORE-STM-1", "SEQ-BLK-6")
def test_a_child_driven_to_its_end_wakes_its_parent(engine):
    engine.deploy(sequence("kid", wait("w", signal="never")))
    made = engine.start(sequence("s", sub_sequence("c", "kid"), step("a", "noop")))
    engine.run_until_idle()
    (kid,) = [item.id for item in engine.inspect.instances().items if item.parent == made]
    engine.set_state(kid, "failed")
    engine.run_until_idle()
    assert (state(engine, kid), state(engine, made)) == ("failed", "failed")


# due times ---------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "CORE-CLK-3")
def test_a_due_time_is_moved_either_way_and_kept_to_the_tick(engine):
    made = engine.start(sequence("s", step("a", "noop", delay="2h")))
    engine.advance(1000)
    engine.reschedule(made, HOUR)
    assert engine.inspect.show(made).summary.due_ms == 3 * HOUR_MS + EPOCH_MS
    engine.reschedule(made, -2 * HOUR_MS)
    engine.advance(to=HOUR_MS // 100 - 1)
    assert state(engine, made) == "scheduled"
    engine.advance(100)
    assert state(engine, made) == "completed"
    with refused("instance.transition"):
        engine.reschedule(made, HOUR)
    with refused("request.invalid"):
        engine.reschedule(made, "1h")


@pytest.mark.req("SEQ-LIM-1", "SEQ-OPS-1")
def test_a_place_in_line_at_the_gate_cannot_be_moved():
    with Post().open() as post:
        post.engine.limits.set("box", max=1, window="1h")
        _, second = post.start(post.mail("box"), "a", "b")
        post.advance(1)
        assert post.state(second) == "scheduled"
        with refused("instance.transition"):
            post.engine.reschedule(second, -HOUR)
        post.advance(10)
        assert len(post.log) == 1
        post.engine.run_until_idle()
        assert len(post.log) == 2
        proved(post.engine)


@pytest.mark.req("SEQ-TIM-1", "SEQ-OPS-1")
def test_a_window_that_is_closed_stays_closed(engine):
    definition = sequence("s", step("a", "noop", send_window={"start_hour": 9, "end_hour": 10}))
    made = engine.start(definition)
    engine.advance(1000)
    opening = engine.inspect.show(made).summary.due_ms
    engine.reschedule(made, -HOUR)
    engine.run_until_idle()
    (executed,) = [e for e in engine.inspect.audit(made) if e.action == "step.executed"]
    assert executed.tick * 100 + EPOCH_MS == opening


# resuming from a block ---------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "CORE-EFF-2")
def test_outputs_and_tree_of_what_is_repeated_are_wiped_and_calls_are_new(engine):
    calls = Calls()
    act = calls.handler("act", {"n": 1}, {"n": 2}, {"n": 3}, {"n": 4})
    engine.register([act])
    definition = sequence(
        "s",
        step("a", act),
        loop("l", "true", step("b", act), max_iterations=2),
        step("f", "assert", params={"condition": "data.ok == true"}),
    )
    made = engine.start(definition, {})
    engine.run_until_idle()
    assert state(engine, made) == "failed"
    told = engine.resume_from(made, "l", data={"ok": True})
    assert (told["resumed_from"], told["outputs_deleted"]) == ("l", 2)
    assert [block for block, _ in outputs(engine, made)] == ["a"]
    assert nodes(engine, made)["f"] == "pending"
    engine.run_until_idle()
    assert state(engine, made) == "completed"
    assert [block for block, _ in outputs(engine, made)] == ["a", "b", "b", "l", "f"]
    assert len({call.key for call in calls.made}) == len(calls.made) == 5
    with refused("instance.transition") as caught:
        engine.resume_from(made, "a")
    assert "fork" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"block": ""}, "request.invalid"),
        ({"block": "inner"}, "request.invalid"),
        ({"block": "a", "data": [1]}, "request.invalid"),
        ({"block": "a", "signals": ["x"]}, "request.invalid"),
        ({"block": "a", "signals": [{"name": "cancel"}]}, "request.invalid"),
        ({"block": "a", "signals": [{"name": "update_context"}]}, "payload.invalid"),
    ],
)
def test_a_wrong_resume_changes_nothing(engine, arguments, code):
    made = engine.start(sequence("s", step("a", "fail"), parallel("p", step("inner", "noop"))))
    engine.run_until_idle()
    with refused(code):
        engine.resume_from(made, **arguments)
    assert state(engine, made) == "failed"


# injecting ---------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "CORE-RPL-1")
def test_injected_blocks_run_show_in_the_tree_and_replay(engine):
    made = engine.start(sequence("s", wait("w", signal="go"), step("a", "noop")))
    told = engine.inject(made, [step("x", "noop"), parallel("p", step("y", "noop"))])
    assert told["injected_block_ids"] == ["x", "p"]
    assert told["total_injected"] == 2
    assert engine.inject(made, [step("z", "noop")], position=0)["position"] == 0
    assert nodes(engine, made)["p/y"] == "pending"
    engine.signal(made, "go")
    engine.run_until_idle()
    ran = [e.node for e in engine.inspect.audit(made) if e.action == "step.executed"]
    assert ran == ["a", "z", "x", "p/y"]
    assert set(nodes(engine, made).values()) == {"completed"}


@pytest.mark.req("SEQ-OPS-1")
@pytest.mark.parametrize(
    ("blocks", "code"),
    [
        ([], "definition.invalid"),
        ("x", "request.invalid"),
        ([{"type": "step", "id": "x"}], "definition.invalid"),
        ([step("x", "nobody_has_this")], "handler.unknown"),
        ([step("a", "noop")], "definition.invalid"),
        ([step("x", "noop"), step("x", "noop")], "definition.invalid"),
    ],
)
def test_blocks_are_checked_like_a_definition(engine, blocks, code):
    made = engine.start(sequence("s", wait("a", signal="go")))
    with refused(code):
        engine.inject(made, blocks)
    with refused("request.invalid"):
        engine.inject(made, [step("ok", "noop")], position=-1)
    assert list(nodes(engine, made)) == ["a"]


@pytest.mark.req("SEQ-HND-1", "CORE-RPL-1", "CORE-RPL-2")
def test_a_step_modifies_its_own_instance_and_a_fork_takes_the_blocks_along(engine):
    added = {"type": "step", "id": "x", "handler": "transform", "params": {"v": "{{ data.v }}"}}
    definition = sequence(
        "s",
        step("m", "self_modify", params={"blocks": [added, wait("w", signal="go")]}),
        step("a", "noop"),
    )
    made = engine.start(definition, {"v": 7})
    engine.run_until_idle()
    assert (state(engine, made), outputs(engine, made)[-1]) == ("waiting", ("x", {"v": 7}))
    forked = engine.fork(made, seq=1)
    engine.signal(forked, "go")
    engine.run_until_idle()
    assert (state(engine, made), state(engine, forked)) == ("waiting", "completed")
    assert engine.inspect.what_if(made, detent.Changes()).same


# options of the whole run ------------------------------------------------------------------------


def test_service_levels_and_interceptors_are_told_and_change_nothing(engine):
    definition = sequence(
        "s",
        wait("w", "2h"),
        step("a", "noop"),
        sla={"max_runtime": "1h"},
        interceptors={
            "after_step": {"handler": "log", "params": {"k": 1}},
            "on_complete": {"handler": "log"},
        },
    )
    made = engine.start(definition)
    engine.run_until_idle()
    assert state(engine, made) == "completed"
    assert len(actions(engine, made, "sla.breached")) == 1
    assert outputs(engine, made) == [
        ("w", {"timed_out": True}),
        ("a", {}),
        ("_interceptor:after:a", {"k": 1}),
        ("_interceptor:on_complete", None),
    ]


@pytest.mark.req("SEQ-OPS-1")
def test_session_and_budget_are_visible_and_a_budget_pauses(engine):
    calls = Calls()
    ask = calls.handler("ask", *[{"usage": {"input_tokens": 60, "output_tokens": 10}}] * 3)
    engine.register([ask])
    definition = sequence("s", *(step(f"a{n}", ask) for n in range(3)))
    budget = {"max_total_tokens": 100, "max_steps": None}
    made = engine.start(definition, session="talk-1", budget=budget)
    engine.run_until_idle()
    shown = engine.inspect.show(made)
    assert (shown.summary.state, shown.paused_reason) == ("paused", "budget_exceeded")
    assert shown.session == "talk-1"
    assert shown.budget == {"max_total_tokens": 100}
    assert shown.spent == {"input": 120, "output": 20, "total": 140}
    assert shown.budget_breach == {"limit": "max_total_tokens", "max": 100, "used": 140}
    assert calls.count("ask") == 2
    engine.resume(made)
    engine.run_until_idle()
    assert (state(engine, made), calls.count("ask")) == ("completed", 3)


@pytest.mark.parametrize(
    "options",
    [
        {"session": ""},
        {"session": 5},
        {"session": "x" * (limits.SESSION_CHARS + 1)},
        {"budget": 5},
        {"budget": {"max_money": 1}},
        {"budget": {"max_steps": -1}},
        {"budget": {"max_steps": True}},
        {"budget": {"max_steps": limits.BUDGET_MOST + 1}},
    ],
)
def test_a_wrong_session_or_budget_starts_nothing(engine, options):
    with refused("request.invalid"):
        engine.start(sequence("s", step("a", "noop")), **options)
    assert engine.inspect.instances().items == ()


# restarts ----------------------------------------------------------------------------------------


def steered(path, *, restart):
    """Steer four instances, hour by hour; with `restart` the engine is opened anew each hour."""
    calls = Calls()
    act = calls.handler("act", *[{"usage": {"total_tokens": 5}}] * 40)
    engine = virtual(path, [act])
    definition = sequence("s", step("a", act), wait("w", "3h"), step("b", act), step("f", "fail"))
    made = [
        engine.start(definition, {"n": n}, key=f"k{n}", budget={"max_steps": 9}) for n in range(4)
    ]
    late = [step("x", act, delay="2h"), step("y", "noop")]
    verbs = [
        lambda: engine.inject(made[0], late),
        lambda: engine.set_state(made[1], "scheduled", at=5 * HOUR),
        lambda: engine.set_data(made[2], {"n": "new"}),
        lambda: None,
        lambda: engine.resume_from(made[0], "x"),
        lambda: engine.reschedule(made[0], HOUR),
        lambda: engine.set_state(made[3], "scheduled"),
        lambda: engine.bulk("retry", {"states": ["failed"]}),
        lambda: engine.resume_from(made[3], "w"),
    ]
    for verb in verbs:
        verb()
        engine.advance(HOUR_MS)
        if restart:
            engine.close()
            engine = virtual(path, [act])
    engine.run_until_idle()
    proved(engine)
    found = [(state(engine, each), engine.inspect.show(each).data) for each in made]
    told = [[(e.tick, e.action, e.node) for e in engine.inspect.audit(each)] for each in made]
    engine.close()
    return found, told


@pytest.mark.req("CORE-REC-1", "CORE-RPL-1")
def test_steering_goes_the_same_way_however_often_the_engine_is_opened_anew(tmp_path):
    once = steered(tmp_path / "a.db", restart=False)
    assert once == steered(tmp_path / "b.db", restart=True)
    assert [state for state, _ in once[0]] == ["completed", "failed", "failed", "failed"]


@pytest.mark.req("CORE-SCH-4", "SEQ-OPS-1")
def test_another_process_steers_through_the_store(tmp_path):
    path = tmp_path / "store.db"
    with detent.Engine(path) as engine, Visitor(path) as visitor:
        made = engine.start(sequence("s", wait("w", signal="go"), step("f", "fail")), {"v": 1})
        engine.wait_for(made, "waiting")
        visitor.set_data(made, {"v": 2})
        assert visitor.inject(made, [step("x", "noop")])["total_injected"] == 1
        told = visitor.bulk("signal", {"states": ["waiting"]}, {"name": "go"})
        assert told.applied == 1
        assert engine.wait_for(made) == "failed"
        assert visitor.resume_from(made, "x")["resumed_from"] == "x"
        assert engine.wait_for(made, "completed") == "completed"
        assert engine.inspect.show(made).data == {"v": 2}
        with refused("instance.transition"):
            visitor.set_state(made, "scheduled")
        with refused("instance.transition"):
            visitor.reschedule(made, 1000)
        proved(engine)
