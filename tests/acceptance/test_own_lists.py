"""Lists of events and deliveries: they show what is kept, and cost what they show."""

from __future__ import annotations

import random

import apsw
import pytest

import detent
from detent.model import limits
from detent.service import events as events_service
from detent.service import webhooks as webhooks_service
from detent.service.webhooks import DeliveryFilter
from tests.acceptance.own_lists import agree, events_kept
from tests.acceptance.stage import DAY_MS, refused, state, virtual
from tests.acceptance.test_events import listener, sent, started

URL, OTHER = "https://hooks.example/one", "https://hooks.example/two"
FINE = detent.sequence("fine", detent.step("s", "noop"))
BAD = detent.sequence("bad", detent.step("s", "fail"))


class Reads:
    """A store that is only read, and how many snapshots were."""

    def __init__(self, store):
        self._store = store
        self.snapshots = 0

    def load(self, ids):
        self.snapshots += len(ids)
        return self._store.load(ids)

    def __getattr__(self, name):
        return getattr(self._store, name)


def look(engine, use):
    return engine._parts.read(use)


# events ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-2")
def test_events_are_listed_as_they_stand_through_their_whole_life():
    with virtual() as engine:
        started(engine, listener("paid", "sent"), "order-1")
        for n in range(3):
            sent(engine, "paid", f"p{n}", key=f"order-{n}")
            agree_here(engine)
            engine.advance(1_000)
        assert statuses(engine) == ["pending", "consumed", "pending"]
        left = started(engine, listener("paid", "sent"), "order-2")
        agree_here(engine)
        assert statuses(engine) == ["consumed", "consumed", "pending"]
        engine.cancel(left)
        engine.advance(0)
        agree_here(engine)
        assert statuses(engine) == ["pending", "consumed", "pending"], "its event is free again"
        engine.advance(limits.EVENT_TTL_MS + DAY_MS)
        agree_here(engine)
        assert "expired" in statuses(engine)
        engine.advance(limits.EVENT_REMEMBERED_MS + DAY_MS)
        agree_here(engine)
        assert set(statuses(engine)) <= {"consumed"}, "what an open wait has is kept for it"


def agree_here(engine):
    look(engine, lambda store: agree(store, "default"))


def statuses(engine):
    return [
        each.status for each in look(engine, lambda s: events_service.list_events(s, "default"))
    ]


def test_events_that_make_room_for_others_are_listed_no_longer(monkeypatch):
    monkeypatch.setattr(limits, "EVENTS_KEPT", 3)
    with virtual() as engine:
        for n in range(3):
            started(engine, listener("paid"))
            sent(engine, "paid", f"p{n}")
        first = look(engine, lambda s: events_kept(s, "default"))[-1][0]
        started(engine, listener("paid"))
        sent(engine, "paid", "p3")
        agree_here(engine)
        assert len(statuses(engine)) == 3
        with refused("event.not_found"):
            look(engine, lambda store: events_service.show_event(store, first, None))


@pytest.mark.req("SEQ-WHK-2")
def test_any_story_of_events_is_listed_as_it_is_kept():
    for seed in range(8):
        chance = random.Random(seed)
        with virtual(seed=f"story-{seed}") as engine:
            waits = []
            for n in range(30):
                key = f"k{chance.randrange(4)}"
                match chance.randrange(5):
                    case 0:
                        waits.append(started(engine, listener("a", "b"), key))
                    case 1 if waits:
                        left = waits.pop(chance.randrange(len(waits)))
                        if state(engine, left) == "waiting":
                            engine.cancel(left)
                        engine.advance(0)
                    case 2:
                        engine.advance(chance.randrange(DAY_MS * 4))
                    case _:
                        sent(engine, chance.choice("ab"), f"p{n}", key=key)
                look(engine, lambda store: agree(store, "default"))


def test_a_list_of_events_reads_the_correlators_it_shows_and_no_others():
    with virtual() as engine:
        for n in range(60):
            sent(engine, "paid", f"p{n}", key=f"key-{n}")
        for n in range(60):
            sent(engine, "paid", f"q{n}", key=f"key-{n}", tenant="beta")
            engine.advance(100)

        def listed(store):
            reads = Reads(store)
            found = events_service.list_events(reads, "default", "pending", 5)
            one = events_service.show_event(reads, found[0].id, "default")
            assert one == found[0]
            return len(found), reads.snapshots

        assert look(engine, listed) == (5, 6)
        none = look(engine, lambda s: events_service.list_events(s, "default", "expired", 5))
        assert none == []


# deliveries --------------------------------------------------------------------------------------


@pytest.fixture
def hooked():
    answers = {}

    async def post(url, _headers, _body, _timeout_ms):
        queue = answers.get(url, [])
        return (queue.pop(0) if queue else 200), {}, ""

    hooks = [{"url": URL}, {"url": OTHER, "events": ["instance.failed"]}]
    with virtual(webhooks=hooks, webhook_delivery={"retries": 0}, webhook_post=post) as engine:
        engine.answers = answers
        yield engine


def listed(engine, tenant=None, **wanted):
    found = look(
        engine, lambda s: webhooks_service.deliveries(s, DeliveryFilter(**wanted), 100, tenant)
    )
    return [(each.url, each.event_type, each.delivered, each.error_class) for each in found]


@pytest.mark.req("SEQ-WHK-1")
def test_deliveries_are_found_by_whatever_is_asked_as_they_stand(hooked):
    engine = hooked
    engine.answers[URL] = [404]
    engine.answers[OTHER] = [500]
    engine.start(BAD, tenant="acme")
    engine.advance(0)
    engine.start(FINE, tenant="acme")
    engine.start(FINE, tenant="beta")
    look(engine, lambda store: agree(store, "acme", "beta"))
    engine.advance(1_000)
    look(engine, lambda store: agree(store, "acme", "beta"))
    done, failed = "instance.completed", "instance.failed"
    assert sorted(listed(engine, url=URL)) == [
        (URL, done, True, None),
        (URL, done, True, None),
        (URL, failed, False, "http_4xx"),
    ]
    assert listed(engine, error_class="http_5xx") == [(OTHER, failed, False, "http_5xx")]
    assert listed(engine, event_type=failed, url=OTHER) == [(OTHER, failed, False, "http_5xx")]
    assert len(listed(engine, delivered=True)) == 2
    assert len(listed(engine, delivered=False)) == 2
    assert listed(engine, "beta", delivered=False) == []
    assert len(listed(engine, "beta", delivered=True)) == 1
    assert listed(engine, url="https://hooks.example/none") == []
    assert listed(engine, delivered=True, error_class="http_4xx") == []


def test_a_delivery_that_is_tried_again_is_found_by_its_new_end(hooked):
    engine = hooked
    engine.answers[URL] = [404]
    engine.start(FINE)
    engine.advance(0)
    (parked,) = engine.webhooks.outbox()
    assert listed(engine, error_class="http_4xx") == [
        (URL, "instance.completed", False, "http_4xx")
    ]
    engine.webhooks.redeliver(parked.id)
    engine.advance(0)
    assert listed(engine, error_class="http_4xx") == []
    assert listed(engine, delivered=True) == [(URL, "instance.completed", True, None)]
    look(engine, lambda store: agree(store, "default"))


def test_a_filtered_list_reads_the_deliveries_it_shows_and_no_others(hooked):
    engine = hooked
    engine.answers[URL] = [404, 404]
    for n in range(40):
        engine.start(FINE, tenant="acme" if n < 2 else "beta")
        engine.advance(0)

    def reads(store):
        counted = Reads(store)
        wanted = DeliveryFilter(error_class="http_4xx", url=URL)
        return len(webhooks_service.deliveries(counted, wanted, 10)), counted.snapshots

    assert look(engine, reads) == (2, 2)


# upgrades ----------------------------------------------------------------------------------------


def test_the_events_and_deliveries_of_an_earlier_release_are_listed_after_the_upgrade(tmp_path):
    path = tmp_path / "s.db"

    async def post(_url, _headers, _body, _timeout_ms):
        return 404, {}, ""

    hooks = {"webhooks": [{"url": URL}], "webhook_delivery": {"retries": 0}}
    with virtual(path, webhook_post=post, **hooks) as engine:
        started(engine, listener("paid"), "order-0")
        for n in range(4):
            sent(engine, "paid", f"p{n}", {"text": "x" * 20_000}, key=f"order-{n % 2}")
        before = look(engine, lambda store: (events_kept(store, "default"), len(listed(engine))))
        assert before[1] == 1
    connection = apsw.Connection(str(path))
    connection.execute(
        """DROP TABLE event; DROP TABLE delivery; DROP INDEX instance_own_tenant;
        DROP INDEX work_push; ALTER TABLE work_item DROP COLUMN pushes;
        ALTER TABLE work_item DROP COLUMN push_ms; ALTER TABLE work_item DROP COLUMN ticket;
        PRAGMA user_version = 10"""
    )
    connection.close()
    with virtual(path, webhook_post=post, **hooks) as engine:
        look(engine, lambda store: agree(store, "default"))
        assert look(engine, lambda s: [row.id for row in s.events("default", "", 10)]) == [
            each[0] for each in before[0]
        ]
        assert listed(engine, error_class="http_4xx", url=URL)
