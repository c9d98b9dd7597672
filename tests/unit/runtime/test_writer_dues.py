"""Due waits: never early, not in vain, and all of them."""

from __future__ import annotations

import pytest

from detent.definition import loop, step, wait
from detent.model.errors import StoreError
from detent.runtime.settings import WriterSettings
from detent.runtime.standstill import stand_still
from tests.unit.runtime.writer_rig import Rig


@pytest.mark.req("CORE-CLK-3")
def test_a_wait_ends_at_its_tick_and_not_one_earlier():
    rig = Rig().open()
    start = rig.start(rig.define(blocks=[wait("w", duration=950), step("a", "work")]))
    rig.send(start)
    rig.settle()
    assert rig.writer.next_due() == 10
    rig.clock.advance(9)
    assert rig.settle() == []
    rig.clock.advance(10)
    (order,) = rig.orders(rig.settle())
    assert order.block == "a"
    assert [row.tick for row in rig.journal(start.instance)] == [0, 10]


@pytest.mark.req("CORE-CLK-3", "CORE-REC-1")
def test_a_wait_ends_on_time_whoever_is_running_then(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.send(rig.start(rig.define(blocks=[wait("w", duration=1_000), step("a", "work")])))
    rig.settle()
    rig = rig.restart()
    assert rig.orders(rig.settle()) == []
    rig.clock.advance(10)
    assert len(rig.orders(rig.settle())) == 1


@pytest.mark.req("CORE-SCH-1")
def test_while_nothing_is_due_the_store_is_not_asked_and_the_loop_may_sleep():
    rig = Rig(mode="wall").open()
    rig.send(rig.start(rig.define(blocks=[wait("w", duration=10_000), step("a", "work")])))
    rig.settle()
    asked = []
    rig.writer._parts.store = _asking(rig, asked)
    assert rig.writer.idle_seconds() == pytest.approx(1.0)
    for _ in range(9):
        rig.hands.pass_ms(1_000)
        rig.turn()
    assert asked == []
    assert rig.writer.idle_seconds() <= 1.0
    rig.hands.pass_ms(1_000)
    assert len(rig.orders(rig.settle())) == 1
    assert asked


def _asking(rig, asked):
    class Asked:
        def __getattr__(self, name):
            if name in ("due", "stretches", "next_due"):
                asked.append(name)
            return getattr(rig.store, name)

    return Asked()


def test_a_due_tick_that_moved_later_is_not_rewritten_until_it_wakes_for_nothing():
    rig = Rig().open()
    made = rig.define(blocks=[step("a", "work"), step("b", "work")])
    start = rig.start(made)
    rig.send(start)
    (order,) = rig.orders(rig.settle())
    stored = rig.row(start.instance).due
    rig.clock.advance(100)
    rig.send(rig.applied(order))
    rig.settle()
    assert rig.row(start.instance).due == stored
    rig.clock.advance(stored)
    rows, turns = rig.check_chain(), sum(row.turn for row in rig.store.partitions())
    rig.settle()
    assert rig.row(start.instance).due == stored + 100
    assert rig.check_chain() == rows
    assert sum(row.turn for row in rig.store.partitions()) == turns + 1
    assert rig.settle() == []
    assert rig.writer.next_due() == stored + 100


def test_all_that_is_due_at_once_moves_within_as_many_turns_as_it_fills():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=100)).open()
    made = rig.define(blocks=[wait("w", duration=1_000), step("a", "work")])
    rig.send(*[rig.start(made) for _ in range(350)])
    rig.settle()
    rig.clock.advance(10)
    moved = [len(decided.orders) for decided in rig.settle()]
    assert moved[:4] == [100, 100, 100, 50]
    assert sum(moved) == 350


def test_a_higher_priority_that_falls_due_later_does_not_wait_for_the_whole_backlog():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=10)).open()
    low = rig.define("low", [wait("w", duration=1_000), step("a", "work")])
    high = rig.define("high", [wait("w", duration=1_100), step("a", "work")])
    rig.send(*[rig.start(low, priority=0) for _ in range(100)])
    critical = rig.start(high, priority=3)
    rig.send(critical)
    rig.settle()
    rig.clock.advance(10)
    rig.turn()
    rig.clock.advance(11)
    assert critical.instance in [order.instance for order in rig.turn().orders]


@pytest.mark.req("SEQ-LIM-5")
def test_the_backlog_of_one_tenant_does_not_hold_up_another_that_falls_due_later():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=20)).open()
    early = rig.define("early", [wait("w", duration=1_000), step("a", "work")])
    late = rig.define("late", [wait("w", duration=1_100), step("a", "work")])
    rig.send(*[rig.start(early, tenant="acme") for _ in range(400)])
    few = [rig.start(late, tenant="beta") for _ in range(5)]
    rig.send(*few)
    rig.settle()
    rig.clock.advance(10)
    assert {order.tenant for order in rig.turn().orders} == {"acme"}
    rig.clock.advance(11)
    moved = [order.instance for order in rig.turn().orders]
    assert {start.instance for start in few} <= set(moved)
    assert len(moved) == 20
    assert len(rig.orders(rig.settle())) == 400 + 5 - 2 * 20
    assert rig.check_chain() == 2 * 405


def test_a_turn_asks_for_the_tenants_that_are_due_whoever_else_waits():
    rig = Rig().open()
    long = rig.define("long", [wait("w", duration=900_000)])
    short = rig.define("short", [wait("w", duration=1_000), step("a", "work")])
    rig.send(*[rig.start(long, tenant=f"tenant-{n}") for n in range(300)])
    rig.send(rig.start(short, tenant="acme"), rig.start(short, tenant="beta", priority=3))
    rig.settle()
    rig.clock.advance(10)
    asked = []
    rig.writer._parts.store = _asking(rig, asked)
    assert len(rig.orders(rig.settle())) == 2
    assert asked == ["due"]
    asked.clear()
    assert rig.writer.next_due() == 9_000
    assert len(asked) == 1


def test_more_tenants_than_a_turn_has_places_fall_due_at_once_and_all_move():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=10)).open()
    made = rig.define(blocks=[wait("w", duration=1_000), step("a", "work")])
    rig.send(*[rig.start(made, tenant=f"tenant-{n % 35}") for n in range(70)])
    rig.settle()
    rig.clock.advance(10)
    moved = [len(decided.orders) for decided in rig.settle()]
    assert moved[:7] == [10] * 7
    assert sum(moved) == 70


def test_a_store_that_cannot_be_read_for_a_moment_loses_no_due_instance():
    rig = Rig(mode="wall").open()
    made = rig.define(blocks=[wait("w", duration=1_000), step("a", "work")])
    rig.send(*[rig.start(made, tenant=f"tenant-{n % 3}") for n in range(30)])
    rig.settle()
    rig.hands.pass_ms(1_000)
    rig.writer._parts.store = _unreadable(rig)
    assert rig.turn().held == "store.unavailable"
    rig.writer._parts.store = rig.store
    rig.hands.pass_ms(60_000)
    assert len(rig.orders(rig.settle())) == 30


def _unreadable(rig):
    class Unreadable:
        def __getattr__(self, name):
            if name == "due":
                raise StoreError("store.unavailable", "the disk is away")
            return getattr(rig.store, name)

    return Unreadable()


def test_an_instance_that_yields_is_queued_as_due_so_that_a_refused_caller_takes_nothing_away():
    """It is due now by its row: an input that is refused in a hold does not take it away."""
    rig = Rig().open()
    blocks = [loop("l", "true", step("s", "noop"), max_iterations=5_000), step("a", "work")]
    start = rig.start(rig.define(blocks=blocks))
    rig.send(start)
    rig.turn()
    entry = rig.writer._parts.queue.get(start.instance)
    assert entry.due is not None
    signal = rig.signal(start.instance)
    entry.inputs.append(signal)
    stand_still(rig.writer._parts, "store.full", "no room")
    assert rig.writer._parts.queue.get(start.instance) is entry
    rig.writer._parts.hold.end()
    assert len(rig.orders(rig.settle())) == 1


@pytest.mark.req("CORE-CLK-6")
def test_stepped_turns_are_one_tick_and_one_interval_apart_whatever_was_sent():
    rig = Rig(mode="stepped", settings=WriterSettings(tick_interval_ms=1_000)).open()
    made = rig.define(blocks=[wait("w", duration=200), step("a", "work")])
    rig.turn()
    start = rig.start(made)
    rig.send(start)
    assert rig.turn() is None
    assert rig.writer.idle_seconds() == pytest.approx(1.0)
    orders = []
    for _ in range(6):
        rig.hands.pass_ms(1_000)
        decided = rig.turn()
        orders.append(len(decided.orders) if decided else 0)
    assert [row.tick for row in rig.journal(start.instance)] == [2, 4]
    assert orders == [0, 0, 1, 0, 0, 0]


@pytest.mark.req("CORE-CLK-5")
def test_ninety_days_of_waiting_pass_in_a_few_moves_of_the_virtual_clock():
    rig = Rig().open()
    days = [wait(f"w{day}", duration=86_400_000) for day in range(90)]
    start = rig.start(rig.define(blocks=days))
    rig.send(start)
    moves = 0
    while True:
        rig.settle()
        due = rig.writer.next_due()
        if due is None:
            break
        rig.clock.advance(due)
        moves += 1
    assert moves == 90
    assert rig.row(start.instance).state == "completed"
    assert rig.clock.tick() == 90 * 864_000
