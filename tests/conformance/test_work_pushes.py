"""Items of a pushed queue: claimed for its receiver, given back when nobody got them."""

from __future__ import annotations

import pytest

from detent.ports.work import GivenBack, PushClaim
from tests.conformance.test_work import STALE_MS, a_report, claimed, events
from tests.conformance.world import an_item, everything

pytestmark = pytest.mark.req("SEQ-HND-3")


def a_push(now_ms=100, limit=1, **more):
    given = {"tenant": "acme", "queue": "q", "worker": "push:q", **more}
    return PushClaim(now_ms=now_ms, stale_ms=STALE_MS, limit=limit, **given)


def pushed(store, **more):
    return [row.id for row in store.work.claim_pushes(a_push(**more)).rows]


def back(id, epoch=1, push_ms=500, worker="push:q"):
    return GivenBack(id, worker, epoch, 150, push_ms, "it answered 503")


def test_who_pushes_a_queue_is_given_its_items_whatever_their_handlers(world, store):
    world.commit(
        work=[
            an_item("free"),
            an_item("a", queue="q", available_ms=3),
            an_item("b", queue="q", handler="mail", available_ms=2),
            an_item("c", queue="q", handler="pinned", available_ms=1),
            an_item("foreign", queue="q", tenant="beta"),
            an_item("other", queue="r"),
            an_item("later", queue="q", available_ms=900),
        ]
    )
    assert store.work.claim_pushes(a_push(limit=0)) == ([], 900)
    found = store.work.claim_pushes(a_push(limit=9, barred=("pinned",)))
    assert ([row.id for row in found.rows], found.next_ms) == (["b", "a"], 900)
    assert [(row.worker, row.claim_epoch, row.lease_ms) for row in found.rows] == [
        ("push:q", 1, 1_100)
    ] * 2
    assert pushed(store, limit=9) == ["c"]
    assert pushed(store, limit=9, tenant="beta") == ["foreign"]
    assert events(store, "a") == ["claimed"]


def test_an_item_given_back_can_be_polled_at_once_and_pushed_after_its_pause(world, store):
    world.commit(work=[an_item("a", queue="q")])
    assert pushed(store) == ["a"]
    assert store.work.give_back(back("a")) is True
    row = store.work.item("a")
    assert (row.state, row.worker, row.pushes, row.lost) == ("pending", None, 1, 0)
    assert (row.lease_ms, row.deadline_ms, row.claimed_ms) == (None, None, None)
    assert store.work.claim_pushes(a_push(now_ms=499)) == ([], 500)
    assert pushed(store, now_ms=500) == ["a"]
    assert store.work.item("a").claim_epoch == 2
    assert store.work.give_back(back("a", epoch=2, push_ms=9_999)) is True
    assert store.work.item("a").pushes == 2
    assert claimed(store, now_ms=501) == ["a"]
    history = store.work.events("a", 9)
    assert [line.event for line in history] == [
        *["claimed", "push_failed"] * 2,
        "claimed",
    ]
    assert history[1].reason == "it answered 503"
    assert store.check() == []


@pytest.mark.parametrize(
    "given",
    [back("a", epoch=2), back("a", worker="w1"), back("unknown")],
    ids=["another epoch", "another worker", "another item"],
)
def test_only_the_holder_of_a_claim_gives_an_item_back(world, store, given):
    world.commit(work=[an_item("a", queue="q")])
    assert pushed(store) == ["a"]
    before = everything(store)
    assert store.work.give_back(given) is False
    assert everything(store) == before


def test_what_was_settled_or_called_off_is_not_given_back(world, store):
    world.commit(work=[an_item("a", queue="q"), an_item("b", queue="q")])
    assert pushed(store, limit=2) == ["a", "b"]
    assert store.work.settle(a_report("a", worker="push:q")) == "settled"
    world.commit(called_off=["b"])
    for id in ("a", "b"):
        assert store.work.give_back(back(id)) is False
    assert [store.work.item(id).state for id in ("a", "b")] == ["completed", "cancelled"]


def test_an_item_taken_back_from_the_silent_is_pushed_again_at_once(world, store):
    world.commit(work=[an_item("a", queue="q")])
    pushed(store)
    store.work.give_back(back("a", push_ms=120))
    pushed(store, now_ms=120)
    overdue = store.work.overdue(5_000, 9)
    assert [row.id for row in store.work.reclaim(overdue, 5_000, {})] == ["a"]
    row = store.work.item("a")
    assert (row.pushes, row.lost) == (0, 1)
    assert pushed(store, now_ms=5_000) == ["a"]
