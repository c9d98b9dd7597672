"""Items held back: nobody gets one until the instance that was told has put it out once more."""

from __future__ import annotations

import pytest

from detent.model.errors import StoreError
from detent.ports.work import HELD_MS, Beat, GivenBack
from tests.conformance.test_work import STALE_MS, a_claim, claimed, events, left
from tests.conformance.test_work_pushes import a_push, pushed
from tests.conformance.world import a_change, an_arrival, an_item, everything

pytestmark = pytest.mark.req("SEQ-LIM-1", "SEQ-HND-3")

LATE_MS = 5_000


def told(id="told-1"):
    return an_arrival(id, "one", body=b"once more")


def reclaimed(store):
    """A reclaim of what is overdue, of which `a` is told of."""
    overdue = store.work.overdue(LATE_MS, 9)
    return [row.id for row in store.work.reclaim(overdue, LATE_MS, {"a": told()})]


def given_back(store, epoch=1):
    return store.work.give_back(
        GivenBack("a", "push:q", epoch, 150, 160, "it answered 503", told())
    )


@pytest.fixture
def taken(world, store):
    """Two items of a queue, claimed for who pushes it, and the instance they are of."""
    items = [an_item(id, queue="q", ticket="t-1", instance="one") for id in ("a", "b")]
    world.commit(a_change("one"), work=items)
    assert pushed(store, limit=2) == ["a", "b"]


def held(store):
    return [row.id for row in (store.work.item(id) for id in "ab") if row.available_ms == HELD_MS]


def test_what_is_taken_from_the_silent_is_held_where_its_instance_is_told(taken, world, store):
    store.work.beat(Beat("a", "push:q", 1, 150, STALE_MS, b"half", 0))
    assert sorted(reclaimed(store)) == ["a", "b"]
    assert (held(store), left(store)) == (["a"], ["told-1"])
    assert store.arrivals(range(4), 9)[0].tenant == "acme"  # the instance's, not the arrival's own
    assert claimed(store, now_ms=LATE_MS, limit=9) == ["b"]
    assert store.work.claim(a_claim(now_ms=LATE_MS, limit=9)) == ([], None)
    assert store.work.claim_pushes(a_push(now_ms=LATE_MS)) == ([], None)
    assert events(store, "a") == ["claimed", "reclaimed"]
    again = an_item("a", queue="q", ticket="t-2", available_ms=LATE_MS + 1)
    world.commit(work=[again], taken=[("told-1", None)])
    assert store.work.claim(a_claim(now_ms=LATE_MS, limit=9)) == ([], LATE_MS + 1)
    (row,) = store.work.claim(a_claim("w2", now_ms=LATE_MS + 1)).rows
    assert (row.id, row.claim_epoch, row.ticket, row.lost) == ("a", 2, "t-2", 1)
    assert (row.checkpoint, row.checkpoint_seq) == (b"half", 1)


def test_a_claim_that_lives_after_all_is_told_of_to_nobody(taken, store):
    overdue = store.work.overdue(LATE_MS, 9)
    store.work.beat(Beat("a", "push:q", 1, LATE_MS, STALE_MS))
    assert [r.id for r in store.work.reclaim(overdue, LATE_MS, {"a": told()})] == ["b"]
    assert (held(store), left(store)) == ([], [])
    assert store.work.item("a").state == "claimed"


def test_what_is_given_back_is_held_where_its_instance_is_told(taken, world, store):
    assert given_back(store) is True
    assert (held(store), left(store)) == (["a"], ["told-1"])
    assert store.work.claim_pushes(a_push(now_ms=LATE_MS)) == ([], None)
    world.commit(work=[an_item("a", queue="q", ticket="t-2", available_ms=200)])
    assert pushed(store, now_ms=200) == ["a"]
    assert store.work.item("a").pushes == 1


def test_who_does_not_hold_a_claim_leaves_no_word_either(taken, store):
    before = everything(store)
    assert given_back(store, epoch=2) is False
    assert everything(store) == before


@pytest.mark.parametrize("act", [reclaimed, given_back])
def test_one_that_breaks_off_at_any_statement_leaves_nothing(store_factory, taken, store, act):
    before, number = everything(store), 0
    while True:
        number += 1
        with store_factory.failing(store, number) as seen:
            try:
                act(store)
            except StoreError:
                assert everything(store) == before, number
            else:
                assert len(seen) < number, "the statement that was told to fail did not"
                break
    assert (held(store), left(store)) == (["a"], ["told-1"])
    assert number > 1


def test_an_item_sent_elsewhere_says_why_in_its_history(world, store):
    items = [an_item("a", routed="a rule named another queue"), an_item("b")]
    world.commit(work=items, called_off=["a"])
    assert [(line.event, line.reason) for line in store.work.events("a", 9)] == [
        ("routed", "a rule named another queue"),
        ("cancelled", ""),
    ]
    assert events(store, "b") == []
