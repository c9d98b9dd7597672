"""Events and deliveries beside their instances: written with a turn, listed the newest first."""

from __future__ import annotations

import pytest

from detent.model.errors import StoreError
from detent.ports.own import DeliveryQuery, DeliveryRow, EventRow
from tests.conformance.world import a_birth, a_change, an_arrival, everything


def an_event(id, status="pending", at_ms=10, tenant="acme", correlator="one"):
    return EventRow(id, tenant, status, at_ms, correlator)


def a_delivery(instance, tenant="acme", **more):
    filled = {"url": "u", "event_type": "e", "delivered": False, "error_class": ""}
    return DeliveryRow(instance, tenant, **{**filled, **more})


def events(store, tenant="acme", status="", limit=100):
    return [row.id for row in store.events(tenant, status, limit)]


def found(store, **query):
    return [row.id for row in store.deliveries(DeliveryQuery(**query))]


def test_events_are_listed_newest_first_and_those_of_an_instant_by_their_ids(world, store):
    world.commit(
        a_change("one"),
        events=[
            an_event("b", at_ms=5),
            an_event("a", at_ms=5),
            an_event("c", at_ms=7, status="consumed"),
            an_event("d", at_ms=9, tenant="beta"),
        ],
    )
    assert events(store) == ["c", "a", "b"]
    assert events(store, limit=2) == ["c", "a"]
    assert events(store, status="pending") == ["a", "b"]
    assert events(store, status="expired") == []
    assert events(store, "beta") == ["d"]
    assert store.event("c") == EventRow("c", "acme", "consumed", 7, "one")
    assert store.event("none") is None


def test_an_event_stands_as_it_was_last_told_until_it_is_kept_no_longer(world, store):
    world.commit(a_change("one"), events=[an_event("a")])
    world.commit(world.next_change("one"), events=[an_event("a", "consumed")])
    assert (events(store, status="pending"), events(store, status="consumed")) == ([], ["a"])
    world.commit(world.next_change("one"), events=[an_event("a", "", correlator="another")])
    assert events(store) == ["a"], "another correlator has no say in it"
    world.commit(world.next_change("one"), events=[an_event("a", "")])
    assert (events(store), store.event("a")) == ([], None)


def test_deliveries_are_found_by_each_thing_and_all_of_them_together(world, store):
    names = ["one", "two", "three", "four"]
    world.commit(
        *[a_change(name) for name in names],
        deliveries=[
            a_delivery("one", delivered=True),
            a_delivery("two", url="v", error_class="c"),
            a_delivery("three", tenant="beta", event_type="f"),
            a_delivery("four", error_class="c"),
        ],
    )
    order = [row.id for row in store.deliveries(DeliveryQuery())]
    assert sorted(order) == sorted(names)
    numbers = [store.instance(id).n for id in order]
    assert numbers == sorted(numbers, reverse=True)
    assert found(store, limit=2) == order[:2]
    assert set(found(store, error_class="c")) == {"two", "four"}
    assert found(store, url="v") == ["two"]
    assert found(store, url="u", error_class="c") == ["four"]
    assert found(store, delivered=True) == ["one"]
    assert found(store, tenant="beta") == ["three"]
    assert found(store, tenant="beta", event_type="e") == []
    assert found(store, tenant="acme", event_type="e", delivered=False, url="u") == ["four"]
    (row,) = store.deliveries(DeliveryQuery(url="v"))
    assert row == store.instance("two")


def test_a_delivery_is_listed_with_its_birth_and_found_by_how_it_ended(world, store):
    birth = an_arrival("start:one", "one", birth=a_birth("one"))
    world.commit(arrivals=[birth], deliveries=[a_delivery("one")])
    assert found(store, delivered=False) == ["one"]
    world.commit(deliveries=[a_delivery("one", delivered=True, error_class="late", url="ignored")])
    assert found(store, delivered=False) == []
    assert found(store, delivered=True, error_class="late", url="u") == ["one"]


def test_what_a_turn_that_failed_would_have_listed_is_not(world, store):
    world.commit(a_change("one"), events=[an_event("a")], deliveries=[a_delivery("one")])
    before = everything(store)
    late = world.turn(
        [a_change("one", n=world.numbers["one"], version=7)],
        events=[an_event("a", "consumed"), an_event("b")],
        deliveries=[a_delivery("one", delivered=True)],
    )
    with pytest.raises(StoreError):
        store.commit(late)
    assert everything(store) == before
