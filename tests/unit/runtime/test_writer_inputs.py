"""Starts, signals, commands and outcomes: what is answered, when, and how often."""

from __future__ import annotations

import msgspec
import pytest

from detent.definition import step, wait
from detent.model.ids import derived_id
from detent.model.inputs import SignalReceived, Started, encode_input
from detent.model.link import Submission
from tests.unit.runtime.writer_rig import Rig


def test_a_start_is_answered_once_it_is_durable_and_its_effect_is_ordered():
    rig = Rig().open()
    start = rig.start(rig.define())
    rig.send(start)
    (decided,) = rig.settle()
    assert rig.verdict(start).result == {"id": start.instance}
    assert [order.handler for order in decided.orders] == ["work"]
    assert decided.moved == [(start.instance, "running")]
    assert rig.row(start.instance).state == "running"


def test_nothing_submitted_is_nothing_done():
    rig = Rig().open()
    rig.settle()
    turns = sum(row.turn for row in rig.store.partitions())
    assert rig.turn() is None
    assert sum(row.turn for row in rig.store.partitions()) == turns


@pytest.mark.req("CORE-SCH-1")
def test_outcomes_carry_an_instance_to_its_end_one_acting_step_a_turn():
    rig = Rig().open()
    start = rig.start(rig.define())
    rig.send(start)
    (first,) = rig.orders(rig.settle())
    rig.send(rig.applied(first, {"x": 1}))
    (second,) = rig.orders(rig.settle())
    assert rig.row(start.instance).state == "running"
    rig.send(rig.applied(second, {}))
    seen = rig.settle()
    assert seen[-1].moved == [(start.instance, "completed")]
    assert [row.seq for row in rig.journal(start.instance)] == [1, 2, 3]
    assert rig.check_chain() == 3


def test_a_key_makes_one_instance_in_one_batch_in_later_ones_and_after_a_restart(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    made = rig.define()
    first, twin = rig.start(made, key="order-1"), rig.start(made, key="order-1")
    rig.send(first, twin)
    rig.settle()
    assert rig.verdict(first).result == {"id": first.instance}
    assert rig.verdict(twin).result == {"id": first.instance, "deduplicated": True}
    later = rig.start(made, key="order-1")
    rig.send(later)
    rig.settle()
    assert rig.verdict(later).result["deduplicated"] is True
    rig = rig.restart()
    again, other = rig.start(made, key="order-1"), rig.start(made, key="order-2")
    rig.send(again, other)
    rig.settle()
    assert rig.verdict(again).result["deduplicated"] is True
    assert rig.verdict(other).result == {"id": other.instance}
    assert len(rig.journal(first.instance)) >= 1


def test_a_derived_id_makes_one_instance_without_a_key_too(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    made = rig.define()
    id = derived_id("default", "request", "k")
    first, twin = rig.start(made, instance=id), rig.start(made, instance=id)
    rig.send(first, twin)
    rig.settle()
    assert rig.verdict(first).result == {"id": id}
    assert rig.verdict(twin).result == {"id": id, "deduplicated": True}
    rig = rig.restart()
    again, other = rig.start(made, instance=id), rig.start(made, instance=id)
    rig.send(again, other)
    rig.settle()
    assert rig.verdict(again).result == {"id": id, "deduplicated": True}
    assert rig.verdict(other).result == {"id": id, "deduplicated": True}
    assert not rig.writer._parts.contradicted
    assert rig.row(id).n == 1


def test_an_id_that_looks_fresh_and_is_not_is_answered_to_everybody_who_brings_it():
    rig = Rig().open()
    made = rig.define()
    first = rig.start(made)
    rig.send(first)
    rig.settle()
    again, twin = rig.start(made, instance=first.instance), rig.start(made, instance=first.instance)
    rig.send(again, twin)
    rig.settle()
    for each in (again, twin):
        assert rig.verdict(each).result == {"id": first.instance, "deduplicated": True}
    assert len(rig.journal(first.instance)) == 1


def test_a_key_somebody_else_used_between_look_and_commit_is_answered_as_used():
    rig = Rig().open()
    made = rig.define()
    start, twin = rig.start(made, key="k"), rig.start(made, key="k")
    rig.send(start, twin)
    real = rig.store.load
    parts = rig.writer._parts

    class Late:
        """The store, but the row of the other process appears right after it was looked for."""

        def __getattr__(self, name):
            return getattr(rig.store, name)

        def load(self, ids):
            found = real(ids)
            if not found:
                from detent.model.ids import partition_of
                from detent.ports.store import NewArrival

                p = partition_of(start.instance, 16)
                left = NewArrival("a-1", p, start.instance, start.body, start.birth, b"s" * 16)
                rig.store.enqueue([left], 0)
            return found

    parts.store = Late()
    rig.settle()
    rig.control("wake")
    rig.settle()
    assert rig.verdict(start).result["deduplicated"] is True
    assert rig.verdict(twin).result["deduplicated"] is True
    assert rig.row(start.instance).state == "running"
    assert len(rig.journal(start.instance)) == 1


def test_an_input_for_nobody_is_refused_and_nothing_is_written():
    rig = Rig().open()
    rig.settle()
    signal = rig.signal("00000000-0000-7000-8000-000000000000", id="s-1")
    rig.send(signal)
    rig.settle()
    assert rig.verdict(signal).code == "instance.not_found"
    assert rig.store.verdict("s-1") == (False, None)
    assert rig.check_chain() == 0


def test_a_signal_to_an_ended_instance_is_refused_but_an_outcome_reaches_the_kernel():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[step("a", "work")]))
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    rig.send(rig.applied(order))
    rig.settle()
    signal = rig.signal(start.instance)
    rig.send(signal)
    rig.settle()
    assert rig.verdict(signal).code == "instance.terminal"
    assert len(rig.journal(start.instance)) == 2
    rig.send(rig.applied(order))
    rig.settle()
    (last,) = rig.journal(start.instance)[2:]
    assert b"event.ignored" in last.body


def test_a_signal_is_taken_by_an_instance_born_in_the_same_batch():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[wait("w", signal="go"), step("a", "work")]))
    signal = rig.signal(start.instance, "custom:go")
    rig.send(start, signal)
    (order,) = rig.orders(rig.settle())
    assert order.block == "a"
    assert rig.verdict(signal).ok


@pytest.mark.req("CORE-INB-2")
def test_the_same_id_is_one_input_and_every_call_gets_the_first_answer(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    start = rig.start(rig.define(blocks=[wait("w", signal="other")]))
    rig.send(start)
    rig.settle()
    first, twin = (rig.signal(start.instance, id="s-1") for _ in range(2))
    rig.send(first, twin)
    rig.settle()
    later = rig.signal(start.instance, id="s-1")
    rig.send(later)
    rig.settle()
    rig = rig.restart()
    reborn = rig.signal(start.instance, id="s-1")
    rig.send(reborn)
    rig.settle()
    known = [rig.verdicts.get(reborn.ack)]
    assert known[0].ok
    assert known[0].id == "s-1"
    inputs = [msgspec.json.decode(row.body)["in"] for row in rig.journal(start.instance)]
    assert sum(told["t"] == "signal" for row in inputs for told in row) == 1


@pytest.mark.req("CORE-INB-2")
def test_the_same_question_asked_again_gets_the_same_verdict():
    rig = Rig().open()
    start = rig.start(rig.define())
    rig.send(start)
    rig.settle()
    asked = rig.command(start.instance, "resume", id="q-1")
    rig.send(asked)
    rig.settle()
    refused = rig.verdict(asked)
    assert not refused.ok
    assert refused.code == "instance.transition"
    rig.send(rig.command(start.instance, "pause", id="q-2"))
    rig.settle()
    again = rig.command(start.instance, "resume", id="q-1")
    rig.send(again)
    rig.settle()
    assert rig.verdict(again) == refused


@pytest.mark.req("CORE-INB-1")
def test_inputs_are_journaled_in_the_order_they_were_sent():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[wait("w", signal="never")]))
    rig.send(start)
    rig.settle()
    for batch in range(3):
        rig.send(*[rig.signal(start.instance, payload=[batch, each]) for each in range(4)])
    rig.settle()
    rows = [msgspec.json.decode(row.body)["in"] for row in rig.journal(start.instance)]
    payloads = [told["payload"] for row in rows for told in row if told["t"] == "signal"]
    assert payloads == [[batch, each] for batch in range(3) for each in range(4)]


def test_a_step_out_of_moves_goes_on_next_turn_without_any_input():
    from detent.definition import for_each

    rig = Rig().open()
    body = step("s", "noop")
    made = rig.define(
        blocks=[for_each("many", "items", body, max_iterations=3_000)],
    )
    start = rig.start(made, data={"items": list(range(2_500))})
    rig.send(start)
    seen = rig.settle()
    assert len(seen) > 1
    assert rig.row(start.instance).state == "completed"
    assert rig.check_chain() == len(rig.journal(start.instance))


def test_a_started_input_for_an_unknown_definition_is_refused_to_the_caller():
    rig = Rig().open()
    rig.settle()
    made = rig.define()
    start = rig.start(made)
    told = Started(instance=start.instance, definition="f" * 64)
    birth = msgspec.structs.replace(start.birth, definition="f" * 64)
    lost = Submission(start.instance, encode_input(told), start.ack, birth=birth)
    rig.send(lost, Submission(start.instance, encode_input(SignalReceived(name="custom:x"))))
    rig.settle()
    assert rig.verdict(start).code == "invariant.broken"
    assert rig.row(start.instance) is None
