"""Start marks and withdrawals: whoever is second loses."""

from __future__ import annotations

import pytest

from detent.definition import parallel, step
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.ports.store import Flight
from detent.runtime import turn
from detent.store.sqlite import open_store
from tests.unit.runtime.writer_rig import Rig, with_faults


def rig_with_order(path=":memory:", doubt="once"):
    rig = Rig(path).open()
    rig.register(HandlerSpec(name="pay", doubt=doubt))
    start = rig.start(rig.define(blocks=[step("a", "pay")]))
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    assert order.marked
    return rig, order


@pytest.mark.req("CORE-EFF-1")
def test_a_mark_is_committed_with_a_rising_number_before_it_is_won():
    rig, order = rig_with_order()
    rig.send(marks=[order.key])
    decided = rig.turn()
    ((key, number),) = decided.marked
    assert key == order.key
    flight = rig.store.flights([key])[key]
    assert (flight.dispatcher, flight.dispatch) == ("one", number)
    rig.send(rig.applied(order, dispatch=number))
    rig.settle()
    assert rig.store.flights([key]) == {}
    rig.check_chain()


def test_a_mark_asked_for_again_is_answered_with_its_number_and_is_no_second_one():
    rig, order = rig_with_order()
    rig.send(marks=[order.key])
    first = rig.turn().marked
    rig.send(marks=[order.key])
    decided = rig.turn()
    assert (decided.marked, decided.lost) == (first, [])
    assert rig.store.flights([order.key])[order.key].dispatch == first[0][1]


@pytest.mark.req("CORE-EFF-4")
@pytest.mark.parametrize("dispatcher", ["another", "one"])
def test_a_mark_of_somebody_else_or_of_an_earlier_life_is_lost(dispatcher):
    rig, order = rig_with_order()
    rig.store.mark([Flight(order.key, dispatcher, 0, 0)])
    rig.send(marks=[order.key])
    decided = rig.turn()
    assert (decided.marked, decided.lost) == ([], [order.key])


def test_a_mark_whose_row_cannot_be_read_after_the_commit_is_answered_by_a_later_turn():
    rig, order = rig_with_order()
    rig.send(marks=[order.key])
    first = rig.turn().marked
    read = rig.writer._parts.store.flights
    blind = with_faults(rig, opened=True)
    left = [1]

    def flights(effects):
        if left and left.pop():
            raise StoreError("store.unavailable", "not now")
        return read(effects)

    blind.flights = flights
    rig.send(marks=[order.key])
    assert [decided.marked for decided in rig.settle() if decided.marked] == [first]


def test_marks_share_the_commit_of_the_turn():
    rig, order = rig_with_order()
    turns = sum(row.turn for row in rig.store.partitions())
    made = rig.define("other", [step("x", "work")])
    rig.send(rig.start(made), marks=[order.key])
    decided = rig.turn()
    assert len(decided.marked) == len(decided.orders) == 1
    assert sum(row.turn for row in rig.store.partitions()) == turns + 1


@pytest.mark.req("CORE-EFF-1")
def test_an_effect_cancelled_before_its_mark_is_withdrawn_and_the_mark_is_lost():
    rig, order = rig_with_order()
    rig.send(rig.command(order.instance, "cancel", id="c-1"))
    seen = rig.settle()
    assert [key for decided in seen for key in decided.recalled] == [order.key]
    assert rig.row(order.instance).state == "cancelled"
    rig.send(marks=[order.key])
    assert rig.turn().lost == [order.key]


def test_a_mark_and_a_cancel_of_the_same_turn_leave_a_call_that_is_settled_unwanted():
    rig, order = rig_with_order()
    rig.send(rig.command(order.instance, "cancel", id="c-1"), marks=[order.key])
    decided = rig.turn()
    assert [key for key, _ in decided.marked] == [order.key]
    assert decided.recalled == [order.key]
    assert rig.row(order.instance).busy
    number = decided.marked[0][1]
    rig.send(rig.applied(order, dispatch=number))
    rig.settle()
    assert not rig.row(order.instance).busy
    assert rig.row(order.instance).state == "cancelled"


def test_numbers_of_a_later_process_are_higher_even_within_the_same_tick(tmp_path):
    rig, order = rig_with_order(tmp_path / "s.db", doubt="keyed")
    rig.send(marks=[order.key])
    first = rig.turn().marked[0][1]
    rig = rig.restart()
    (again,) = rig.orders(rig.settle())
    rig.send(marks=[again.key])
    assert rig.turn().marked[0][1] > first


@pytest.mark.req("CORE-EFF-3")
def test_a_mark_from_elsewhere_that_beats_a_withdrawal_has_the_turn_decided_anew(tmp_path):
    rig, order = rig_with_order(tmp_path / "s.db")
    elsewhere = open_store(rig.path, create=None)
    faulty = with_faults(rig, opened=True)

    def beat(commit):
        if commit.tombstones:
            elsewhere.mark([Flight(order.key, "elsewhere", 99, 0)])

    faulty.before = beat
    cancel = rig.command(order.instance, "cancel", id="c-1")
    rig.send(cancel)
    rig.settle()
    assert rig.verdict(cancel).ok
    assert [list(commit.tombstones) for commit in faulty.commits] == [[order.key], []]
    assert rig.store.flights([order.key])[order.key].dispatch == 99
    entries = b"".join(row.body for row in rig.journal(order.instance))
    assert b"effect.unwanted" in entries
    assert b"effect.withdrawn" not in entries
    assert rig.row(order.instance).busy
    rig.send(rig.applied(order, dispatch=99))  # and its outcome settles it
    rig.settle()
    assert (rig.row(order.instance).busy, rig.row(order.instance).state) == (False, "cancelled")
    assert rig.store.flights([order.key]) == {}
    rig.check_chain()
    elsewhere.close()


def test_marks_that_keep_beating_withdrawals_are_nobodys_poison(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.register(HandlerSpec(name="pay", doubt="once"))
    steps = [step(f"s{n}", "pay") for n in range(4)]
    rig.send(rig.start(rig.define(blocks=[parallel("all", *[[each] for each in steps])])))
    orders = rig.orders(rig.settle())
    elsewhere = open_store(rig.path, create=None)
    faulty = with_faults(rig, opened=True)
    left = [order.key for order in orders]

    def beat(commit):
        if commit.tombstones and left:
            elsewhere.mark([Flight(left.pop(), "elsewhere", 9, 0)])

    faulty.before = beat
    rig.send(rig.command(orders[0].instance, "cancel", id="c-1"))
    rig.settle()
    for order in orders:
        rig.send(rig.applied(order, dispatch=9))
    rig.settle()
    assert rig.row(orders[0].instance).state == "cancelled"
    rig.check_chain()
    elsewhere.close()


def test_tombstones_are_forgotten_with_the_dedupe_window(monkeypatch):
    monkeypatch.setattr(turn, "FORGET_EVERY_TURNS", 1)
    rig, order = rig_with_order()
    rig.send(rig.command(order.instance, "cancel", id="c-1"))
    rig.settle()
    assert rig.store.flights([order.key])[order.key].dispatcher == ""
    window = rig.settings.dedupe_window_ms // rig.clock.resolution_ms
    for ahead, left in ((window, 1), (window + 1, 0)):
        rig.clock.advance(ahead)
        rig.send(rig.start(rig.define("other", [step("x", "work")])))
        rig.settle()
        assert len(rig.store.flights([order.key])) == left
