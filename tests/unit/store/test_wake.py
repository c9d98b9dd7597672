"""Wake-ups: one datagram to each owner of the partitions that were sent to."""

from __future__ import annotations

import socket

import pytest

from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import World, an_arrival, an_owner


@pytest.fixture
def ear():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(5)
        yield ear


@pytest.fixture
def stores(tmp_path):
    owner, sender = (open_store(tmp_path / "store.db", create=NEW) for _ in range(2))
    yield owner, sender
    owner.close()
    sender.close()


def test_an_enqueue_wakes_the_owner_after_it_is_durable(stores, ear):
    owner, sender = stores
    World(owner, an_owner(wake=f"127.0.0.1:{ear.getsockname()[1]}"))
    sender.enqueue([an_arrival("arrival-1", p=1), an_arrival("arrival-2", p=2)], 1)
    assert ear.recv(100)
    assert len(owner.arrivals(range(4), 10)) == 2
    ear.setblocking(False)
    with pytest.raises(BlockingIOError):
        ear.recv(100)


def test_an_owner_of_other_partitions_is_not_woken(stores, ear):
    owner, sender = stores
    owner.acquire(an_owner(wake=f"127.0.0.1:{ear.getsockname()[1]}"), [0], 0, 100)
    sender.enqueue([an_arrival("arrival-1", p=1)], 1)
    ear.setblocking(False)
    with pytest.raises(BlockingIOError):
        ear.recv(100)
    sender.enqueue([an_arrival("arrival-2", p=0)], 1)
    ear.settimeout(5)
    assert ear.recv(100)


@pytest.mark.parametrize(
    "address", ["", "nowhere", "127.0.0.1:0", "127.0.0.1:99999", "host.invalid.:9", "[::1]:9"]
)
def test_an_address_that_does_not_work_costs_nothing(stores, address):
    owner, sender = stores
    World(owner, an_owner(wake=address))
    assert sender.enqueue([an_arrival("arrival-1")], 1) == [True]
