"""A writer that follows another one of the same engine: the calls go on, and nothing is doubted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec import structs

from detent.definition import step
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.model.link import Control, Submit
from detent.ports.store import Flight
from detent.runtime.writer import run_writer
from tests.unit.runtime.test_writer_loop import Mail
from tests.unit.runtime.writer_rig import Rig, with_faults

CLASSES = ("repeatable", "keyed", "queryable", "once")


@dataclass
class Case:
    rig: Rig
    order: object

    def entries(self):
        return b"".join(row.body for row in self.rig.journal(self.order.instance))

    def succeed(self):
        self.rig = self.rig.succeed()
        self.rig.register(*[HandlerSpec(name="pay", doubt=self.order.doubt)])
        return self.rig.orders(self.rig.settle())


@pytest.fixture(params=CLASSES)
def case(request, tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.register(HandlerSpec(name="pay", doubt=request.param))
    rig.send(rig.start(rig.define(blocks=[step("a", "pay")])))
    (order,) = rig.orders(rig.settle())
    return Case(rig, order)


@pytest.mark.req("CORE-EFF-4", "CORE-REC-1")
def test_a_call_that_may_be_running_is_not_doubted_and_its_outcome_settles_it(case):
    number = 0
    if case.order.marked:
        case.rig.send(marks=[case.order.key])
        ((_key, number),) = case.rig.turn().marked
    orders = case.succeed()
    if case.order.marked:
        assert orders == []
    else:  # nobody knows here whether the order arrived: the dispatcher does
        assert orders == [structs.replace(case.order, again=True)]
    assert b"crashed" not in case.entries()
    case.rig.send(structs.replace(case.rig.applied(case.order, dispatch=number), ack=-3))
    (decided,) = [each for each in case.rig.settle() if each.taken]
    assert decided.taken == [-3]
    assert case.rig.row(case.order.instance).state == "completed"
    assert case.rig.store.doubts("default", "", 10) == []
    case.rig.check_chain()


def test_an_order_that_may_have_been_lost_goes_out_once_more_and_says_so(case):
    assert case.succeed() == [structs.replace(case.order, again=True)]
    assert case.succeed() == [structs.replace(case.order, again=True)]
    assert len(case.rig.journal(case.order.instance)) == 1


def test_after_a_crash_of_the_whole_engine_the_same_name_means_nothing(case):
    if case.order.marked:
        case.rig.send(marks=[case.order.key])
        case.rig.turn()
    case.rig = case.rig.succeed().restart(owner="one")
    case.rig.settle()
    assert b'"crashed":true' in case.entries()


@pytest.mark.req("CORE-EFF-1")
def test_a_mark_whose_answer_was_lost_is_answered_by_the_next_writer_with_its_number(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.register(HandlerSpec(name="pay", doubt="once"))
    rig.send(rig.start(rig.define(blocks=[step("a", "pay")])))
    (order,) = rig.orders(rig.settle())
    rig.send(marks=[order.key])
    lost = rig.turn().marked
    rig = rig.succeed()
    rig.send(marks=[order.key])
    decided = [each for each in rig.settle() if each.marked]
    assert [each.marked for each in decided] == [lost]


@pytest.mark.req("CORE-REC-2")
def test_later_walks_leave_the_marks_of_earlier_writers_alone(tmp_path):
    rig = Rig(tmp_path / "s.db", mode="wall").open()
    rig.register(HandlerSpec(name="pay", doubt="once"))
    rig.send(rig.start(rig.define(blocks=[step("a", "pay")])))
    (order,) = rig.orders(rig.settle())
    rig.send(marks=[order.key])
    rig.settle()
    rig = rig.succeed()
    rig.settle()
    sql = "INSERT INTO owner(id, host, pid, lease_until, wake) VALUES ('x', 'h', 2, ?, '')"
    rig.store._connection.execute(sql, (rig.clock.wall_ms() + 400_000,))
    rig.store.mark([Flight("other", "x", 7, 0)])
    for _ in range(200):  # somebody else is seen, then seen to be gone: it walks again
        rig.hands.pass_ms(5_000)
        rig.settle()
    assert len(rig.journal(order.instance)) == 1


def test_outcomes_are_never_refused_and_their_receipts_come_back_whatever_becomes_of_them():
    rig = Rig().open()
    rig.send(rig.start(rig.define(blocks=[step("a", "work")])))
    (order,) = rig.orders(rig.settle())
    outcome = structs.replace(rig.applied(order), ack=-1)
    stranger = structs.replace(outcome, instance="nobody", ack=-2)
    caller = rig.signal(order.instance)
    faulty = with_faults(rig, opened=True)

    def full(_commit):
        raise StoreError("store.full", "no room")

    faulty.before = full
    rig.send(outcome, caller)
    rig.turn()
    assert rig.verdict(caller).code == "store.full"
    assert not [each for each in rig.decided if each.taken]
    faulty.before = None
    rig.hands.pass_ms(1_000)
    rig.send(stranger)
    rig.settle()
    assert sorted(n for each in rig.decided for n in each.taken) == [-2, -1]
    assert all(ack > 0 for each in rig.decided for ack, _verdict in each.acks)
    assert rig.row(order.instance).state == "completed"


@pytest.mark.req("CORE-REC-3")
def test_a_writer_told_to_close_gives_its_lease_up_and_an_orphan_does_not(tmp_path):
    for verb, owner in (("close", ""), ("orphan", "one")):
        rig = Rig(tmp_path / f"{verb}.db")
        run_writer(rig.writer, Mail([Submit(control=[Control(verb)])]), rig.keep)
        assert {row.owner for row in rig.store.partitions()} == {owner}
    rig = Rig(tmp_path / "both.db")
    mail = Mail([Submit(control=[Control("close"), Control("orphan")])])
    run_writer(rig.writer, mail, rig.keep)  # it was told, and then its parent went
    assert {row.owner for row in rig.store.partitions()} == {""}


def test_a_writer_that_falls_over_keeps_its_lease(tmp_path):
    rig = Rig(tmp_path / "s.db")

    def publish(_decided):
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        run_writer(rig.writer, Mail([]), publish)
    assert {row.owner for row in rig.store.partitions()} == {"one"}
