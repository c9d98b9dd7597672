"""Start marks and withdrawals of the same effect: whoever comes second has lost."""

from __future__ import annotations

import pytest

from detent.model.errors import StoreError
from detent.ports.store import Flight
from tests.conformance.world import TICK, World, a_change, everything

ONE = Flight("effect-1", "dispatcher-a", 1, 5)
TWO = Flight("effect-2", "dispatcher-a", 2, 5)


def test_a_mark_is_won_once(world, store):
    assert world.commit(marks=[ONE, TWO]).marked == ["effect-1", "effect-2"]
    late = Flight("effect-1", "dispatcher-b", 3, 6)
    assert world.commit(marks=[late]).marked == []
    assert store.flights(["effect-1", "effect-2", "effect-3"]) == {
        "effect-1": ONE,
        "effect-2": TWO,
    }


def test_a_mark_in_its_own_transaction_plays_by_the_same_rule(world, store):
    assert store.mark([ONE]) == ["effect-1"]
    assert store.mark([ONE, TWO]) == ["effect-2"]
    assert world.commit(marks=[ONE]).marked == []
    assert store.mark([]) == []


@pytest.mark.req("CORE-EFF-3")
def test_a_withdrawal_before_the_mark_wins(world, store):
    world.commit(tombstones=["effect-1"])
    assert store.flights(["effect-1"]) == {"effect-1": Flight("effect-1", "", 0, TICK)}
    assert world.commit(marks=[ONE, TWO]).marked == ["effect-2"]
    assert store.mark([ONE]) == []


@pytest.mark.req("CORE-EFF-3")
def test_a_withdrawal_after_the_mark_has_lost_and_its_turn_is_to_be_decided_anew(world, store):
    store.mark([ONE])
    before = everything(store)
    turn = world.turn([a_change("one")], tombstones=["effect-1", "effect-2"])
    with pytest.raises(StoreError) as refusal:
        store.commit(turn)
    assert refusal.value.code == "store.conflict"
    assert refusal.value.details == {"reason": "flight", "effects": ["effect-1"], "instances": []}
    assert everything(store) == before
    assert store.flights(["effect-1", "effect-2"]) == {"effect-1": ONE}
    world.commit(a_change("one"), tombstones=["effect-2"])


def test_a_withdrawal_of_what_is_withdrawn_is_no_loss(world, store):
    world.commit(tombstones=["effect-1"])
    world.commit(tombstones=["effect-1"])


def test_a_mark_and_a_withdrawal_in_one_commit_contradict_each_other(world, store):
    with pytest.raises(StoreError, match=r"store\.conflict"):
        store.commit(world.turn([], marks=[ONE], tombstones=["effect-1"]))
    assert store.flights(["effect-1"]) == {}


def test_withdrawals_are_forgotten_with_the_dedupe_window_and_marks_are_not(world, store):
    world.commit(marks=[ONE._replace(since=1)], tick=10)
    world.commit(tombstones=["old-1", "old-2", "old-3"], tick=20)
    world.commit(tombstones=["new"], tick=30)
    assert store.forget(20, 10) == 0
    assert store.forget(21, 2) == 2
    assert store.forget(21, 10) == 1
    assert list(store.flights(["effect-1", "old-1", "old-2", "old-3", "new"])) == [
        "effect-1",
        "new",
    ]


def test_the_turn_that_takes_the_outcome_removes_the_mark(world, store):
    store.mark([ONE, TWO])
    world.commit(settled=["effect-1", "effect-unknown"])
    assert list(store.flights(["effect-1", "effect-2"])) == ["effect-2"]
    assert store.mark([ONE]) == ["effect-1"]


def test_a_settled_effect_can_be_marked_again_in_the_same_commit(world, store):
    store.mark([ONE])
    again = ONE._replace(dispatch=9)
    assert world.commit(settled=["effect-1"], marks=[again]).marked == ["effect-1"]
    assert store.flights(["effect-1"])["effect-1"].dispatch == 9


def test_a_dispatcher_elsewhere_races_the_writer_by_the_row_alone(store_factory):
    world = World(store_factory())
    dispatcher = store_factory()
    assert dispatcher.mark([ONE]) == ["effect-1"]
    with pytest.raises(StoreError, match=r"store\.conflict"):
        world.store.commit(world.turn([], tombstones=["effect-1", "effect-2"]))
    world.commit(tombstones=["effect-2"])
    assert dispatcher.mark([TWO]) == []


def test_many_marks_at_once(world, store):
    marks = [Flight(f"effect-{i}", "d", i, 1) for i in range(200)]
    store.mark(marks[50:60])
    won = world.commit(marks=marks).marked
    assert won == [mark.effect for mark in marks[:50] + marks[60:]]
    effects = [mark.effect for mark in marks]
    assert len(store.flights(effects)) == 200
    world.commit(settled=effects)
    assert store.flights(effects) == {}
