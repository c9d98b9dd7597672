"""Work items: claimed by one worker at a time, kept by heartbeats, settled with their arrival."""

from __future__ import annotations

import threading

import pytest

from detent.model.errors import StoreError
from detent.ports.work import Beat, Claim, Report, WorkQuery
from tests.conformance.world import TICK, World, a_change, an_arrival, an_item, everything

pytestmark = pytest.mark.req("SEQ-HND-3")

HERE = range(4)
STALE_MS = 1_000


def a_claim(worker="w1", handler="charge", now_ms=100, **more):
    return Claim(handler=handler, worker=worker, now_ms=now_ms, stale_ms=STALE_MS, **more)


def a_report(id, worker="w1", epoch=1, now_ms=200, **more):
    filled = {"state": "completed", "event": "completed", "output": b'{"x":1}'}
    arrival = an_arrival(f"report-of-{id}-{epoch}", body=b"done")
    return Report(id, worker, epoch, now_ms, arrival=arrival, **{**filled, **more})


def claimed(store, **more):
    return [row.id for row in store.work.claim(a_claim(**more)).rows]


def events(store, id):
    return [row.event for row in store.work.events(id, 100)]


def left(store):
    return [row.id for row in store.arrivals(HERE, 100)]


def test_items_are_given_oldest_first_and_each_once(world, store):
    world.commit(work=[an_item(f"item-{n}", available_ms=9 - n) for n in range(5)])
    world.commit(work=[an_item("item-5", available_ms=5)])
    assert claimed(store, limit=2) == ["item-4", "item-5"]
    assert claimed(store, worker="w2", limit=10) == ["item-3", "item-2", "item-1", "item-0"]
    assert claimed(store, limit=10) == []


def test_what_was_claimed_says_by_whom_since_when_and_until_when(world, store):
    world.commit(work=[an_item("plain", params=b"[1]"), an_item("timed", timeout_ms=300)])
    plain, timed = store.work.claim(a_claim(limit=2)).rows
    assert (plain.state, plain.worker, plain.claim_epoch) == ("claimed", "w1", 1)
    assert (plain.claimed_ms, plain.heartbeat_ms, plain.lease_ms) == (100, 100, 1_100)
    assert (plain.deadline_ms, plain.params, plain.context) == (None, b"[1]", b"null")
    assert (timed.deadline_ms, timed.lease_ms) == (400, 400)  # its own time is over first
    assert store.work.item("plain") == plain
    assert store.work.next_lease() == 400


def test_a_poll_of_all_tenants_passes_over_those_that_are_barred(world, store):
    world.commit(
        work=[
            an_item("a", tenant="acme", queue="q"),
            an_item("b", tenant="beta", queue="q", available_ms=50),
            an_item("c", tenant="cyan", available_ms=60),
        ]
    )
    barred = ("acme", "nobody", 'od"d')
    assert claimed(store, barred=("acme", "beta", "cyan"), limit=9) == []
    assert store.work.claim(a_claim(now_ms=10, barred=barred)) == ([], 50)
    assert claimed(store, barred=barred, queue="q", limit=9) == ["b"]
    assert claimed(store, barred=barred, limit=9) == ["c"]
    assert claimed(store, barred=("beta", "cyan"), limit=9) == ["a"]


def test_an_item_is_had_no_earlier_than_it_may_be(world, store):
    world.commit(work=[an_item("late", available_ms=101), an_item("later", available_ms=500)])
    assert store.work.claim(a_claim()) == ([], 101)
    assert claimed(store, now_ms=101) == ["late"]
    assert store.work.claim(a_claim(now_ms=499)) == ([], 500)
    assert store.work.claim(a_claim(handler="other")) == ([], None)


def test_handlers_queues_and_tenants_are_kept_apart(world, store):
    world.commit(
        work=[
            an_item("free"),
            an_item("queued", queue="q"),
            an_item("foreign", tenant="beta", queue="q"),
            an_item("other", handler="mail"),
        ]
    )
    assert claimed(store, queue="none", limit=9) == []
    assert claimed(store, queue="q", tenant="beta", limit=9) == ["foreign"]
    assert claimed(store, queue="q", limit=9) == ["queued"]
    assert claimed(store, tenant="beta", limit=9) == []
    assert claimed(store, tenant="acme", limit=9) == ["free"]
    assert claimed(store, handler="mail", limit=9) == ["other"]


def test_a_poll_without_a_queue_takes_the_items_of_any(world, store):
    world.commit(work=[an_item("a", queue="q"), an_item("b"), an_item("c", queue="r")])
    assert claimed(store, limit=9) == ["a", "b", "c"]


def test_a_settled_item_and_its_arrival_are_one(world, store):
    world.commit(a_change("instance-1"), work=[an_item("item")])
    claimed(store)
    assert store.work.settle(a_report("item", logs=b"[]")) == "settled"
    row = store.work.item("item")
    assert (row.state, row.completed_ms, row.output) == ("completed", 200, b'{"x":1}')
    assert (row.lease_ms, row.deadline_ms) == (None, None)
    assert left(store) == ["report-of-item-1"]
    assert store.work.logs("instance-1", 10) == [("a", b"[]")]
    assert events(store, "item") == ["claimed", "completed"]


def test_a_settling_that_breaks_off_at_any_statement_leaves_nothing(store_factory):
    store = store_factory()
    World(store).commit(work=[an_item("item")])
    claimed(store)
    before = everything(store)
    for number in range(1, 50):
        try:
            with store_factory.failing(store, number) as seen:
                answer = store.work.settle(a_report("item"))
            break
        except StoreError:
            assert everything(store) == before, seen[-1]
    assert number > 5
    assert answer == "settled"
    assert left(store) == ["report-of-item-1"]


@pytest.mark.parametrize(
    "wrong",
    [{"worker": "w2"}, {"epoch": 2}, {"epoch": 0}, {"worker": ""}],
    ids=str,
)
def test_a_report_of_another_claim_changes_nothing_but_the_history(world, store, wrong):
    world.commit(work=[an_item("item")])
    claimed(store)
    before = store.work.item("item")
    assert store.work.settle(a_report("item", **wrong)) == "lost"
    assert store.work.item("item") == before
    assert left(store) == []
    assert events(store, "item") == ["claimed", "stale_mutation_rejected"]


def test_nobody_reports_on_what_is_pending_or_over(world, store):
    world.commit(work=[an_item("item")])
    assert store.work.settle(a_report("item")) == "lost"
    claimed(store)
    assert store.work.settle(a_report("item")) == "settled"
    assert store.work.settle(a_report("item")) == "lost"
    assert left(store) == ["report-of-item-1"]


def test_a_heartbeat_moves_the_lease_but_not_beyond_the_item_s_own_time(world, store):
    world.commit(work=[an_item("plain"), an_item("timed", timeout_ms=2_000)])
    claimed(store, limit=2)
    for id in ("plain", "timed"):
        assert store.work.beat(Beat(id, "w1", 1, 1_000, STALE_MS)) == ("kept", 0)
        assert store.work.beat(Beat(id, "w1", 1, 1_500, STALE_MS)) == ("kept", 0)
    assert store.work.item("plain").lease_ms == 2_500
    assert store.work.item("timed").lease_ms == 2_100
    assert store.work.item("plain").heartbeat_ms == 1_500


def test_a_checkpoint_is_written_only_over_the_one_its_writer_knew(world, store):
    world.commit(work=[an_item("item")])
    claimed(store)
    assert store.work.beat(Beat("item", "w1", 1, 150, STALE_MS, b"one", 0)) == ("kept", 1)
    assert store.work.beat(Beat("item", "w1", 1, 160, STALE_MS, b"two", 0)) == ("seq", 1)
    assert store.work.item("item").heartbeat_ms == 150
    assert store.work.beat(Beat("item", "w1", 1, 170, STALE_MS)) == ("kept", 1)
    row = store.work.item("item")
    assert (row.checkpoint, row.checkpoint_seq) == (b"one", 1)


def test_a_heartbeat_of_another_claim_is_lost(world, store):
    world.commit(work=[an_item("item")])
    assert store.work.beat(Beat("item", "w1", 1, 150, STALE_MS)) == ("lost", 0)
    claimed(store)
    before = store.work.item("item")
    for worker, epoch in (("w2", 1), ("w1", 2), ("w1", 0)):
        assert store.work.beat(Beat("item", worker, epoch, 150, STALE_MS)) == ("lost", 0)
    assert store.work.item("item") == before


def test_an_overdue_claim_goes_back_under_its_id_and_the_next_has_a_higher_epoch(world, store):
    world.commit(work=[an_item("item"), an_item("kept")])
    claimed(store, limit=2)
    store.work.beat(Beat("item", "w1", 1, 150, STALE_MS, b"half", 0))
    store.work.beat(Beat("kept", "w1", 1, 500, STALE_MS))
    assert store.work.overdue(1_149, 10) == []
    overdue = store.work.overdue(1_150, 10)
    assert [row.id for row in overdue] == ["item"]
    assert [row.id for row in store.work.reclaim(overdue, 1_150, {})] == ["item"]
    back = store.work.item("item")
    assert (back.state, back.worker, back.claim_epoch, back.lost) == ("pending", None, 1, 1)
    (row,) = store.work.claim(a_claim("w2", now_ms=1_200)).rows
    assert (row.id, row.claim_epoch, row.checkpoint, row.checkpoint_seq) == ("item", 2, b"half", 1)
    assert store.work.settle(a_report("item")) == "lost"
    assert store.work.settle(a_report("item", "w2", 2)) == "settled"
    assert events(store, "item") == [
        "claimed",
        "reclaimed",
        "claimed",
        "stale_mutation_rejected",
        "completed",
    ]


def test_a_heartbeat_that_comes_before_the_reaper_keeps_the_claim(world, store):
    world.commit(work=[an_item("item")])
    claimed(store)
    overdue = store.work.overdue(1_100, 10)
    store.work.beat(Beat("item", "w1", 1, 1_100, STALE_MS))
    assert store.work.reclaim(overdue, 1_100, {}) == []
    assert store.work.settle(a_report("item", now_ms=1_100, overdue=True)) == "lost"
    assert store.work.item("item").state == "claimed"
    assert events(store, "item") == ["claimed"]


def test_what_is_called_off_is_nobody_s_and_its_holder_s_report_is_ignored(world, store):
    items = ("pending", "held", "done", "freed")
    world.commit(work=[an_item(id, handler=id) for id in items])
    for id in ("held", "done", "freed"):
        claimed(store, handler=id)
    store.work.settle(a_report("done"))
    store.work.reclaim([store.work.item("freed")], 9_999, {})
    world.commit(called_off=[*items, "unknown"])
    states = {id: store.work.item(id).state for id in items}
    expected = dict.fromkeys(items, "cancelled")
    assert states == {**expected, "done": "completed"}
    assert claimed(store, handler="pending") == []
    assert store.work.settle(a_report("held")) == "ignored"
    assert store.work.settle(a_report("held", epoch=2)) == "lost"
    assert store.work.beat(Beat("held", "w1", 1, 150, STALE_MS)) == ("lost", 0)
    assert store.work.settle(a_report("freed")) == "lost"
    assert left(store) == ["report-of-done-1"]
    assert events(store, "pending") == ["cancelled"]
    assert store.work.next_lease() is None


def test_an_item_made_and_called_off_in_one_turn_is_called_off(world, store):
    world.commit(work=[an_item("item")], called_off=["item"])
    assert store.work.item("item").state == "cancelled"


def test_a_retried_item_goes_on_from_the_checkpoint_of_the_one_before(world, store):
    world.commit(work=[an_item("first")])
    claimed(store)
    store.work.beat(Beat("first", "w1", 1, 150, STALE_MS, b"half", 0))
    world.commit(work=[an_item("second", previous="first"), an_item("fresh", previous="nobody")])
    second, fresh = store.work.item("second"), store.work.item("fresh")
    assert (second.checkpoint, second.checkpoint_seq, second.claim_epoch) == (b"half", 1, 0)
    assert (fresh.checkpoint, fresh.checkpoint_seq) == (None, 0)


def test_lists_filter_and_count(world, store):
    world.commit(
        work=[
            an_item("a", queue="q"),
            an_item("b", tenant="beta"),
            an_item("c", handler="mail"),
        ]
    )
    claimed(store, queue="q")

    def listed(**query):
        return [row.id for row in store.work.items(WorkQuery(**query))]

    assert listed() == ["c", "b", "a"]
    assert listed(limit=1, offset=1) == ["b"]
    assert listed(tenant="acme") == ["c", "a"]
    assert listed(states=("claimed", "failed")) == ["a"]
    assert listed(worker="w1") == listed(queue="q") == ["a"]
    assert listed(handler="mail", tenant="beta") == []
    assert store.work.counts(None) == [
        ("charge", "claimed", 1),
        ("charge", "pending", 1),
        ("mail", "pending", 1),
    ]
    assert store.work.counts("beta") == [("charge", "pending", 1)]
    assert store.work.holders(None) == {"w1": 1}
    assert store.work.holders("beta") == {}


def test_a_worker_is_remembered_by_what_it_polls_for(world, store):
    claimed(store, tenant="acme", version="1")
    claimed(store, handler="mail", queue="q", now_ms=200)
    claimed(store, tenant="acme", version="1", now_ms=300)  # too soon to be written down again
    rows = store.work.workers(None, 0, 10)
    assert [tuple(row) for row in rows] == [
        ("acme", "w1", "charge", "", "1", 100),
        ("", "w1", "mail", "q", None, 200),
    ]
    assert [row.handler for row in store.work.workers("acme", 0, 10)] == ["charge"]
    claimed(store, tenant="acme", version="2", now_ms=300)
    claimed(store, tenant="acme", version="2", now_ms=9_000)
    assert [tuple(row)[4:] for row in store.work.workers("acme", 0, 10)] == [("2", 9_000)]
    assert store.work.workers(None, 9_001, 10) == []


def test_a_heartbeat_is_a_sign_of_life_of_the_worker_too(world, store):
    world.commit(work=[an_item("item")])
    claimed(store)
    store.work.beat(Beat("item", "w1", 1, 50_000, STALE_MS))
    assert [row.seen_ms for row in store.work.workers(None, 0, 10)] == [50_000]


def test_an_idle_poll_writes_nothing(store_factory):
    store = store_factory()
    World(store).commit(work=[an_item("late", available_ms=9_999)])
    claimed(store)
    with store_factory.failing(store, 0) as seen:
        for now_ms in range(100, 1_000, 10):
            assert claimed(store, now_ms=now_ms) == []
    assert seen
    assert not [sql for sql in seen if not sql.lstrip().upper().startswith("SELECT")]


def test_ended_items_are_forgotten_with_their_history_and_open_ones_are_not(world, store):
    epoch_ms = store.meta().epoch_ms
    world.commit(work=[an_item("open"), an_item("over")])
    claimed(store, limit=2)
    store.work.settle(a_report("over", now_ms=epoch_ms + 900))
    assert store.forget(before_tick=9, limit=10) == 1  # the worker, unseen since 1970
    assert store.work.item("over") is not None
    assert store.forget(before_tick=10, limit=10) == 1
    assert store.work.item("over") is None
    assert events(store, "over") == []
    assert events(store, "open") == ["claimed"]


def test_many_items_of_one_turn(world, store):
    made = [an_item(f"item-{n:04}", available_ms=n) for n in range(700)]
    world.commit(work=made, tick=TICK)
    assert claimed(store, limit=1_000, now_ms=10_000) == [item.id for item in made]


def test_eight_workers_share_five_hundred_items_and_no_two_get_the_same(store_factory):
    first = store_factory()
    connections = [store_factory() for _ in range(8)]
    World(first).commit(work=[an_item(f"item-{n:03}") for n in range(500)])
    given, failures = [], []

    def work(name, store):
        try:
            while rows := store.work.claim(a_claim(name, limit=7)).rows:
                given.extend((row.id, row.claim_epoch) for row in rows)
                for row in rows:
                    assert store.work.settle(a_report(row.id, name)) == "settled"
        except Exception as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(f"w{number}", store))
        for number, store in enumerate(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(given) == [(f"item-{n:03}", 1) for n in range(500)]
    assert len(first.arrivals(HERE, 1_000)) == 500
