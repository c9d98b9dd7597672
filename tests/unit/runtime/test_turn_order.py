"""Which instances move next: CORE-SCH-2 and CORE-SCH-3."""

from __future__ import annotations

import pytest

from detent.definition import step
from detent.runtime.dues import DueStretch
from detent.runtime.ready import LOWER_SLOT, ReadyQueue
from detent.runtime.settings import WriterSettings
from tests.unit.runtime.writer_rig import Rig


def names(entries):
    return [entry.id for entry in entries]


@pytest.mark.req("CORE-SCH-2")
def test_priority_comes_before_the_due_tick_and_the_due_tick_before_the_id():
    queue = ReadyQueue()
    queue.add("c", "acme", 1, 5)
    queue.add("b", "acme", 1, 5)
    queue.add("z", "acme", 1, 4)
    queue.add("low", "acme", 0, 1)
    queue.add("critical", "acme", 3, 9)
    assert names(queue.pick(10)) == ["critical", "z", "b", "c", "low"]
    assert len(queue) == 0


@pytest.mark.req("CORE-SCH-3")
def test_what_is_left_over_comes_first_next_time_within_its_priority():
    queue = ReadyQueue()
    for name in ("m", "n", "o"):
        queue.add(name, "acme", 1, 5)
    assert names(queue.pick(1)) == ["m"]
    queue.round += 1
    queue.add("a", "acme", 1, 2)
    queue.add("urgent", "acme", 2, 9)
    assert names(queue.pick(10)) == ["urgent", "n", "o", "a"]


@pytest.mark.req("CORE-SCH-3")
def test_low_priority_moves_within_a_stated_number_of_slots_under_a_steady_critical_stream():
    queue = ReadyQueue()
    low = ["low1", "low2", "low3"]
    for name in low:
        queue.add(name, "acme", 0, 1)
    seen = []
    for turn in range(100):
        queue.round += 1
        for each in range(5):
            queue.add(f"critical-{turn}-{each}", "acme", 3, turn)
        seen += names(queue.pick(5))
    for before, name in enumerate(low):
        assert seen.index(name) < LOWER_SLOT * (before + 1)


def test_a_turn_cut_short_by_its_budget_uses_up_only_the_slots_it_decided():
    queue = ReadyQueue()
    queue.add("low", "acme", 0, 1)
    decided = []
    for turn in range(LOWER_SLOT + 1):
        queue.round += 1
        queue.add(f"critical-{turn}", "acme", 3, 1)
        picked = queue.pick(500)
        decided += names(picked[:1])
        queue.restore(picked[1:])
    assert "low" in decided


def test_an_instance_woken_by_its_due_tick_and_by_an_input_is_queued_once_as_of_the_earlier():
    queue = ReadyQueue()
    queue.add("x", "acme", 1, 9)
    queue.add("y", "acme", 1, 8)
    stretch = DueStretch("acme", 1, 3)
    queue.wake("x", 3, stretch)
    queue.wake("x", 3, stretch)
    assert stretch.open == 1
    picked = queue.pick(10)
    assert names(picked) == ["x", "y"]
    assert not queue
    queue.done(picked)
    assert stretch.open == 0


def test_inputs_sent_while_an_entry_was_out_follow_its_own_when_it_is_put_back():
    queue = ReadyQueue()
    queue.add("x", "acme", 1, 1).inputs.append("first")
    picked = queue.pick(10)
    queue.add("x", "acme", 1, 2).inputs.append("second")
    queue.restore(picked)
    (entry,) = queue.pick(10)
    assert entry.inputs == ["first", "second"]
    assert not queue.pick(10)


@pytest.mark.req("CORE-SCH-2", "CORE-SCH-3")
def test_a_turn_dispatches_in_order_and_takes_no_more_than_its_bound():
    rig = Rig(settings=WriterSettings(max_instances_per_turn=2)).open()
    made = rig.define(blocks=[step("a", "work")])
    starts = [rig.start(made, priority=p) for p in (1, 3, 0, 1)]
    rig.send(*starts)
    turns = [[order.instance for order in decided.orders] for decided in rig.settle()]
    normal, critical, low, later = (start.instance for start in starts)
    assert turns == [[critical, normal], [later, low]]
    assert rig.check_chain() == 4


@pytest.mark.req("CORE-SCH-3")
def test_a_wall_turn_ends_when_its_time_budget_is_spent_and_the_rest_follows():
    rig = Rig(mode="wall", settings=WriterSettings(turn_budget_ms=20)).open()
    boot = rig.hands.boot
    rig.clock._boot = lambda: rig.hands.pass_ms(5) or boot()  # every look at the clock takes 5 ms
    made = rig.define(blocks=[step("a", "work")])
    rig.send(*[rig.start(made) for _ in range(20)])
    first = rig.turn()
    assert 1 <= len(first.orders) < 20
    rest = rig.orders(rig.settle())
    assert len(first.orders) + len(rest) == 20


def test_a_virtual_turn_knows_no_time_budget():
    rig = Rig(settings=WriterSettings(turn_budget_ms=1)).open()
    boot = rig.hands.boot
    rig.clock._boot = lambda: rig.hands.pass_ms(5) or boot()
    made = rig.define(blocks=[step("a", "work")])
    rig.send(*[rig.start(made) for _ in range(20)])
    assert len(rig.turn().orders) == 20
