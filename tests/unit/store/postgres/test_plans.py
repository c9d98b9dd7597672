"""Query plans: what a turn asks and writes is answered from an index, however much there is.

Statements whose plan the server keeps are planned without knowing their values; the others are
planned with them.
"""

from __future__ import annotations

import re

import psycopg
import pytest

from detent.ports.feed import FeedQuery
from detent.ports.listing import ListQuery
from detent.ports.own import DeliveryRow, EventRow
from detent.ports.store import Flight, GateRow
from detent.ports.work import Claim, GivenBack, PushClaim
from detent.store.postgres import open_store
from detent.store.postgres.values import Bools, Bytes, Ints, Texts
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_arrival, an_item
from tests.postgres_fixture import fresh_url
from tests.unit.store.test_plans import A_STRETCH, READS

INSTANCES = 6_000
TYPES = {
    Bools: "boolean[]",
    Bytes: "bytea[]",
    Ints: "bigint[]",
    Texts: "text[]",
    bool: "boolean",
    bytes: "bytea",
    int: "bigint",
    str: "text",
}
A_CLAIM = Claim("h3", "w1", 10**6, 1_000)
TOLD = an_arrival("told", "id-1")
A_WORD = GivenBack("work-1", "push:q", 7, 10, 20, "it answered 503", TOLD)
GONE = EventRow("event-2", "t-2", "", 0, "id-1")
MORE = {
    "feed": lambda store: store.feed(FeedQuery("acme", {}, 5)),
    "feed ends": lambda store: store.feed_ends(),
    "newest of a tenant": lambda store: store.recent_instances(ListQuery(tenant="acme")),
    "newest in a state": lambda store: store.recent_instances(
        ListQuery(tenant="acme", states=("failed", "running"))
    ),
    "newest of a definition": lambda store: store.recent_instances(
        ListQuery(tenant="acme", definitions=("hash-1",), before=500)
    ),
    "newest with a label": lambda store: store.recent_instances(
        ListQuery(tenant="acme", labels=(("team", "t7"),))
    ),
    "breakers": lambda store: store.breaker_rows("acme", 5),
    "gate": lambda store: store.gate_rows("acme"),
    "blobs": lambda store: store.blobs("id-1", ["a", "b"]),
    "doubts of an instance": lambda store: store.doubts("", "id-1", 5),
    "many stretches": lambda store: store.due(range(4), 10, [A_STRETCH] * 20),
    "waiting start": lambda store: store.waiting_start("id-1"),
    "poll": lambda store: store.work.claim(A_CLAIM),
    "poll of a tenant": lambda store: store.work.claim(A_CLAIM._replace(tenant="acme")),
    "poll of all tenants but some": lambda store: store.work.claim(
        A_CLAIM._replace(queue="q", barred=("t-1", "t-2"))
    ),
    "pushes": lambda store: store.work.claim_pushes(
        PushClaim("acme", "q", "push:q", 10**6, 1_000, barred=("h1",))
    ),
    "give back": lambda store: store.work.give_back(A_WORD),
    "reclaim": lambda store: store.work.reclaim([store.work.item("work-1")], 0, {"work-1": TOLD}),
}


def a_delivery(n):
    return DeliveryRow(f"id-{n}", f"t-{n % 7}", f"u{n % 9}", f"e{n % 9}", n % 2 == 0, f"c{n % 9}")


@pytest.fixture(scope="module")
def filled(postgres_server):
    """A store with thousands of everything, of which the server has its figures."""
    store = open_store(fresh_url(postgres_server), create=NEW)
    world = World(store)
    for first in range(0, INSTANCES, 1_000):
        numbers = range(first, first + 1_000)
        changes = [
            a_change(
                f"id-{n}",
                p=n % 4,
                due=n,
                busy=n % 50 == 0,
                moved="acme",
                state=("running", "completed", "failed")[n % 3],
                birth={"labels": (("team", f"t{n % 100}"),), "tenant": f"t-{n % 7}"},
            )
            for n in numbers
        ]
        world.commit(
            *changes,
            marks=[Flight(f"effect-{n}", "d", 1, n) for n in numbers],
            blobs=[(f"id-{n}", "a", b"x") for n in numbers],
            work=[an_item(f"work-{n}", handler=f"h{n % 9}", queue="q" * (n % 2)) for n in numbers],
            events=[EventRow(f"event-{n}", f"t-{n % 7}", "pending", n, "id-1") for n in numbers],
            deliveries=[a_delivery(n) for n in numbers],
            gate_rows=[GateRow(f"t-{n % 7}", "use", f"k{n}", 0, b"x") for n in numbers],
            taken=[(f"taken-{n}", None) for n in numbers],
        )
        store.enqueue([an_arrival(f"arrival-{n}", f"id-{n}", n % 4) for n in numbers], 1)
    store._session.rows("SELECT 1")
    store._session.connection().execute("VACUUM ANALYZE")
    yield store
    store.close()


def asked_by(store, act):
    """The statements of an act, with their values and whether their plans are kept."""
    asked = []

    class Traced(psycopg.RawCursor):
        def execute(self, query, params=None, *, prepare=None, **more):
            if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)", query):
                asked.append((query, list(params or ()), prepare))
            return super().execute(query, params, prepare=prepare, **more)

    connection = store._session.connection()
    connection.cursor_factory = Traced
    try:
        act(store)
    finally:
        connection.cursor_factory = psycopg.RawCursor
    return asked


def plan_of(store, query, values, *, kept):
    connection = store._session.connection()
    if not kept:
        with connection.cursor() as cursor:
            return [row[0] for row in cursor.execute(f"EXPLAIN {query}", values)]

    def typed(found):
        value = values[int(found[1]) - 1]
        return found[0] if value is None else f"{found[0]}::{TYPES[type(value)]}"

    generic = re.sub(r"\$(\d+)(?!\d|::)", typed, query)
    with psycopg.ClientCursor(connection) as cursor:
        return [row[0] for row in cursor.execute(f"EXPLAIN (GENERIC_PLAN) {generic}")]


def whole_tables(plan):
    """Scans of whole tables, but for those that hold a row per partition or tenant."""
    scans = [step for step in plan if "Seq Scan on" in step]
    return [
        step for step in scans if not re.search(r" on (partition|gate|store|journal_pos) ", step)
    ]


@pytest.mark.parametrize("read", [*READS.values(), *MORE.values()], ids=[*READS, *MORE])
def test_no_read_of_a_turn_goes_through_a_whole_table(filled, read):
    asked = asked_by(filled, read)
    assert asked
    for query, values, kept in asked:
        plan = plan_of(filled, query, values, kept=kept)
        assert whole_tables(plan) == [], "\n".join([query, *plan])


def test_no_statement_of_a_commit_goes_through_a_whole_table(filled):
    world = World(filled, now_ms=10**9, lease_until_ms=2 * 10**9)
    changes = [world.next_change(f"id-{n}") for n in range(40)]
    commit = world.turn(
        [*changes, a_change("new")],
        arrivals=[an_arrival("note-1", "id-7")],
        taken=[("arrival-3", None), ("other", None)],
        settled=["effect-1", "effect-2"],
        marks=[Flight("effect-1", "d", 1, 1)],
        tombstones=["none"],
        dues=[(world.store.instance("id-99").n, 5)],
        work=[an_item("work-new", previous="work-3"), an_item("work-5", routed="a rule")],
        events=[EventRow("event-1", "t-1", "consumed", 1, "id-1"), GONE],
        deliveries=[a_delivery(1)],
        called_off=["work-7"],
        gate_rows=[GateRow("t-1", "use", "k1", 0, None), GateRow("t-1", "use", "k2", 0, b"")],
    )
    asked = asked_by(filled, lambda store: store.commit(commit))
    assert len(asked) > 14
    for query, values, kept in asked:
        assert kept
        if "pg_notify" not in query:
            plan = plan_of(filled, query, values, kept=True)
            assert whole_tables(plan) == [], "\n".join([query, *plan])
