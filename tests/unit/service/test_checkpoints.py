"""Checkpoints: a user's data beside an instance, newest first, pruned from the old end."""

from __future__ import annotations

import threading

import pytest

from detent.model import limits
from detent.service.checkpoints import (
    latest_checkpoint,
    list_checkpoints,
    prune_checkpoints,
    save_checkpoint,
)
from tests.unit.service.shelf import NOW, a_store, instances, refusal

pytestmark = pytest.mark.req("SEQ-OPS-1")


@pytest.fixture
def store():
    store = a_store()
    instances(store, "i-1", "i-2")
    yield store
    store.close()


def save(store, n, instance="i-1", tenant="acme", data=None):
    value = {"n": n} if data is None else data
    return save_checkpoint(store, tenant, instance, value, f"{instance}-c-{n}", NOW + n)


def numbers(store, instance="i-1"):
    return [each.checkpoint_data["n"] for each in list_checkpoints(store, "acme", instance)]


def test_checkpoints_are_listed_newest_first_and_the_latest_is_the_newest(store):
    assert [save(store, n) for n in (1, 2, 3)] == ["i-1-c-1", "i-1-c-2", "i-1-c-3"]
    assert numbers(store) == [3, 2, 1]
    latest = latest_checkpoint(store, "acme", "i-1")
    assert (latest.id, latest.instance_id, latest.checkpoint_data) == ("i-1-c-3", "i-1", {"n": 3})
    assert latest.created_at.microsecond == 3_000
    assert numbers(store, "i-2") == []


def test_a_list_has_at_most_100(store):
    for n in range(103):
        save(store, n)
    assert len(numbers(store)) == 100


@pytest.mark.parametrize("state", ["completed", "failed", "paused"])
def test_an_instance_in_any_state_takes_them(state):
    store = a_store()
    instances(store, "i-1", state=state)
    save(store, 1)
    assert numbers(store) == [1]
    store.close()


def test_an_unknown_or_foreign_instance_is_not_found_and_none_is_told(store):
    for tenant, instance in (("acme", "nothing"), ("beta", "i-1"), ("acme", "a\x00b")):
        refusal("instance.not_found", save, store, 1, instance, tenant)
        refusal("instance.not_found", list_checkpoints, store, tenant, instance)
        refusal("instance.not_found", latest_checkpoint, store, tenant, instance)
        refusal("instance.not_found", prune_checkpoints, store, tenant, instance, 1)
    refusal("checkpoint.not_found", latest_checkpoint, store, "acme", "i-1")
    save(store, 1)
    assert latest_checkpoint(store, None, "i-1").checkpoint_data == {"n": 1}


def test_pruning_keeps_the_newest_and_tells_how_many_went(store):
    for n in range(5):
        save(store, n)
        save(store, n, "i-2")
    assert prune_checkpoints(store, "acme", "i-1", 9) == 0
    assert prune_checkpoints(store, "acme", "i-1", 2) == 3
    assert numbers(store) == [4, 3]
    assert prune_checkpoints(store, "acme", "i-1", 0) == 2
    assert numbers(store) == []
    assert len(numbers(store, "i-2")) == 5
    for wrong in (-1, 1.5, "1", None, True):
        refusal("request.invalid", prune_checkpoints, store, "acme", "i-1", wrong)


def test_data_that_is_too_large_or_no_json_is_refused(store):
    refusal("payload.too_large", save, store, 1, data="x" * limits.CHECKPOINT_BYTES)
    refusal("payload.invalid", save, store, 1, data={1: 2})
    assert save(store, 1, data="x" * (limits.CHECKPOINT_BYTES - 2))


def test_an_instance_has_only_so_many(store, monkeypatch):
    monkeypatch.setattr(limits, "CHECKPOINTS_PER_INSTANCE", 2)
    save(store, 1)
    save(store, 2)
    refusal("record.limit", save, store, 3)
    save(store, 3, "i-2")


def test_saves_and_prunes_at_once_lose_nothing_that_was_to_be_kept(tmp_path):
    path = tmp_path / "store.db"
    first = a_store(path)
    instances(first, "i-1")
    removed = []

    def work(own):
        store = a_store(path)
        for n in range(20):
            save_checkpoint(store, "acme", "i-1", {"n": n}, f"c-{own}-{n}", NOW)
            removed.append(prune_checkpoints(store, "acme", "i-1", 5))
        store.close()

    threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = list_checkpoints(first, "acme", "i-1")
    assert len(left) == 5
    assert sum(removed) == 75
    first.close()
