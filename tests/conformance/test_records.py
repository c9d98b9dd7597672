"""Records: the one table of everything the catalogue names, whatever its kind."""

from __future__ import annotations

import threading

from detent.ports.records import Record, RecordQuery

ALICE = Record("session", "s-1", "acme", b"\x00{}", key="alice", created_ms=10, updated_ms=10)


def numbered(count, **columns):
    """Records of one owner, made a millisecond apart."""
    return [
        Record("note", f"n-{i}", "acme", b"%d" % i, created_ms=i, updated_ms=i)._replace(**columns)
        for i in range(1, count + 1)
    ]


def ids(records):
    return [record.id for record in records]


def test_a_record_is_found_by_its_id_and_by_its_key(store):
    assert store.insert_record(ALICE) is True
    kept = ALICE._replace(n=1, rev=1)
    assert store.record("session", "s-1") == kept
    assert store.record_by_key("session", "acme", "alice") == kept
    assert store.record("session", "s-2") is None
    assert store.record("trigger", "s-1") is None
    assert store.record_by_key("session", "beta", "alice") is None


def test_an_id_is_unique_in_its_kind_and_a_key_in_its_tenant(store):
    store.insert_record(ALICE)
    assert store.insert_record(ALICE._replace(key="bob", tenant="beta")) is False
    assert store.insert_record(ALICE._replace(id="s-2")) is False
    assert store.record("session", "s-2") is None
    assert store.insert_record(ALICE._replace(id="s-2", tenant="beta")) is True
    assert store.insert_record(ALICE._replace(kind="trigger")) is True
    for id in ("s-3", "s-4"):
        assert store.insert_record(ALICE._replace(id=id, key=None)) is True


def test_a_record_is_replaced_by_who_read_its_newest_revision(store):
    store.insert_record(ALICE)
    read = store.record("session", "s-1")
    assert store.replace_record(read._replace(body=b"first", updated_ms=20)) is True
    assert store.replace_record(read._replace(body=b"second", updated_ms=21)) is False
    kept = store.record("session", "s-1")
    assert (kept.body, kept.updated_ms, kept.created_ms, kept.rev) == (b"first", 20, 10, 2)
    assert store.replace_record(kept._replace(id="s-9")) is False


def test_many_are_replaced_at_once_but_for_those_that_were_written_since(store):
    for record in numbered(4):
        store.insert_record(record)
    read = store.records(RecordQuery("note"))
    store.replace_record(read[1]._replace(body=b"mine"))
    store.delete_record("note", "n-3")
    assert store.replace_records([each._replace(body=b"new") for each in read]) == 2
    kept = store.records(RecordQuery("note"))
    assert [(each.id, each.body, each.rev) for each in kept] == [
        ("n-1", b"new", 2),
        ("n-2", b"mine", 2),
        ("n-4", b"new", 2),
    ]
    assert store.replace_records([]) == 0


def test_a_key_that_is_taken_is_not_taken_by_replacing(store):
    store.insert_record(ALICE)
    store.insert_record(ALICE._replace(id="s-2", key="bob"))
    bob = store.record("session", "s-2")
    assert store.replace_record(bob._replace(key="alice")) is False
    assert store.record("session", "s-2") == bob
    assert store.replace_record(bob._replace(key="carol", owner="o-1")) is True
    assert store.record_by_key("session", "acme", "carol").owner == "o-1"
    assert store.record_by_key("session", "acme", "bob") is None


def test_records_are_listed_in_the_order_of_making_and_against_it(store):
    for record in numbered(5):
        store.insert_record(record)
    assert ids(store.records(RecordQuery("note"))) == ["n-1", "n-2", "n-3", "n-4", "n-5"]
    first = store.records(RecordQuery("note", limit=2))
    assert ids(store.records(RecordQuery("note", after=first[-1].n, limit=2))) == ["n-3", "n-4"]
    last = store.records(RecordQuery("note", newest_first=True, limit=2))
    assert ids(last) == ["n-5", "n-4"]
    older = RecordQuery("note", newest_first=True, after=last[-1].n, limit=2)
    assert ids(store.records(older)) == ["n-3", "n-2"]


def test_records_are_listed_by_tenant_and_by_owner(store):
    rows = numbered(6)
    for i, row in enumerate(rows):
        tenant, owner = ("acme", "beta", "")[i % 3], "ox"[i % 2]
        store.insert_record(row._replace(tenant=tenant, owner=owner))
    assert ids(store.records(RecordQuery("note", tenant="beta"))) == ["n-2", "n-5"]
    assert ids(store.records(RecordQuery("note", tenant=""))) == ["n-3", "n-6"]
    assert ids(store.records(RecordQuery("note", owner="x"))) == ["n-2", "n-4", "n-6"]
    assert ids(store.records(RecordQuery("note", tenant="acme", owner="o"))) == ["n-1"]
    assert store.count_records(RecordQuery("note", tenant="acme")) == 2
    assert store.count_records(RecordQuery("note", owner="x")) == 3
    assert store.count_records(RecordQuery("note", limit=4)) == 4
    assert store.count_records(RecordQuery("note", tenant="nobody")) == 0


def test_a_deleted_record_is_gone_and_its_number_is_not_given_again(store):
    store.insert_record(ALICE)
    assert store.delete_record("session", "s-1") is True
    assert store.delete_record("session", "s-1") is False
    assert store.record("session", "s-1") is None
    store.insert_record(ALICE)
    assert store.record("session", "s-1").n == 2


def test_pruning_keeps_the_newest_of_one_owner(store):
    for record in numbered(5, owner="o-1"):
        store.insert_record(record)
    store.insert_record(ALICE._replace(kind="note", owner="o-2"))
    assert store.prune_records("note", "o-1", 9) == 0
    assert store.prune_records("note", "o-1", 2) == 3
    assert ids(store.records(RecordQuery("note", owner="o-1"))) == ["n-4", "n-5"]
    assert store.prune_records("note", "o-1", 0) == 2
    assert store.prune_records("note", "o-1", 0) == 0
    assert ids(store.records(RecordQuery("note"))) == ["s-1"]


def test_pruning_by_age_looks_at_the_oldest_only(store):
    for record in numbered(6, owner="o-1"):
        store.insert_record(record)
    assert store.prune_records("note", "o-1", before_ms=1) == 0
    assert store.prune_records("note", "o-1", before_ms=4, limit=2) == 2
    assert store.prune_records("note", "o-1", before_ms=4) == 1
    assert ids(store.records(RecordQuery("note"))) == ["n-4", "n-5", "n-6"]
    assert store.prune_records("note", "o-1", keep=2, before_ms=100) == 1


def test_of_many_that_insert_the_same_id_one_is_first(store_factory):
    store_factory()
    stores = [store_factory() for _ in range(4)]
    won = []

    def insert(store, name):
        won.append(store.insert_record(ALICE._replace(body=name)))

    threads = [
        threading.Thread(target=insert, args=(store, b"%d" % i)) for i, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False, False, False, True]
