"""wait: a duration, a signal, or the first of both."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.model.inputs import SignalReceived
from tests.unit.kernel.blocks import loop, noop, parallel, put, wait
from tests.unit.kernel.driver import run


@pytest.mark.req("CORE-CLK-3", "CORE-STM-1")
@pytest.mark.parametrize(("ms", "ticks"), [(1, 1), (100, 1), (101, 2), (60_000, 600)])
def test_a_duration_ends_at_the_first_tick_not_before_it(ms, ticks):
    world = run(wait(duration=ms))
    start = world.tick
    assert world.state == "waiting"
    assert world.decision.due == start + ticks
    assert world.entries("wait.started")[0][2] == {"kind": "timer", "due": start + ticks}
    if ticks > 1:
        world.at(start + ticks - 1)
        assert world.state == "waiting"
    world.at(start + ticks)
    assert world.state == "completed"
    assert world.outputs["w"] == {"timed_out": True}


@pytest.mark.req("CORE-CLK-3")
def test_a_late_turn_ends_a_wait_that_was_due_long_ago():
    world = run(wait(duration=1000), wait("w2", duration=1000))
    world.at(500)
    assert world.decision.due == 510, "the next wait counts from the turn that acts"


@pytest.mark.req("SEQ-SIG-2")
def test_the_payload_of_the_signal_is_the_output():
    world = run(wait(signal="paid"), noop("after"))
    world.signal("custom:other", {"n": 0})
    assert world.state == "waiting"
    world.signal("custom:paid", {"n": 1})
    assert world.state == "completed"
    assert world.outputs["w"] == {"n": 1}


@pytest.mark.req("SEQ-SIG-2")
@pytest.mark.parametrize("payload", [None, 0, "text", [1, 2], {"a": {"b": None}}])
def test_any_json_is_a_payload(payload):
    world = run(wait(signal="x", store_as="got"))
    world.signal("custom:x", payload)
    assert world.outputs["w"] == payload
    assert world.data == {"got": payload}


def test_the_first_of_signal_and_duration_ends_the_wait():
    world = run(wait(signal="x", duration=1000, store_as="got"))
    world.after(900)
    world.signal("custom:x", "in time")
    assert world.data == {"got": "in time"}
    world = run(wait(signal="x", duration=1000, store_as="got"))
    world.after(1000)
    assert world.data == {"got": {"timed_out": True}}


@pytest.mark.req("CORE-SCH-2")
def test_a_signal_taken_in_at_the_due_tick_comes_before_the_time_out():
    world = run(wait(signal="x", duration=1000))
    world.tick += 10
    world.signal("custom:x", "just in time")
    assert world.outputs["w"] == "just in time"


@pytest.mark.req("CORE-SCH-2")
def test_a_signal_taken_in_after_the_due_tick_comes_after_the_time_out():
    world = run(wait(signal="x", duration=1000), wait("w2", signal="x"))
    world.tick += 11
    world.signal("custom:x", "late")
    assert world.outputs == {"w": {"timed_out": True}, "w2": "late"}


@pytest.mark.req("SEQ-SIG-2")
def test_early_signals_are_kept_and_taken_oldest_first_each_once():
    world = run(
        wait("gate", duration=100),
        wait("a", signal="x"),
        wait("b", signal="x"),
        wait("c", signal="x"),
    )
    for number in (1, 2):
        world.signal("custom:x", number)
    world.signal("custom:y", "other")
    world.after(100)
    assert world.outputs == {"gate": {"timed_out": True}, "a": 1, "b": 2}
    assert world.state == "waiting"
    world.signal("custom:x", 3)
    assert world.state == "completed"
    assert world.snap().signals == []


@pytest.mark.req("SEQ-SIG-2")
def test_one_signal_ends_one_wait_only_the_first_in_the_tree():
    world = run(parallel([wait("a", signal="x")], [wait("b", signal="x")]))
    world.signal("custom:x", 1)
    assert world.outputs == {"a": 1}
    world.signal("custom:x", 2)
    assert world.outputs == {"a": 1, "b": 2}
    assert world.state == "completed"


@pytest.mark.req("SEQ-SIG-2")
def test_kept_signals_are_bounded_and_the_sender_is_told():
    world = run(wait(signal="never"))
    world.tell(*[_x(n) for n in range(limits.SIGNALS_KEPT)])
    assert len(world.snap().signals) == limits.SIGNALS_KEPT
    decision = world.signal("custom:x", "one too many", id="s1")
    assert [(v.id, v.ok, v.code) for v in decision.verdicts] == [("s1", False, "request.invalid")]
    assert len(world.snap().signals) == limits.SIGNALS_KEPT
    assert world.entries("event.ignored")
    world.signal("custom:never", "awaited", id="s2")
    assert world.state == "completed", "one that is waited for is not kept and always taken"


def _x(number):
    return SignalReceived(name="custom:x", payload=number)


def test_a_wait_in_a_loop_waits_anew_each_round():
    world = run(loop(wait(duration=1000), max_iterations=3))
    start = world.tick
    world.finish()
    assert world.tick == start + 30


@pytest.mark.req("CORE-CLK-3")
def test_a_wait_of_no_length_ends_in_the_same_turn():
    world = run(wait(duration=0), put("p", "{{outputs.w.timed_out}}"))
    assert world.state == "completed"
    assert world.outputs["p"] is True


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-7")
def test_a_cancel_ends_a_wait_at_once():
    world = run(wait(signal="x"), noop("never"))
    world.signal("cancel")
    assert world.state == "cancelled"
    assert world.executed == []


@pytest.mark.req("SEQ-CTX-1")
def test_a_payload_that_would_make_data_too_large_fails_the_block():
    world = run(wait(signal="x", store_as="got"))
    world.signal("custom:x", "a" * limits.CONTEXT_BYTES)
    assert world.state == "failed"
    assert world.error["code"] == "payload.too_large"
    assert world.data is None


def test_a_payload_of_any_allowed_size_is_an_output_where_it_is_not_stored():
    world = run(wait(signal="x"))
    world.signal("custom:x", "a" * limits.CONTEXT_BYTES)
    assert world.state == "completed"
