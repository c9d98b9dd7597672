"""Arrivals: left by anybody, taken in order, known by their id for as long as they are kept."""

from __future__ import annotations

import threading

import pytest

from detent.model.decision import Verdict
from tests.conformance.world import TICK, World, a_birth, a_change, an_arrival

HERE = range(4)


def test_arrivals_come_in_the_order_they_were_left(world, store):
    ids = [f"a-{i * 7 % 100:02}" for i in range(100)]
    assert store.enqueue([an_arrival(id, p=i % 4) for i, id in enumerate(ids[:60])], 1)
    assert store.enqueue([an_arrival(id, p=i % 4) for i, id in enumerate(ids[60:])], 1)
    waiting = store.arrivals(HERE, 1_000)
    assert [row.id for row in waiting] == ids
    assert [row.n for row in waiting] == sorted(row.n for row in waiting)
    assert [row.id for row in store.arrivals(HERE, 5)] == ids[:5]


def test_arrivals_of_other_partitions_are_left_alone(world, store):
    store.enqueue([an_arrival(f"a-{p}", p=p) for p in HERE], 1)
    assert [row.id for row in store.arrivals([1, 3], 10)] == ["a-1", "a-3"]
    assert store.arrivals([], 10) == []


def left(store, tenant, amount, p=0):
    """Leave starts of a tenant; their ids."""
    ids = [f"{tenant}-{number:03}" for number in range(amount)]
    births = [a_birth(id, tenant=tenant) for id in ids]
    store.enqueue([an_arrival(birth.id, birth.id, p, birth=birth) for birth in births], 1)
    return ids


@pytest.mark.req("SEQ-LIM-5")
def test_a_look_is_shared_equally_between_the_tenants_that_have_some_waiting(world, store):
    crowd, few, some = left(store, "acme", 300), left(store, "beta", 4), left(store, "cyan", 50)
    found = store.arrivals(HERE, 60)
    taken = {name: [row.id for row in found if row.tenant == name] for name in ("acme", "cyan")}
    assert [row.id for row in found if row.tenant == "beta"] == few
    assert len(found) == 60
    assert taken == {"acme": crowd[:28], "cyan": some[:28]}
    assert [row.id for row in store.arrivals(HERE, 1_000)] == [*crowd, *few, *some]


@pytest.mark.req("SEQ-LIM-5")
def test_with_more_tenants_than_a_look_takes_every_one_has_its_turn(world, store):
    tenants = [f"t-{number:02}" for number in range(25)]
    for tenant in tenants:
        left(store, tenant, 2)
    after, seen = "", []
    for _ in range(5):
        found = store.arrivals(HERE, 10, after)
        assert len(found) == 10
        seen += [row.tenant for row in found]
        after = found[-1].tenant
    assert seen == tenants * 2
    found = [row.tenant for row in store.arrivals(HERE, 50, "t-10")]
    assert found == [tenant for tenant in [*tenants[11:], *tenants[:11]] for _ in range(2)]


def test_an_arrival_is_its_instance_s_tenant_s_whoever_leaves_it(world, store):
    world.commit(a_change("one", birth={"tenant": "beta"}))
    birth = a_birth("child", tenant="cyan")
    message = an_arrival("to-one", "one")
    store.enqueue([message, an_arrival("to-nobody", "none")], 1)
    world.commit(
        world.next_change("one"), arrivals=[an_arrival("to-child", "child", 0, b"{}", birth)]
    )
    found = {row.id: row.tenant for row in store.arrivals(HERE, 10)}
    assert found == {"to-one": "beta", "to-nobody": "", "to-child": "cyan"}


def test_a_look_at_some_partitions_leaves_the_tenants_of_others_alone(world, store):
    left(store, "acme", 5, p=0)
    mine = left(store, "beta", 5, p=1)
    assert [row.id for row in store.arrivals([1], 4)] == mine[:4]
    assert [row.id for row in store.arrivals([1], 10)] == mine


@pytest.mark.req("CORE-INB-2")
def test_the_same_id_twice_is_one_arrival(world, store):
    assert store.enqueue([an_arrival("arrival-1", body=b"first")], 1) == [True]
    assert store.enqueue([an_arrival("arrival-1", body=b"second"), an_arrival("arrival-2")], 1) == [
        False,
        True,
    ]
    assert store.enqueue([an_arrival("arrival-3"), an_arrival("arrival-3")], 1) == [True, False]
    assert [(row.id, row.body) for row in store.arrivals(HERE, 10)] == [
        ("arrival-1", b"first"),
        ("arrival-2", b"{}"),
        ("arrival-3", b"{}"),
    ]


def test_nothing_left_is_nothing_done(world, store):
    assert store.enqueue([], 1) == []


def test_a_start_is_a_row_and_an_arrival_together(world, store):
    start = an_arrival("arrival-1", "one", 2, b"start", a_birth("one", key="k"))
    assert store.enqueue([start], 5) == [True]
    assert store.instance("one").key == "k"
    assert store.enqueue([start], 6) == [False]
    assert store.instance("one").created == 5
    assert len(store.arrivals(HERE, 10)) == 1


def test_of_a_large_batch_of_starts_only_those_are_new_that_were_not_left_before(world, store):
    names = [f"one-{number:03}" for number in range(400)]
    starts = [
        an_arrival(f"start:{name}", name, 0, b"start", a_birth(name, labels=(("of", name),)))
        for name in names
    ]
    known = starts[100:110] + starts[399:]
    assert store.enqueue(known, 5) == [True] * 11
    assert store.enqueue([*starts, starts[0]], 6) == [start not in known for start in starts] + [
        False
    ]
    rows = [store.instance(name) for name in names]
    assert len({row.n for row in rows}) == 400
    assert [row.created for row in rows] == [5 if start in known else 6 for start in starts]
    assert sorted(row.id for row in store.arrivals(HERE, 1_000)) == [start.id for start in starts]
    assert store.enqueue(starts, 7) == [False] * 400


def test_a_commit_says_which_of_its_messages_give_birth(world, store):
    start = an_arrival("arrival-1", "one", 0, b"start", a_birth("one"))
    store.enqueue([start], 5)
    again = an_arrival("arrival-2", "one", 0, b"again", a_birth("one"))
    other = an_arrival("arrival-3", "two", 0, b"start", a_birth("two"))
    committed = world.commit(arrivals=[again, other, start])
    assert committed.born == ["two"]
    assert committed.numbers["two"] == store.instance("two").n
    assert [row.id for row in store.arrivals(HERE, 10)] == ["arrival-1", "arrival-2", "arrival-3"]


@pytest.mark.req("CORE-INB-1")
def test_a_taken_arrival_leaves_its_id_and_verdict(world, store):
    store.enqueue([an_arrival("arrival-1"), an_arrival("arrival-2")], 1)
    assert store.verdict("arrival-1") == (True, None)
    verdict = Verdict(id="arrival-1", ok=False, code="instance.terminal", message="é", result=[1])
    world.commit(taken=[("arrival-1", verdict)])
    assert [row.id for row in store.arrivals(HERE, 10)] == ["arrival-2"]
    assert store.verdict("arrival-1") == (True, verdict)
    assert store.enqueue([an_arrival("arrival-1")], 9) == [False]
    assert [row.id for row in store.arrivals(HERE, 10)] == ["arrival-2"]


@pytest.mark.req("CORE-INB-2")
def test_the_first_verdict_stays(world, store):
    first = Verdict(id="arrival-1", result="first")
    world.commit(taken=[("arrival-1", first)])
    world.commit(taken=[("arrival-1", Verdict(id="arrival-1", result="second"))])
    assert store.verdict("arrival-1") == (True, first)


def test_an_id_used_inside_the_process_is_remembered(world, store):
    verdict = Verdict(id="arrival-1")
    world.commit(a_change("one"), taken=[("arrival-1", verdict), ("arrival-2", None)])
    assert store.verdicts(["arrival-1", "arrival-2", "arrival-3"]) == {
        "arrival-1": verdict,
        "arrival-2": None,
    }
    assert store.verdict("arrival-3") == (False, None)
    assert store.arrivals(HERE, 10) == []
    assert store.enqueue([an_arrival("arrival-1")], 1) == [False]


def test_only_taken_arrivals_past_the_window_are_forgotten(world, store):
    store.enqueue([an_arrival("waiting")], 1)
    world.commit(taken=[("old-1", None), ("old-2", None)], tick=10)
    world.commit(taken=[("new", None)], tick=20)
    assert store.forget(before_tick=10, limit=100) == 0
    assert store.forget(before_tick=20, limit=1) == 1
    assert store.forget(before_tick=20, limit=100) == 1
    known = store.verdicts(["old-1", "old-2", "new", "waiting"])
    assert sorted(known) == ["new", "waiting"]
    assert store.enqueue([an_arrival("old-1")], 21) == [True]


def test_many_verdicts_at_once(world, store):
    ids = [f"id-{i:03}" for i in range(150)]
    world.commit(taken=[(id, Verdict(id=id, result=i)) for i, id in enumerate(ids)])
    found = store.verdicts(ids)
    assert [found[id].result for id in ids] == list(range(150))
    assert store.verdicts([]) == {}


@pytest.mark.req("CORE-INB-1", "CORE-SCH-4")
def test_two_senders_and_a_writer_at_once_lose_nothing(store_factory):
    writer = World(store_factory())
    senders = [store_factory() for _ in range(2)]
    failures = []

    def send(name, store):
        try:
            for i in range(40):
                id = f"{name}-{i:02}"
                store.enqueue([an_arrival(id, id, i % 4, id.encode(), a_birth(id))], i)
        except Exception as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [
        threading.Thread(target=send, args=(name, store))
        for name, store in zip("xy", senders, strict=True)
    ]
    for thread in threads:
        thread.start()
    taken = []
    turn = 0
    while any(thread.is_alive() for thread in threads) or len(taken) < 80:
        found = writer.store.arrivals(HERE, 10)
        writer.commit(
            a_change(f"own-{turn}"), taken=[(row.id, None) for row in found], tick=TICK + turn
        )
        taken += [row.id for row in found]
        turn += 1
        if failures:
            break
    for thread in threads:
        thread.join()
    assert failures == []
    for name in "xy":
        assert [id for id in taken if id[0] == name] == [f"{name}-{i:02}" for i in range(40)]
    numbers = [row.n for row in writer.store.load([*taken, *writer.numbers]).values()]
    assert len(set(numbers)) == len(numbers) == 80 + turn
