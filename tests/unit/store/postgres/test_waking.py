"""LISTEN and NOTIFY: whoever leaves something wakes who must look, after it is committed."""

from __future__ import annotations

import queue

import pytest

from detent.ports.waking import Wake
from detent.ports.work import Claim, GivenBack, PushClaim
from detent.store.postgres import PostgresListener, open_store
from detent.store.postgres.waking import Waker
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_birth, a_change, an_arrival, an_item


@pytest.fixture
def heard():
    return queue.Queue()


@pytest.fixture
def store(postgres_url):
    # A name of its own: the channel is the store's.
    store = open_store(postgres_url, create=NEW._replace(store_id=postgres_url[-12:]))
    yield store
    store.close()


@pytest.fixture
def listener(postgres_url, store, heard):
    listener = PostgresListener(postgres_url, store.meta().store_id, heard.put)
    listener.start()
    assert listener.listening.wait(10)
    assert heard.get(timeout=10) == Wake(missed=True)  # what was before, nobody has told
    yield listener
    listener.close()


def test_arrivals_wake_their_partitions_once_they_can_be_read(listener, store, heard):
    store.enqueue([an_arrival("a-1", p=3), an_arrival("a-2", p=1), an_arrival("a-3", p=3)], 1)
    assert heard.get(timeout=10) == Wake(partitions=(1, 3))
    assert len(store.arrivals([1, 3], 10)) == 3


def test_a_failed_transaction_wakes_nobody(listener, store, heard):
    with pytest.raises(Exception, match="value"):
        store.enqueue([an_arrival("a-1", body=5)], 1)
    store.enqueue([an_arrival("a-2", p=2)], 1)
    assert heard.get(timeout=10) == Wake(partitions=(2,))


def test_a_turn_wakes_other_writers_and_those_who_wait_for_work(listener, store, heard):
    world = World(store)
    store.release(world.owner.id, [2, 3])  # they may be another writer's from now on
    heads = {row.p: (row.fence_epoch, row.turn, row.root) for row in store.partitions()}
    world.heads = heads
    birth = a_birth("child")
    world.commit(
        a_change("one", p=1),
        arrivals=[an_arrival("a-1", "child", 3, b"x", birth), an_arrival("a-2", "one", 1)],
        work=[an_item("w-1", queue="q"), an_item("w-2", tenant="beta")],
    )
    assert heard.get(timeout=10) == Wake(partitions=(3,))
    topics = (("charge", "q", "acme"), ("charge", "", "beta"))
    assert heard.get(timeout=10) == Wake(work=topics)


def test_a_claim_that_went_back_wakes_other_workers(listener, store, heard):
    World(store).commit(work=[an_item("w-1")])
    assert heard.get(timeout=10).work
    claim = Claim(handler="charge", worker="w", now_ms=0, stale_ms=10)
    store.work.claim(claim)
    store.work.reclaim(store.work.overdue(100, 5), 100, {})
    assert heard.get(timeout=10) == Wake(work=(("charge", "", "acme"),))


def test_what_is_given_back_wakes_who_may_have_it_and_what_is_held_wakes_the_writer(
    listener, store, heard
):
    World(store).commit(work=[an_item("w-1", queue="q")])
    assert heard.get(timeout=10).work
    push = PushClaim("acme", "q", "push:q", 0, 10)
    back = GivenBack("w-1", "push:q", 1, 5, 5, "it answered 503")
    store.work.claim_pushes(push)
    assert store.work.give_back(back) is True
    assert heard.get(timeout=10) == Wake(work=(("charge", "q", "acme"),))
    told = an_arrival("told-1", p=2)
    store.work.claim_pushes(push._replace(now_ms=5))
    assert store.work.give_back(back._replace(epoch=7, told=told)) is False  # wakes nobody
    assert store.work.give_back(back._replace(epoch=2, told=told)) is True
    assert heard.get(timeout=10) == Wake(partitions=(2,))


def test_a_claim_that_went_back_and_is_held_wakes_the_writer_alone(listener, store, heard):
    World(store).commit(work=[an_item("w-1")])
    assert heard.get(timeout=10).work
    store.work.claim(Claim(handler="charge", worker="w", now_ms=0, stale_ms=10))
    told = {"w-1": an_arrival("told-1", p=2)}
    store.work.reclaim(store.work.overdue(100, 5), 100, told)
    assert heard.get(timeout=10) == Wake(partitions=(2,))
    store.enqueue([an_arrival("a-1", p=3)], 1)
    assert heard.get(timeout=10) == Wake(partitions=(3,))


def test_a_report_wakes_the_writer(listener, store, heard):
    from tests.conformance.test_work import a_report

    World(store).commit(work=[an_item("w-1")])
    assert heard.get(timeout=10).work
    store.work.claim(Claim(handler="charge", worker="w1", now_ms=0, stale_ms=1_000))
    assert store.work.settle(a_report("w-1")) == "settled"
    assert heard.get(timeout=10) == Wake(partitions=(0,))


def test_a_listener_that_was_cut_off_listens_again_and_tells_that_it_missed_some(
    listener, store, heard
):
    ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE $1"
    store._session.rows(ended, ("LISTEN %",))
    assert heard.get(timeout=10) == Wake(missed=True)
    store.enqueue([an_arrival("a-1", p=2)], 1)
    assert heard.get(timeout=10) == Wake(partitions=(2,))


def test_what_is_too_long_for_a_notification_is_told_as_missed():
    topics = [("h" * 500, "q", "t")] * 20
    (statement,) = Waker("s").work(topics)
    assert statement[1][1] == "[[],[],true]"
    assert Waker("s").arrivals([]) == []


def test_a_listener_is_closed_twice_and_before_it_was_started(postgres_url, store, heard):
    listener = PostgresListener(postgres_url, store.meta().store_id, heard.put)
    listener.close()
    listener.close()
