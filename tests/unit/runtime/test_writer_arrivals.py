"""Arrivals: what other processes left, and messages between instances."""

from __future__ import annotations

import pytest

from detent.definition import step, sub_sequence, wait
from detent.model.ids import partition_of
from detent.model.inputs import SignalReceived, encode_input
from detent.ports.store import NewArrival
from detent.runtime.settings import WriterSettings
from tests.unit.runtime.writer_rig import Rig


def leave(rig, submission, id):
    birth = submission.birth
    p = partition_of(submission.instance, 16)
    salt = b"s" * 16 if birth is not None else b""
    left = NewArrival(id, p, submission.instance, submission.body, birth, salt)
    return rig.store.enqueue([left], rig.clock.tick())[0]


def wake(rig):
    rig.control("wake")
    return rig.settle()


def test_a_start_left_by_another_process_is_taken_when_the_writer_is_woken():
    rig = Rig().open()
    rig.settle()
    start = rig.start(rig.define())
    assert leave(rig, start, "a-1")
    assert rig.turn() is None  # nobody woke it, and it does not look all the time
    (order,) = rig.orders(wake(rig))
    assert order.instance == start.instance
    assert rig.store.verdict("a-1")[1].ok
    assert rig.row(start.instance).state == "running"
    assert rig.check_chain() == 1


@pytest.mark.req("SEQ-LIM-5")
def test_what_one_tenant_left_by_the_hundred_does_not_hold_up_another():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=20)).open()
    rig.settle()
    made = rig.define()
    for number in range(300):
        leave(rig, rig.start(made, tenant="acme"), f"a-{number}")
    few = [rig.start(made, tenant="beta") for _ in range(5)]
    for number, start in enumerate(few):
        leave(rig, start, f"b-{number}")
    rig.control("wake")
    first = [order.instance for order in rig.turn().orders]
    assert {start.instance for start in few} <= set(first)
    assert len(first) == 20
    assert len(rig.orders(rig.settle())) == 285
    assert rig.store.arrivals(range(16), 10) == []


def test_what_is_queued_already_is_not_read_over_and_over():
    rig = Rig(mode="wall", settings=WriterSettings(max_instances_per_turn=10)).open()
    rig.settle()
    boot = rig.hands.boot
    rig.clock._boot = lambda: rig.hands.pass_ms(9) or boot()  # a turn has time for two or three
    made = rig.define()
    for number in range(400):
        leave(rig, rig.start(made), f"a-{number}")
    looks = []
    rig.writer._parts.store = _looking(rig, looks)
    rig.control("wake")
    assert len(rig.orders(rig.settle())) == 400
    assert max(looks) <= 10 * 6
    assert sum(looks) < 400 * 10


def _looking(rig, looks):
    class Looking:
        def __getattr__(self, name):
            return getattr(rig.store, name)

        def arrivals(self, owned, limit, after):
            looks.append(limit)
            return rig.store.arrivals(owned, limit, after)

    return Looking()


def test_without_a_wake_up_it_looks_by_itself_after_the_interval():
    rig = Rig(mode="wall").open()
    rig.settle()
    start = rig.start(rig.define())
    leave(rig, start, "a-1")
    assert rig.turn() is None
    assert 0 < rig.writer.idle_seconds() <= 1
    rig.hands.pass_ms(1_000)
    assert len(rig.orders(rig.settle())) == 1


def test_an_arrival_is_taken_once_however_often_it_is_left_and_looked_at(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    start = rig.start(rig.define())
    leave(rig, start, "a-1")
    assert not leave(rig, start, "a-1")
    wake(rig)
    wake(rig)
    rig = rig.restart()
    rig.settle()
    bodies = [row.body for row in rig.journal(start.instance)]
    assert sum(body.count(b'"t":"started"') for body in bodies) == 1


def test_an_arrival_for_nobody_is_taken_with_a_verdict_that_says_so():
    rig = Rig().open()
    rig.settle()
    leave(rig, rig.signal("00000000-0000-7000-8000-000000000000"), "a-1")
    wake(rig)
    known, verdict = rig.store.verdict("a-1")
    assert known
    assert verdict.code == "instance.not_found"
    assert rig.store.arrivals(range(16), 10) == []
    assert rig.check_chain() == 0


@pytest.mark.req("CORE-INB-1")
def test_a_signal_that_overtakes_the_start_of_its_instance_waits_for_it():
    rig = Rig().open()
    rig.settle()
    start = rig.start(rig.define(blocks=[wait("w", signal="go"), step("a", "work")]))
    signal = rig.signal(start.instance, "custom:go")
    leave(rig, start, "a-1")
    rig.send(signal)
    (order,) = rig.orders(rig.settle())
    assert order.block == "a"
    assert rig.verdict(signal).ok


def test_a_caller_of_an_id_that_is_still_waiting_as_an_arrival_is_answered_when_it_is_taken():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[wait("w", signal="never")]))
    rig.send(start)
    rig.settle()
    signal = rig.signal(start.instance, id="s-1")
    leave(rig, signal, "s-1")
    rig.send(signal)
    rig.settle()
    assert rig.verdict(signal).ok
    assert len(rig.journal(start.instance)) == 2


def test_more_arrivals_than_a_turn_takes_are_all_taken_in_order():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=3)).open()
    rig.settle()
    made = rig.define(blocks=[step("a", "work")])
    starts = [rig.start(made) for _ in range(20)]
    for at, start in enumerate(starts):
        leave(rig, start, f"a-{at}")
    orders = rig.orders(wake(rig))
    assert sorted(order.instance for order in orders) == sorted(start.instance for start in starts)
    assert rig.store.arrivals(range(16), 100) == []


def test_a_child_is_started_and_its_end_told_without_reading_the_messages_back():
    rig = Rig().open()
    rig.settle()
    rig.define("child", [step("c", "work")])
    start = rig.start(rig.define("parent", [sub_sequence("s", "child"), step("after", "work")]))
    rig.send(start)
    read = []
    real = rig.writer._parts.store.arrivals

    class Watched:
        def __getattr__(self, name):
            return getattr(rig.store, name)

        def arrivals(self, partitions, limit):
            read.append(limit)
            return real(partitions, limit)

    rig.writer._parts.store = Watched()
    (child,) = rig.orders(rig.settle())
    assert child.block == "c"
    assert child.instance != start.instance
    assert rig.row(child.instance).parent == start.instance
    rig.send(rig.applied(child))
    (after,) = rig.orders(rig.settle())
    assert after.block == "after"
    assert read == []
    assert rig.store.arrivals(range(16), 10) == []
    rig.check_chain()


def test_a_message_survives_the_process_that_wrote_it(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.settle()
    rig.define("child", [step("c", "work")])
    start = rig.start(rig.define("parent", [sub_sequence("s", "child")]))
    rig.send(start)
    rig.turn()
    assert len(rig.store.arrivals(range(16), 10)) == 1
    rig = rig.restart()
    (child,) = rig.orders(rig.settle())
    assert child.block == "c"


def test_a_signal_to_an_instance_that_ended_meanwhile_is_journaled_as_ignored():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[step("a", "work")]))
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    rig.send(rig.applied(order))
    rig.settle()
    told = SignalReceived(name="custom:late", id="a-1")
    p = partition_of(start.instance, 16)
    rig.store.enqueue([NewArrival("a-1", p, start.instance, encode_input(told))], 0)
    wake(rig)
    assert b"event.ignored" in rig.journal(start.instance)[-1].body
    assert rig.store.verdict("a-1")[1].code == "instance.terminal"


def test_an_input_for_a_partition_of_another_writer_is_left_for_it(tmp_path):
    rig = Rig(tmp_path / "s.db", settings=WriterSettings(partitions=tuple(range(8)))).open()
    rig.settle()
    made = rig.define()
    starts = [rig.start(made) for _ in range(40)]
    rig.send(*starts)
    rig.settle()
    assert all(rig.verdict(start).result == {"id": start.instance} for start in starts)
    mine = [start for start in starts if partition_of(start.instance, 16) < 8]
    assert 0 < len(mine) < 40
    assert rig.check_chain() == len(mine)
    assert len(rig.store.arrivals(range(8, 16), 100)) == 40 - len(mine)
