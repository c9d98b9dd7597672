"""The commit of a turn: what is written is what is read, versions rise by one, all or nothing."""

from __future__ import annotations

import pytest

from detent.kernel.chain import GENESIS
from detent.model.decision import Doubt
from detent.model.errors import StoreError
from detent.ports.store import InstanceRow, Loaded, Seal
from tests.conformance.world import SALT, TICK, a_birth, a_change, an_arrival, everything

ALL_BYTES = bytes(range(256)) * 3


def refused(store, commit):
    with pytest.raises(StoreError) as refusal:
        store.commit(commit)
    return refusal.value


def test_a_birth_is_numbered_and_read_back_as_written(world, store):
    change = a_change(
        "one",
        p=2,
        due=500,
        busy=True,
        priority=3,
        state="waiting",
        birth={"key": "order-7", "parent": "father"},
    )
    committed = world.commit(change)
    n = committed.numbers["one"]
    assert store.instance("one") == InstanceRow(
        n, "one", 2, "acme", "sales", "hash-1", "waiting", 3, 500, True, "order-7", "father",
        TICK, TICK, SALT,
    )  # fmt: skip
    assert store.load(["one"])["one"] == Loaded(
        n, "one", 2, "acme", SALT, "waiting", 500, True, 3, "hash-1", 1,
        change.snapshot, change.head,
    )  # fmt: skip


def test_numbers_are_never_given_twice(world, store):
    world.commit(a_change("one"), a_change("two"))
    store.enqueue([an_arrival("arrival-1", "three", birth=a_birth("three"))], 1)
    world.commit(a_change("four"))
    numbers = [store.instance(id).n for id in ("one", "two", "three", "four")]
    assert numbers == sorted(set(numbers))


def test_the_journal_and_the_turn_rows_are_as_written(world, store):
    first, other = a_change("one", p=1), a_change("two", p=1)
    world.commit(first, other)
    second = world.next_change("one")
    world.commit(second, tick=TICK + 5)
    n = world.numbers["one"]
    rows = store.journal(n, 0, 10)
    assert [(row.inst, row.seq, row.turn, row.tick, row.body) for row in rows] == [
        (n, 1, 1, TICK, first.body),
        (n, 2, 2, TICK, second.body),
    ]
    assert [(row.snapshot_digest, row.digest, row.head) for row in rows] == [
        (change.snapshot_digest, change.digest, change.head) for change in (first, second)
    ]
    turns = store.turns(1, 0, 10)
    assert [(row.p, row.n, row.tick, row.wall_ms) for row in turns] == [
        (1, 1, TICK, 1_000 + TICK),
        (1, 2, TICK + 5, 1_005 + TICK),
    ]
    assert turns[0].heads == first.head + other.head
    assert turns[1].root == store.partitions()[1].root == world.heads[1][2]
    assert store.partitions()[1].tick == TICK + 5


def test_bytes_come_back_as_they_went_in(world, store):
    change = a_change("one", snapshot=ALL_BYTES, body=ALL_BYTES[::-1], salt=ALL_BYTES[:16])
    world.commit(change, blobs=[("one", "blob-1", ALL_BYTES * 500), ("one", "blob-2", b"")])
    assert store.load(["one"])["one"].body == ALL_BYTES
    assert store.journal_scan(0, 10)[0].body == ALL_BYTES[::-1]
    assert store.instance("one").salt == ALL_BYTES[:16]
    assert store.blobs("one", ["blob-1", "blob-2", "none"]) == {
        "blob-1": ALL_BYTES * 500,
        "blob-2": b"",
    }
    assert store.blobs("two", ["blob-1"]) == {}


def test_rows_of_many_megabytes_come_back_whole(world, store):
    """More than the buffers between a store and its database hold at once."""
    changes = [a_change(f"id-{n}", snapshot=b"s" * 700_000, body=b"j" * 700_000) for n in range(6)]
    world.commit(*changes, blobs=[("id-0", "blob-1", ALL_BYTES * 10_000)])
    world.commit(*[world.next_change(change.id, snapshot=b"t" * 700_000) for change in changes])
    loaded = store.load([change.id for change in changes])
    assert {row.body for row in loaded.values()} == {b"t" * 700_000}
    assert [len(row.body) for row in store.journal_scan(0, 6)] == [700_000] * 6
    assert store.blobs("id-0", ["blob-1"]) == {"blob-1": ALL_BYTES * 10_000}


def test_text_of_every_plane_and_the_widest_integers_come_back(world, store):
    id = "ключ-🗝-\u0000-end"
    world.commit(a_change(id, due=2**63 - 1, birth={"tenant": "tenänt"}))
    row = store.instance(id)
    assert (row.id, row.tenant, row.due) == (id, "tenänt", 2**63 - 1)


def test_a_row_of_version_0_loads_without_a_snapshot(world, store):
    store.enqueue([an_arrival("arrival-1", "one", 1, birth=a_birth("one", priority=2))], 7)
    there = store.load(["one"])["one"]
    assert (there.version, there.body, there.head) == (0, None, GENESIS)
    assert (there.state, there.due, there.busy, there.priority) == ("scheduled", None, False, 2)
    assert (store.instance("one").created, there.salt) == (7, SALT)
    world.commit(a_change("one", n=there.n, p=1, version=1), tick=9)
    assert store.load(["one"])["one"].version == 1
    assert store.instance("one").created == 7


@pytest.mark.req("CORE-STM-4")
def test_each_turn_adds_one_to_the_version(world, store):
    world.commit(a_change("one"))
    for version in range(2, 6):
        world.commit(world.next_change("one"))
        assert store.load(["one"])["one"].version == version
    assert [row.seq for row in store.journal(world.numbers["one"], 0, 10)] == [1, 2, 3, 4, 5]


@pytest.mark.req("CORE-STM-4")
@pytest.mark.parametrize("version", [1, 2, 4, 5])
def test_a_commit_against_another_version_fails_whole(world, store, version):
    world.commit(a_change("one"), a_change("two"))
    world.commit(world.next_change("one"))
    n = world.numbers["one"]
    before = everything(store)
    wrong = a_change("one", n=n, version=version)
    refusal = refused(store, world.turn([world.next_change("two"), wrong, a_change("new")]))
    assert refusal.code == "store.conflict"
    assert refusal.details == {"reason": "version", "instances": ["one"]}
    assert everything(store) == before
    world.commit(world.next_change("one"), world.next_change("two"), a_change("new"))


def test_a_change_of_an_instance_that_does_not_exist_fails_whole(world, store):
    world.commit(a_change("one"))
    before = everything(store)
    for version, row_changed in ((1, True), (2, True), (2, False)):
        ghost = a_change("ghost", n=999, version=version, row_changed=row_changed)
        refusal = refused(store, world.turn([world.next_change("one"), ghost]))
        assert (refusal.code, refusal.details["instances"]) == ("store.conflict", ["ghost"])
        assert everything(store) == before


def test_a_birth_of_an_id_that_exists_fails_whole_and_is_named(world, store):
    world.commit(a_change("one"))
    store.enqueue([an_arrival("arrival-1", "two", birth=a_birth("two"))], 1)
    before = everything(store)
    refusal = refused(store, world.turn([a_change("new"), a_change("one"), a_change("two")]))
    assert refusal.code == "store.conflict"
    assert refusal.details == {"reason": "birth", "instances": ["one", "two"]}
    assert everything(store) == before
    world.commit(a_change("new"))


def test_the_same_birth_twice_in_one_commit_is_named(world, store):
    refusal = refused(store, world.turn([a_change("one"), a_change("two"), a_change("one")]))
    assert refusal.details == {"reason": "birth", "instances": ["one"]}
    assert store.instance("two") is None


def test_the_row_is_written_only_when_a_listed_column_changes(world, store):
    world.commit(a_change("one", state="running", due=50))
    row = store.instance("one")
    world.commit(world.next_change("one", row_changed=False, state="failed", tick=TICK + 1))
    assert store.instance("one") == row
    world.commit(
        world.next_change(
            "one", state="paused", due=None, busy=True, priority=0, definition="h2", tick=TICK + 2
        )
    )
    assert store.instance("one") == row._replace(
        state="paused", due=None, busy=True, priority=0, definition="h2", updated=TICK + 2
    )


@pytest.mark.parametrize("count", [1, 63, 64, 65, 500])
def test_a_turn_of_any_size_is_whole(world, store, count):
    ids = [f"instance-{i:03}" for i in range(count)]
    born = world.commit(*[a_change(id, p=i % 4) for i, id in enumerate(ids)])
    assert len(set(born.numbers.values())) == count
    world.commit(*[world.next_change(id) for id in ids])
    loaded = store.load(ids)
    assert sorted(loaded) == ids
    assert {row.version for row in loaded.values()} == {2}
    assert {row.body for row in loaded.values()} == {f"snapshot 2 of {id}".encode() for id in ids}
    scan = store.journal_scan(0, 10 * count)
    assert [row.body for row in scan] == [
        f"journal {version} of {id}".encode() for version in (1, 2) for id in ids
    ]
    assert [row.turn for row in store.partitions()] == [2 * (p < count) for p in range(4)]


def test_messages_to_others_are_arrivals_of_the_same_commit(world, store):
    child = an_arrival("arrival-1", "child", 3, b"start", a_birth("child", parent="one"))
    note = an_arrival("arrival-2", "elsewhere", 2, b"note")
    committed = world.commit(a_change("one"), arrivals=[child, note])
    assert committed.born == ["child"]
    assert committed.numbers == {id: store.instance(id).n for id in ("one", "child")}
    assert store.instance("child").parent == "one"
    waiting = store.arrivals(range(4), 10)
    assert [(row.id, row.p, row.instance, row.body) for row in waiting] == [
        ("arrival-1", 3, "child", b"start"),
        ("arrival-2", 2, "elsewhere", b"note"),
    ]


def test_a_child_that_exists_and_a_message_left_before_are_no_error(world, store):
    child = an_arrival("arrival-1", "child", 3, b"start", a_birth("child"))
    world.commit(a_change("one"), arrivals=[child])
    row = store.instance("child")
    committed = world.commit(world.next_change("one"), arrivals=[child])
    assert (committed.born, committed.numbers) == ([], {})
    assert store.instance("child") == row
    assert len(store.arrivals(range(4), 10)) == 1


def test_a_wake_up_for_nothing_moves_the_due_tick_alone(world, store):
    world.commit(a_change("one", due=10), a_change("two", due=10))
    row, journal = store.instance("one"), store.journal_scan(0, 10)
    world.commit(dues=[(world.numbers["one"], 70), (world.numbers["two"], None)])
    assert store.instance("one") == row._replace(due=70)
    assert store.instance("two").due is None
    assert store.journal_scan(0, 10) == journal
    before = everything(store)
    assert refused(store, world.turn(dues=[(999, 1)])).code == "store.conflict"
    assert everything(store) == before


def test_bytes_are_kept_beside_an_instance_without_a_turn(world, store):
    world.commit(a_change("one"), blobs=[("one", "blob-1", b"first")])
    before = everything(store)
    store.put_blob("one", "blob-1", b"second")
    assert everything(store) == before, "what is there under a digest is the same bytes"
    store.put_blob("one", "blob-2", ALL_BYTES * 500)
    store.put_blob("two", "blob-2", b"")
    assert store.blobs("one", ["blob-1", "blob-2"]) == {
        "blob-1": b"first",
        "blob-2": ALL_BYTES * 500,
    }
    assert store.blobs("two", ["blob-1", "blob-2"]) == {"blob-2": b""}


def test_blobs_are_kept_per_instance_and_never_replaced(world, store):
    world.commit(a_change("one"), a_change("two"), blobs=[("one", "blob-1", b"first")])
    world.commit(touching=[0], blobs=[("one", "blob-1", b"second"), ("two", "blob-1", b"two's")])
    assert store.blobs("one", ["blob-1"]) == {"blob-1": b"first"}
    assert store.blobs("two", ["blob-1"]) == {"blob-1": b"two's"}


def test_a_seal_goes_with_its_commit(world, store):
    seal = Seal(1, TICK, b"roots", b"digest", b"")
    world.commit(a_change("one"), seal=seal)
    assert store.seals(0, 10) == [seal]
    assert store.seals(1, 10) == []


def test_doubts_are_written_moved_and_removed(world, store):
    doubt = Doubt(effect="effect-1", state="needs_reconcile", next_try=300, reason="timeout")
    world.commit(a_change("one"), doubts=[("one", doubt)], tick=TICK)
    moved = Doubt(effect="effect-1", state="indeterminate", reason="no answer")
    world.commit(touching=[0], doubts=[("one", moved)], tick=TICK + 50)
    row = store.doubts("acme", "one", 10)[0]
    assert (row.effect, row.instance, row.tenant, row.state) == (
        "effect-1",
        "one",
        "acme",
        "indeterminate",
    )
    assert (row.next_try, row.since, row.reason) == (None, TICK, "no answer")
    world.commit(touching=[0], doubts=[("one", Doubt(effect="effect-1", state=""))])
    assert store.doubts("", "", 10) == []
