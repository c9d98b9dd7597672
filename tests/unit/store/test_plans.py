"""Query plans: what a turn asks is answered from an index, however many instances wait."""

from __future__ import annotations

from functools import partial

import pytest

from detent.ports.definitions import DefinitionQuery
from detent.ports.due import DueQuery
from detent.ports.listing import ListQuery
from detent.ports.own import DeliveryQuery, DeliveryRow, EventRow, OwnQuery
from detent.ports.records import RecordQuery
from detent.ports.store import Page
from detent.ports.work import Claim, PushClaim
from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_arrival

FACETS = {"url": "u", "event_type": "e", "delivered": False, "error_class": "c"}
A_STRETCH = DueQuery("acme", 1, (5, "id-5"), 5)
READS = {
    "stretches": lambda store: store.stretches(range(4)),
    "stretches of some partitions": lambda store: store.stretches([1, 2]),
    "due": lambda store: store.due(range(4), 10**6, [A_STRETCH]),
    "due of some partitions": lambda store: store.due([1], 10**6, [A_STRETCH]),
    "due later": lambda store: store.due(range(4), 10, [A_STRETCH]),
    "next due": lambda store: store.next_due(range(4)),
    "any due": lambda store: store.any_due(range(4)),
    "the engine's own": lambda store: store.instances(Page(tenant="acme", namespace="detent")),
    "own of a kind": lambda store: store.own_instances(OwnQuery("hash", states=("failed",))),
    "own of a tenant": lambda store: store.own_instances(OwnQuery("hash", "acme")),
    "events": lambda store: store.events("acme", "", 5),
    "events of a status": lambda store: store.events("acme", "pending", 5),
    "event": lambda store: store.event("event-1"),
    "deliveries": lambda store: store.deliveries(DeliveryQuery(limit=5)),
    "deliveries of a tenant": lambda store: store.deliveries(DeliveryQuery("acme", limit=5)),
    **{
        f"deliveries by {name}{of}": partial(
            lambda query, store: store.deliveries(query), DeliveryQuery(tenant, **{name: value})
        )
        for name, value in FACETS.items()
        for of, tenant in (("", ""), (" of a tenant", "acme"))
    },
    "next due of some partitions": lambda store: store.next_due([1, 2]),
    "busy": lambda store: store.busy([1, 2], 3, 5),
    "arrivals": lambda store: store.arrivals(range(4), 5),
    "arrivals of some partitions": lambda store: store.arrivals([2], 5),
    "load": lambda store: store.load(["id-1", "id-2"]),
    "load by number": lambda store: store.load_numbers([1, 2]),
    "flights": lambda store: store.flights(["effect-1"]),
    "verdicts": lambda store: store.verdicts(["arrival-1"]),
    "forget": lambda store: store.forget(5, 5),
    "instance": lambda store: store.instance("id-1"),
    "list of a tenant": lambda store: store.instances(Page(tenant="acme", limit=5)),
    "list of states": lambda store: store.instances(Page(tenant="acme", states=("failed",))),
    "list of children": lambda store: store.instances(Page(parent="father")),
    "journal": lambda store: store.journal(1, 5, 5),
    "journal scan": lambda store: store.journal_scan(5, 5),
    "turns": lambda store: store.turns(1, 5, 5),
    "definition by id": lambda store: store.definition_by_id("id-1"),
    "definitions of a name": lambda store: store.find_definitions(
        DefinitionQuery(tenant="acme", namespace="sales", name="greet")
    ),
    "definitions of a hash": lambda store: store.find_definitions(
        DefinitionQuery(tenant="acme", hash="hash")
    ),
    "recent of stored definitions": lambda store: store.recent_instances(
        ListQuery(tenant="acme", states=("completed",), stored=True)
    ),
    "definitions of a tenant": lambda store: store.find_definitions(DefinitionQuery(tenant="acme")),
    "record": lambda store: store.record("session", "s-1"),
    "record by key": lambda store: store.record_by_key("session", "acme", "k-1"),
    "records": lambda store: store.records(RecordQuery("session", after=5)),
    "records of a tenant": lambda store: store.records(
        RecordQuery("session", tenant="acme", newest_first=True, after=5)
    ),
    "records of an owner": lambda store: store.records(
        RecordQuery("session", owner="o-1", newest_first=True)
    ),
    "count records": lambda store: store.count_records(RecordQuery("session", tenant="acme")),
    "prune records": lambda store: store.prune_records("session", "o-1", 3, 5, 10),
    "poll": lambda store: store.work.claim(a_claim(tenant="acme")),
    "poll of all tenants": lambda store: store.work.claim(a_claim()),
    "poll of a queue": lambda store: store.work.claim(a_claim(queue="q", tenant="acme")),
    "poll that passes over some": lambda store: store.work.claim(a_claim(barred=("acme", "b"))),
    "poll of a queue that passes over some": lambda store: store.work.claim(
        a_claim(queue="q", barred=("acme", "b"))
    ),
    "poll of a queue of all tenants": lambda store: store.work.claim(a_claim(queue="q")),
    "pushes": lambda store: store.work.claim_pushes(
        PushClaim("acme", "q", "p", 0, 1_000, 3, ("h",))
    ),
    "overdue work": lambda store: store.work.overdue(5, 5),
    "next lease": lambda store: store.work.next_lease(),
    "work item": lambda store: store.work.item("work-1"),
    "work events": lambda store: store.work.events("work-1", 5),
    "work logs": lambda store: store.work.logs("id-1", 5),
}


def a_claim(**more):
    return Claim(handler="charge", worker="w", now_ms=0, stale_ms=1_000, **more)


@pytest.fixture
def store():
    store = open_store(":memory:", create=NEW)
    world = World(store)
    world.commit(*[a_change(f"id-{i}", due=i, busy=True) for i in range(20)])
    store.enqueue([an_arrival("arrival-1")], 1)
    yield store
    store.close()


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_no_read_of_a_turn_goes_through_a_whole_table(store, read):
    asked = []

    def trace(_cursor, sql, values):
        if sql.lstrip().upper().startswith(("SELECT", "DELETE", "WITH")):
            asked.append((sql, values))
        return True

    store._connection.exec_trace = trace
    read(store)
    store._connection.exec_trace = None
    assert asked
    for sql, values in asked:
        plan = [row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        whole = [
            step
            for step in plan
            if step.startswith("SCAN")
            and not step.startswith(
                ("SCAN (subquery", "SCAN arrival USING", "SCAN first", "SCAN has", "SCAN json_each")
            )
            and "INDEX instance_due" not in step
        ]
        assert whole == [], sql
        assert not [step for step in plan if step == "USE TEMP B-TREE FOR ORDER BY"], sql


def work_of(store, read):
    """How many steps of SQLite's machine a read takes."""
    steps = [0]

    def count():
        steps[0] += 1
        return False

    store._connection.set_progress_handler(count, 1)
    read(store)
    store._connection.set_progress_handler(None)
    return steps[0]


@pytest.mark.parametrize(
    "name", ["stretches", "due", "due later", "next due", "busy", "load", "arrivals"]
)
def test_the_work_of_a_read_does_not_grow_with_those_that_wait(name):
    work = []
    for waiting in (100, 3_000):
        store = open_store(":memory:", create=NEW)
        world = World(store)
        changes = [a_change(f"id-{i}", p=i % 4, due=i, busy=True) for i in range(waiting)]
        world.commit(*changes)
        store.enqueue([an_arrival(f"arrival-{i}", f"id-{i}", i % 4) for i in range(waiting)], 1)
        work.append(work_of(store, READS[name]))
        store.close()
    assert work[1] < work[0] * 1.2


def with_others(count):
    """A store with a few events and deliveries of acme's, and so many of others and otherwise."""
    store = open_store(":memory:", create=NEW)
    world = World(store)
    names = [f"id-{i}" for i in range(count + 5)]
    births = [a_change(id, birth={"tenant": "acme", "namespace": "detent"}) for id in names]
    deliveries = [
        DeliveryRow(id, "acme" if i % 2 else "beta", "other", "other", True, "other")
        for i, id in enumerate(names[:count])
    ]
    deliveries += [DeliveryRow(id, "acme", "u", "e", False, "c") for id in names[count:]]
    events = [EventRow(f"e-{i}", "beta", "pending", i, "id-0") for i in range(count)]
    events += [EventRow(f"f-{i}", "acme", "consumed", i, "id-0") for i in range(count)]
    events += [EventRow(f"event-{i}", "acme", "pending", i, "id-1") for i in range(5)]
    world.commit(*births, events=events, deliveries=deliveries)
    return store


@pytest.mark.parametrize(
    "name",
    [
        "events",
        "events of a status",
        "event",
        "deliveries",
        "deliveries of a tenant",
        *[f"deliveries by {name}{of}" for name in FACETS for of in ("", " of a tenant")],
        "own of a tenant",
    ],
)
def test_the_work_of_a_list_does_not_grow_with_what_it_does_not_show(name):
    work = []
    for others in (50, 2_000):
        store = with_others(others)
        work.append(work_of(store, READS[name]))
        store.close()
    assert work[1] < work[0] * 1.2
