"""A commit whose answer was lost: it happened or it did not, and the store finds out which."""

from __future__ import annotations

import signal
import threading

import pytest

from detent.model.errors import StoreError
from detent.ports.records import Record
from detent.ports.store import Flight
from detent.store import postgres
from detent.store.postgres.session import Session
from detent.testing.postgres import PostgresServer
from tests.cable import Cable
from tests.conformance.adapters import NEW
from tests.conformance.test_work import a_claim, a_report
from tests.conformance.world import (
    LEASE_MS,
    World,
    a_birth,
    a_change,
    an_arrival,
    an_item,
    an_owner,
    everything,
)
from tests.postgres_fixture import fresh_url

MARK = Flight("effect-1", "d", 7, 1)


@pytest.fixture
def url(postgres_url):
    return postgres_url


@pytest.fixture
def cable(postgres_server):
    cable = Cable(postgres_server.directory, postgres_server.port)
    yield cable
    cable.close()


@pytest.fixture
def through(cable, url):
    """A store whose connections go through the cable."""
    postgres.open_store(url, create=NEW).close()
    store = postgres.open_store(cable.url(url), create=None)
    yield store
    store.close()


@pytest.fixture
def beside(url):
    """The same store through a connection of its own."""
    opened = []

    def look(read):
        if not opened:
            opened.append(postgres.open_store(url, create=None))
        return read(opened[0])

    yield look
    for store in opened:
        store.close()


def a_turn(world):
    child = an_arrival("arrival-1", "child", 3, b"start", a_birth("child"))
    known = an_arrival("arrival-2", "known", 3, b"start", a_birth("known"))
    return world.turn(
        [a_change("one", p=1), a_change("two", p=2)], arrivals=[child, known], marks=[MARK]
    )


def test_a_commit_whose_answer_was_lost_is_answered_all_the_same(through, cable, beside):
    world = World(through)
    there = an_arrival("arrival-9", "known", 3, b"start", a_birth("known"))._replace(salt=b"s" * 16)
    through.enqueue([there], 1)
    cable.answers = False
    committed = through.commit(a_turn(world))
    assert cable.cuts == 1
    cable.answers = True
    numbers = {id: through.instance(id).n for id in ("one", "two", "child")}
    assert committed.numbers == numbers
    assert committed.born == ["child"]
    assert committed.marked == ["effect-1"]
    assert beside(everything) == everything(through)


def test_the_turn_after_a_lost_answer_is_committed_as_usual(through, cable):
    world = World(through)
    cable.answers = False
    world.commit(a_change("one"))
    cable.answers = True
    world.commit(world.next_change("one"))
    world.commit(world.next_change("one"))
    assert through.load(["one"])["one"].version == 3


def test_a_commit_that_never_reached_the_server_is_said_not_to_be_made(through, cable, beside):
    world = World(through)
    before = beside(everything)
    cable.limit = 300
    with pytest.raises(StoreError, match=r"store\.unavailable"):
        through.commit(a_turn(world))
    cable.limit = None
    assert beside(everything) == before == everything(through)
    world.commit(a_change("one"))


@pytest.mark.req("CORE-SCH-5")
def test_statements_that_arrive_late_are_fenced(through, cable, beside):
    """The client gives up and looks: nothing there. Only then does the server get to read them."""
    world = World(through)
    cable.held = True
    with pytest.raises(StoreError, match="was not made"):
        through.commit(a_turn(world))
    before = beside(everything)
    cable.held = False
    cable.release()
    assert beside(everything) == before
    assert beside(lambda store: store.instance("one")) is None
    world.commit(a_change("one", body=b"decided anew"))
    assert [row.body for row in beside(lambda store: store.journal_scan(0, 9))] == [b"decided anew"]


def test_had_the_fence_not_been_raised_late_statements_would_have_been_taken(
    through, cable, beside, monkeypatch
):
    """What the test above is about: it would find nothing if they failed for another reason."""
    world = World(through)
    monkeypatch.setattr(Session, "suspect", lambda _session, _fences: None)
    cable.held = True
    with pytest.raises(StoreError, match="was not made"):
        through.commit(a_turn(world))
    cable.held = False
    cable.release()
    assert beside(lambda store: store.instance("one")) is not None


def test_a_look_waits_for_a_transaction_that_is_still_being_committed(through, cable, url):
    """Another one holds the rows: whoever lost its answer must not be told too early."""
    world = World(through)
    other = postgres.open_store(url, create=None)
    entered, let_go = threading.Event(), threading.Event()

    def hold():
        entered.set()
        let_go.wait(10)

    other.before_commit(hold)
    commit = world.turn([a_change("one")])
    committing = threading.Thread(target=other.commit, args=[commit])
    committing.start()
    entered.wait(10)
    through._session.suspect([(0, commit.partitions[0].fence_epoch)])
    through._session._connection.close()
    found = []
    looking = threading.Thread(target=lambda: found.append(through.partitions()[0].turn))
    looking.start()
    looking.join(0.2)
    assert found == []
    let_go.set()
    looking.join()
    committing.join()
    assert found == [1]
    other.close()


def test_a_commit_in_doubt_is_found_out_when_the_server_is_back():
    with PostgresServer(durable=True) as server:
        url = fresh_url(server)
        postgres.open_store(url, create=NEW).close()
        cable = Cable(server.directory, server.port)
        store = postgres.open_store(cable.url(url), create=None)
        world = World(store)
        commit = a_turn(world)
        cable.answers = False
        cable.on_cut = lambda: server.stop(signal.SIGQUIT)
        with pytest.raises(StoreError) as refusal:
            store.commit(commit)
        assert refusal.value.code == "store.unreachable"
        server.start()
        cable.answers = True
        heads = {row.p: (row.turn, row.root) for row in store.partitions()}
        assert [heads[turn.p] for turn in commit.partitions] == [
            (turn.turn + 1, turn.root) for turn in commit.partitions
        ]
        assert store.instance("one") is not None
        store.close()
        cable.close()


def test_a_turn_of_a_writer_that_was_overtaken_meanwhile_is_still_known_to_be_made(
    through, cable, beside
):
    world = World(through)
    commit = a_turn(world)

    def take_over():
        def taken(store):
            owner = an_owner("owner-b")
            return store.acquire(owner, range(4), LEASE_MS + 10_000, 2 * LEASE_MS + 10_000)

        beside(taken)

    cable.answers = False
    cable.on_cut = take_over
    assert through.commit(commit).marked == ["effect-1"]
    cable.answers = True
    with pytest.raises(StoreError, match="taken over"):
        through.commit(world.turn([a_change("three", p=1)]))


def answer_again(cable):
    """Lose one answer, and none after it."""

    def act():
        cable.answers = True

    cable.answers = False
    cable.on_cut = act


def test_arrivals_whose_answer_was_lost_are_left_again_and_are_there_once(through, cable):
    World(through)
    batch = [an_arrival("arrival-1", "child", 2, b"x", a_birth("child"))]
    answer_again(cable)
    assert through.enqueue(batch, 1) == [False]  # it was there already: we had left it
    assert cable.cuts == 1
    assert [row.id for row in through.arrivals(range(4), 10)] == ["arrival-1"]


def test_a_write_that_is_not_known_by_an_id_says_that_it_may_have_been_done(through, cable):
    World(through)
    cable.answers = False
    through._session.before_commit(lambda: None)  # so that there is a COMMIT to lose the answer of
    with pytest.raises(StoreError) as refusal:
        through.insert_record(Record("note", "n-1", "acme", b""))
    cable.answers = True
    assert refusal.value.code == "store.unavailable"
    assert "may have been done" in refusal.value.message
    assert through.record("note", "n-1") is not None


def test_a_report_whose_answer_was_lost_is_known_to_be_taken(through, cable):
    World(through).commit(work=[an_item("item")])
    through.work.claim(a_claim())
    answer_again(cable)
    assert through.work.settle(a_report("item")) == "settled"
    assert cable.cuts == 1
    assert through.work.settle(a_report("item")) == "lost"
    assert [row.id for row in through.arrivals(range(4), 10)] == ["report-of-item-1"]
