"""Servers that stop, restart, follow each other and are promoted, under stores that are open."""

from __future__ import annotations

import signal

import pytest

from detent.model.errors import StoreError
from detent.store.postgres import open_store
from detent.testing.postgres import PostgresServer
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change, an_arrival
from tests.postgres_fixture import fresh_url


@pytest.fixture
def server():
    with PostgresServer(durable=True) as server:
        yield server


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=str)
def test_a_store_goes_on_when_its_server_was_restarted(server, number):
    store = open_store(fresh_url(server), create=NEW)
    world = World(store)
    world.commit(a_change("one"))
    server.restart(number)
    assert store.instance("one") is not None
    world.commit(world.next_change("one"))
    assert store.load(["one"])["one"].version == 2
    server.restart(number)
    world.commit(world.next_change("one"))  # the very first thing after a restart may be a write
    assert store.enqueue([an_arrival("arrival-1")], 1) == [True]
    store.close()


def test_while_the_server_is_away_everything_is_refused_and_nothing_lost(server):
    store = open_store(fresh_url(server), create=NEW)
    world = World(store)
    world.commit(a_change("one"))
    commit = world.turn([world.next_change("one")])
    server.stop()
    for call in (
        lambda: store.commit(commit),
        lambda: store.instance("one"),
        lambda: store.enqueue([an_arrival("arrival-1")], 1),
    ):
        with pytest.raises(StoreError) as refusal:
            call()
        assert refusal.value.code in ("store.unreachable", "store.unavailable")
    server.start()
    store.commit(commit)
    assert store.load(["one"])["one"].version == 2
    assert store.enqueue([an_arrival("arrival-1")], 1) == [True]
    store.close()


def test_a_replica_takes_readers_and_no_writers(server):
    url = fresh_url(server)
    store = open_store(url, create=NEW)
    World(store).commit(a_change("one"))
    store.close()
    with server.replica() as replica:
        there = url.replace(str(server.directory), str(replica.directory))
        there = there.replace(str(server.port), str(replica.port))
        with pytest.raises(StoreError) as refusal:
            open_store(there, create=None)
        assert refusal.value.code == "store.readonly"
        reader = open_store(there, create=None, read_only=True)
        assert reader.instance("one") is not None
        reader.close()


def test_a_store_follows_when_another_server_is_promoted(server):
    """Both servers are named; the old one is gone, the new one is the primary."""
    url = fresh_url(server)
    open_store(url, create=NEW).close()
    with server.replica() as replica:
        ports = f"{server.port},{replica.port}"
        both = (
            f"postgresql://detent@127.0.0.1,127.0.0.1/postgres?port={ports}"
            f"&target_session_attrs=read-write&{url[url.index('schema=') :]}"
        )
        store = open_store(both, create=None)
        world = World(store)
        world.commit(a_change("one"))
        caught_up(store, replica, url)
        server.stop()
        with pytest.raises(StoreError) as refusal:
            world.commit(a_change("two"))
        assert refusal.value.code in ("store.unreachable", "store.readonly", "store.unavailable")
        replica.promote()
        world.commit(a_change("two"))
        assert [store.load([id])[id].version for id in ("one", "two")] == [1, 1]
        store.close()


def test_a_server_that_takes_no_more_writes_says_so_and_is_tried_again(server):
    store = open_store(fresh_url(server), create=NEW)
    world = World(store)
    session = store._session
    session.rows("SELECT set_config('default_transaction_read_only', 'on', false)")
    with pytest.raises(StoreError) as refusal:
        world.commit(a_change("one"))
    assert refusal.value.code == "store.readonly"
    world.commit(a_change("one"))  # on a connection made anew, which may lead to another server
    store.close()


def caught_up(store, replica, url):
    """Wait until the replica has what the primary has committed."""
    there = url[: url.index("host=")] + f"host={replica.directory}&port={replica.port}"
    reader = open_store(f"{there}&{url[url.index('schema=') :]}", create=None, read_only=True)
    while reader.instance("one") is None:
        pass
    reader.close()
