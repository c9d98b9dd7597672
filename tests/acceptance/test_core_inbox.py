"""The inbox: one ordered queue per instance, each input exactly once (CORE-INB)."""

from __future__ import annotations

import threading

import pytest

import detent
from detent import loop, sequence, step, wait
from detent.bootstrap.visitor import Visitor
from detent.model import limits
from tests.acceptance.stage import (
    actions,
    digest,
    outputs,
    refused,
    rows,
    state,
    virtual,
)

COLLECTOR = sequence(
    "collector",
    loop(
        "l", "data.last != true", wait("w", signal="item", store_as="got"), max_iterations=100_000
    ),
)
DOOR = sequence("door", wait("w", signal="go"), step("after", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


@pytest.mark.req("CORE-INB-1", "SEQ-SIG-2")
def test_inputs_are_taken_in_the_order_in_which_they_were_sent_each_exactly_once(engine):
    instance = engine.start(COLLECTOR)
    for n in range(200):
        engine.signal(instance, "item", {"n": n})
    engine.signal(instance, "update_context", {"last": True})
    engine.signal(instance, "item", {"n": 200})
    engine.run_until_idle()
    taken = [output["n"] for block, output in outputs(engine, instance) if block == "w"]
    assert taken == list(range(201))
    assert actions(engine, instance).count("event.received") == 202


@pytest.mark.req("CORE-INB-1")
def test_ten_thousand_signals_reach_one_instance(path):
    with detent.Engine(path) as engine:
        instance = engine.start(COLLECTOR)

        def send(first):
            for n in range(first, 10_000, 4):
                engine.signal(instance, "item", n)

        senders = [threading.Thread(target=send, args=(first,)) for first in range(4)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        engine.signal(instance, "update_context", {"last": True})
        engine.signal(instance, "item", -1)
        assert engine.wait_for(instance) == "completed"
        taken = [row.output for row in engine.inspect.outputs(instance) if row.block == "w"]
        assert sorted(taken) == list(range(-1, 10_000))
        for first in range(4):
            own = [n for n in taken if n >= 0 and n % 4 == first]
            assert own == sorted(own)


@pytest.mark.req("CORE-INB-1", "SEQ-SIG-2")
def test_signals_nobody_takes_are_kept_to_a_limit_and_the_next_is_refused(engine, path):
    instance = engine.start(DOOR)
    for n in range(limits.SIGNALS_KEPT):
        engine.signal(instance, "other", n)
    assert engine.inspect.show(instance).kept_signals == limits.SIGNALS_KEPT
    with refused("request.invalid") as refusal:
        engine.signal(instance, "other", "one too many")
    assert str(limits.SIGNALS_KEPT) in refusal.value.message
    assert engine.inspect.show(instance).kept_signals == limits.SIGNALS_KEPT
    engine.signal(instance, "go", "still taken")
    assert engine.wait_for(instance) == "completed"
    assert engine.inspect.show(instance).outputs["w"] == "still taken"
    assert engine.inspect.show(instance).kept_signals == 0


@pytest.mark.req("CORE-INB-2")
def test_the_same_id_twice_is_one_signal(engine):
    instance = engine.start(COLLECTOR)
    for payload in ("first", "second", {"third": 3}):
        assert engine.signal(instance, "item", payload, id="webhook-1") == "webhook-1"
    engine.signal(instance, "item", "another", id="webhook-2")
    taken = [output for block, output in outputs(engine, instance) if block == "w"]
    assert taken == ["first", "another"]


@pytest.mark.req("CORE-INB-2")
def test_an_id_is_remembered_over_a_restart_and_through_every_door(path):
    with detent.Engine(path) as engine:
        instance = engine.start(COLLECTOR)
        engine.signal(instance, "item", "once", id="a")
        with Visitor(path) as visitor:
            visitor.signal(instance, "item", "again", id="a")
            visitor.signal(instance, "item", "new", id="b")
            visitor.command(instance, "pause", id="c")
    with detent.Engine(path) as engine:
        for id in ("a", "b"):
            engine.signal(instance, "item", "late", id=id)
        engine.command(instance, "pause", id="c")
        taken = [output for block, output in outputs(engine, instance) if block == "w"]
        assert taken == ["once", "new"]
        assert len(engine.inspect.audit(instance, action="run.pause_requested")) == 1


@pytest.mark.req("CORE-INB-2")
def test_a_command_asked_again_gets_the_first_verdict_whatever_happened_since(engine, path):
    instance = engine.start(DOOR)
    with refused("instance.transition") as first:
        engine.command(instance, "retry", id="r")
    granted = engine.command(instance, "pause", id="p")
    engine.command(instance, "resume")
    before = digest(path)
    with refused("instance.transition") as again:
        engine.command(instance, "retry", id="r")
    assert again.value.message == first.value.message
    assert engine.command(instance, "pause", id="p") == granted
    assert not engine.inspect.show(instance).pause_requested
    assert digest(path) == before


@pytest.mark.req("CORE-INB-2")
def test_of_many_who_send_one_id_at_the_same_time_all_are_answered_and_one_counts(path):
    with detent.Engine(path) as engine:
        instance = engine.start(COLLECTOR)
        begin = threading.Barrier(8)
        told = []

        def send(n):
            begin.wait()
            told.append(engine.signal(instance, "item", n, id="same"))

        senders = [threading.Thread(target=send, args=(n,)) for n in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert told == ["same"] * 8
        taken = [row for row in engine.inspect.outputs(instance) if row.block == "w"]
        assert len(taken) == 1


@pytest.mark.req("CORE-INB-1", "CORE-INB-2")
def test_a_signal_is_durable_when_its_sender_is_told_so(path):
    """Nothing is stepped meanwhile: the writer's turn commits the signal with its journal row."""
    with detent.Engine(path) as engine:
        instance = engine.start(COLLECTOR)
        engine.signal(instance, "item", "kept", id="kept-id")
        bodies = b"".join(body for (body,) in rows(path, "journal", "body"))
        assert b"kept-id" in bodies
        assert [id for (id,) in rows(path, "arrival", "id", "verdict IS NOT NULL")] == ["kept-id"]


@pytest.mark.req("SEQ-SIG-1", "CORE-INB-1")
@pytest.mark.parametrize("end", ["completed", "cancelled", "failed"])
@pytest.mark.parametrize("name", ["pause", "resume", "cancel", "update_context", "other"])
def test_an_ended_instance_refuses_every_signal_and_nothing_changes(engine, path, end, name):
    instance = engine.start(sequence("s", step("a", "fail")) if end == "failed" else DOOR)
    if end == "cancelled":
        engine.cancel(instance)
    elif end == "completed":
        engine.signal(instance, "go")
    assert engine.wait_for(instance) == end
    before = digest(path)
    with refused("instance.terminal") as refusal:
        engine.signal(instance, name, {"a": 1})
    assert end in refusal.value.message
    assert digest(path) == before
    assert state(engine, instance) == end


@pytest.mark.req("CORE-INB-1")
def test_a_start_is_durable_before_its_first_step_and_with_its_payload(path):
    with virtual(path) as engine:
        made = engine.start_many(DOOR, [{"n": 1}, {"n": 2}])
        assert {engine.inspect.show(id).taken for id in made} == {False}
        assert "starts as soon as" in engine.explain(made[0]).summary
    with virtual(path) as engine:
        engine.advance(0)
        assert [engine.inspect.show(id).data for id in made] == [{"n": 1}, {"n": 2}]
