"""Signals: in order, each once, before each step; what they may write and where they end."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.model.inputs import SignalReceived, encode_input
from tests.unit.kernel.blocks import call, fails, noop, put, sleep, wait
from tests.unit.kernel.driver import World, run
from tests.unit.kernel.invariants import journal_of


@pytest.mark.req("SEQ-SIG-1", "CORE-INB-1")
def test_signals_of_one_turn_are_processed_in_their_order():
    world = run(wait(signal="x"), sleep("s", 1000), noop("after"))
    world.tell(
        SignalReceived(name="custom:x", payload=1),
        SignalReceived(name="pause"),
        SignalReceived(name="resume"),
        SignalReceived(name="pause"),
    )
    assert world.state == "paused"
    assert world.outputs == {"w": 1}
    assert world.states()[-5:] == ["running", "paused", "scheduled", "running", "paused"]


@pytest.mark.req("SEQ-SIG-1")
def test_a_cancel_after_a_pause_wins_and_a_pause_after_a_cancel_is_refused():
    world = run(sleep("s", 1000))
    decision = world.tell(
        SignalReceived(name="pause"),
        SignalReceived(name="cancel"),
        SignalReceived(name="resume", id="r"),
    )
    assert world.state == "cancelled"
    assert [(v.id, v.code) for v in decision.verdicts] == [("r", "instance.terminal")]


@pytest.mark.req("SEQ-SIG-1")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("name", ["pause", "resume", "cancel", "update_context", "custom:x"])
def test_a_signal_to_an_ended_instance_is_noted_refused_and_changes_nothing(end, name):
    world = run(wait(signal="x"), *([fails("f")] if end == "failed" else []), data={"n": 1})
    world.signal("cancel" if end == "cancelled" else "custom:x")
    before = world.snap()
    decision = world.signal(name, {"n": 2}, id="s1")
    (verdict,) = decision.verdicts
    assert (verdict.ok, verdict.code) == (False, "instance.terminal")
    assert world.entries("event.ignored")[-1][2]["name"] == name
    after = world.snap()
    after.version = before.version
    assert after == before


@pytest.mark.req("SEQ-SIG-1")
@pytest.mark.parametrize(
    ("payload", "data"),
    [
        ({"data": {"b": 2}}, {"a": 1, "b": 2}),
        ({"b": 2}, {"a": 1, "b": 2}),
        ({"data": {"a": None}, "ignored": 1}, {"a": None}),
        ({"data": 5, "b": 2}, {"a": 1, "data": 5, "b": 2}),
        ({}, {"a": 1}),
        ({"data": {}}, {"a": 1}),
        ({"a": {"deep": 1}}, {"a": {"deep": 1}}),
    ],
)
def test_update_context_merges_data_or_its_own_keys(payload, data):
    world = run(wait(signal="x"), data={"a": 1})
    decision = world.signal("update_context", payload, id="u")
    assert decision.verdicts[0].ok
    assert world.data == data


@pytest.mark.req("SEQ-SIG-1", "SEQ-CTX-1")
def test_update_context_cannot_reach_config_or_runtime():
    world = World(wait(signal="x")).start({"a": 1}, config={"c": 1})
    world.signal(
        "update_context", {"data": {"b": 2}, "config": {"c": 9}, "runtime": {"attempt": 9}}
    )
    snap = world.snap()
    assert (snap.data, snap.config, snap.runtime) == ({"a": 1, "b": 2}, {"c": 1}, {})


@pytest.mark.req("SEQ-SIG-1")
@pytest.mark.parametrize("payload", [None, 5, "text", [1], True])
def test_update_context_that_is_no_object_is_refused_and_never_dropped_silently(payload):
    world = run(wait(signal="x"), data={"a": 1})
    decision = world.signal("update_context", payload, id="u")
    assert [verdict.code for verdict in decision.verdicts] == ["payload.invalid"]
    assert world.data == {"a": 1}
    assert world.entries("event.ignored")


@pytest.mark.req("SEQ-SIG-1", "SEQ-CTX-1")
def test_update_context_over_the_limit_is_refused():
    room = limits.CONTEXT_BYTES - len('{"a":1,"b":""}')
    world = run(wait(signal="x"), data={"a": 1})
    assert world.signal("update_context", {"b": "x" * (room + 1)}, id="u").verdicts[0].code == (
        "payload.too_large"
    )
    assert world.data == {"a": 1}
    assert world.signal("update_context", {"b": "x" * room}, id="u").verdicts[0].ok
    assert len(world.data["b"]) == room


@pytest.mark.req("SEQ-SIG-1")
def test_update_context_gives_data_to_an_instance_that_had_none():
    world = run(wait(signal="x"), put("p", "{{data.n}}"))
    world.signal("update_context", {"n": 3})
    world.signal("custom:x")
    assert world.outputs["p"] == 3


@pytest.mark.req("SEQ-SIG-2")
@pytest.mark.parametrize("name", ["pause", "cancel", "update_context", "with space", "ünï:côde"])
def test_a_custom_signal_may_have_any_name_even_that_of_a_control_signal(name):
    world = run(wait(signal=name), noop("after"))
    world.signal(f"custom:{name}", 1)
    assert world.state == "completed"
    assert world.outputs["w"] == 1


@pytest.mark.req("SEQ-SIG-2")
def test_a_custom_signal_that_nobody_waits_for_is_kept_until_the_end():
    world = run(call("a"), noop("n"))
    world.signal("custom:x", 1)
    assert [kept.name for kept in world.snap().signals] == ["x"]
    world.apply("a")
    assert world.state == "completed"
    assert world.snap().signals == []


@pytest.mark.req("SEQ-SIG-1", "CORE-INB-1")
def test_every_signal_with_an_id_gets_its_verdict_and_one_without_gets_none():
    world = run(wait(signal="x"))
    decision = world.tell(
        SignalReceived(name="pause", id="a"),
        SignalReceived(name="resume"),
        SignalReceived(name="custom:y", id="b"),
    )
    assert [(v.id, v.ok) for v in decision.verdicts] == [("a", True), ("b", True)]


@pytest.mark.req("SEQ-SIG-1")
def test_signals_that_change_nothing_are_accepted_and_noted():
    world = run(call("a"))
    for name in ("resume", "resume"):
        assert world.signal(name, id="s").verdicts[0].ok
    assert world.state == "running"
    assert len(world.entries("event.received")) == 2


@pytest.mark.req("CORE-INB-1")
def test_the_journal_keeps_the_very_bytes_of_every_input():
    told = SignalReceived(name="custom:x", payload={"k": [1, "ü"]}, id="s", sender="me")
    decision = run(wait(signal="y")).tell(told)
    assert encode_input(told) in decision.journal
    assert journal_of(decision)["in"][0]["payload"] == {"k": [1, "ü"]}


@pytest.mark.req("SEQ-SIG-1")
def test_a_large_payload_is_journaled_by_reference():
    world = run(wait(signal="x"))
    decision = world.signal("custom:x", "a" * (limits.BLOB_BYTES + 1))
    (reference,) = journal_of(decision)["in"]
    assert decision.blobs[reference["$blob"]].startswith(b'{"t":"signal"')
    assert len(world.outputs["w"]) == limits.BLOB_BYTES + 1
    assert len(decision.snapshot) < limits.BLOB_BYTES
