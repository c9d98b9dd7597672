"""A session: transactions that meet are tried again, and each travels in one round trip."""

from __future__ import annotations

import threading

import psycopg
import pytest

from detent.model.errors import StoreError
from detent.ports.store import Flight
from detent.store.postgres import open_store
from detent.store.postgres.failures import Failed
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_birth, a_change, an_arrival, an_item


@pytest.fixture
def stores(postgres_url):
    opened = [open_store(postgres_url, create=NEW) for _ in range(2)]
    yield opened
    for store in opened:
        store.close()


def test_two_that_wait_for_each_other_both_get_through_in_the_end(stores):
    """Each writes what the other has written, in the other order: one must give way."""
    one, two = (store._session for store in stores)
    one.change("CREATE TABLE pair(n int PRIMARY KEY, by text)")
    one.change("INSERT INTO pair VALUES (1, ''), (2, '')")
    together = threading.Barrier(2)
    failures = []

    def write(session, name, first, second):
        change = "UPDATE pair SET by = by || $1 WHERE n = $2"
        try:
            together.wait()
            for _ in range(20):
                session.transact([(change, (name, first)), (change, (name, second))])
        except Exception as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    one.rows("SELECT set_config('deadlock_timeout', '10ms', false)")
    two.rows("SELECT set_config('deadlock_timeout', '10ms', false)")
    threads = [
        threading.Thread(target=write, args=(one, "a", 1, 2)),
        threading.Thread(target=write, args=(two, "b", 2, 1)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = one.rows("SELECT by FROM pair ORDER BY n")
    assert [sorted(row[0]) for row in rows] == [["a"] * 20 + ["b"] * 20] * 2


def test_a_failed_transaction_names_its_statement_and_leaves_nothing(stores):
    session = stores[0]._session
    put = "INSERT INTO setting(name, value) VALUES ($1, 'x')"
    with pytest.raises(Failed) as failure:
        session.transact([(put, ["a"]), (put, ["b"]), (put, ["a"]), (put, ["c"])])
    assert failure.value.at == 2
    assert session.rows("SELECT name FROM setting") == []
    session.transact([(put, ["a"])])


def test_a_transaction_that_is_interrupted_in_the_middle_leaves_the_session_usable(stores):
    session = stores[0]._session

    def broken_off(*statements):
        with session.transaction():
            for statement in statements:
                session.change(statement)
            raise RuntimeError

    put = "INSERT INTO setting(name, value) VALUES ('a', 'x')"
    for statements, error in ([put], RuntimeError), ([put, put], psycopg.Error):
        with pytest.raises(error):
            broken_off(*statements)
        assert session.rows("SELECT name FROM setting") == []


def test_a_closed_store_says_so(stores):
    store = stores[0]
    store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        store.instance("x")


class Wire:
    """Counts how often a session waits for its server."""

    def __init__(self, monkeypatch):
        self.waits = 0
        synced = psycopg.Pipeline.sync

        def sync(pipeline):
            self.waits += 1
            return synced(pipeline)

        monkeypatch.setattr(psycopg.Pipeline, "sync", sync)


def test_a_whole_turn_is_one_round_trip(stores, monkeypatch):
    world = World(stores[0])
    world.commit(a_change("one"))
    turn = world.turn(
        [world.next_change("one")],
        arrivals=[an_arrival("a-1", "child", 2, b"x", a_birth("child", labels=(("k", "v"),)))],
        taken=[("t-1", None)],
        marks=[Flight("effect-1", "d", 1, 1)],
        tombstones=["effect-2"],
        work=[an_item("work-1")],
    )
    wire, asked = Wire(monkeypatch), []

    class Counted(psycopg.RawCursor):
        def execute(self, query, params=None, **more):
            asked.append(self._conn.pgconn.pipeline_status)
            return super().execute(query, params, **more)

    stores[0]._session.connection().cursor_factory = Counted
    assert stores[0].commit(turn).marked == ["effect-1"]
    assert wire.waits == 1
    assert len(asked) > 10
    assert all(asked), "a statement was sent and waited for by itself"


def test_rows_of_many_megabytes_are_sent_while_the_server_answers(stores):
    """More than the socket's buffers hold, in a pipeline: neither side may wait for the other."""
    world = World(stores[0])
    large = [a_change(f"id-{n}", snapshot=b"s" * 400_000, body=b"j" * 400_000) for n in range(12)]
    marks = [Flight(f"effect-{n}", "d", 1, 1) for n in range(5_000)]
    assert len(world.commit(*large, marks=marks).marked) == 5_000
    assert len(stores[0].load(["id-11"])["id-11"].body) == 400_000
