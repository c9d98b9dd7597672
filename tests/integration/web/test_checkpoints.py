"""Checkpoints over HTTP (contract §16)."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.req("SEQ-OPS-1")


@pytest.fixture
def path(server):
    return f"/instances/{server.instance(server.sequence())}/checkpoints"


def save(server, path, data):
    made = server.post(path, {"checkpoint_data": data})
    assert made.status_code == 201, made.text
    return made.json()["id"]


def test_checkpoints_are_saved_and_listed_the_newest_first(server, path):
    ids = [save(server, path, {"n": n}) for n in range(3)]
    found = server.get(path).json()
    assert [(each["id"], each["checkpoint_data"]) for each in found] == [
        (ids[2], {"n": 2}),
        (ids[1], {"n": 1}),
        (ids[0], {"n": 0}),
    ]
    assert found[0]["instance_id"] == path.split("/")[2]
    assert found[0]["created_at"].endswith("Z")
    assert server.get(f"{path}/latest").json() == found[0]
    assert save(server, path, None)
    assert server.get(f"{path}/latest").json()["checkpoint_data"] is None


def test_an_instance_that_has_ended_keeps_checkpoints_too(server):
    instance = server.instance(server.sequence())
    server.settle(instance)
    assert save(server, f"/instances/{instance}/checkpoints", 1)


def test_only_a_hundred_are_listed(server, path):
    for n in range(101):
        save(server, path, n)
    assert [each["checkpoint_data"] for each in server.get(path).json()] == list(range(100, 0, -1))


@pytest.mark.parametrize(("keep", "left"), [(2, [2, 1]), (5, [2, 1, 0]), (0, [])])
def test_pruning_keeps_the_newest(server, path, keep, left):
    for n in range(3):
        save(server, path, n)
    pruned = server.post(f"{path}/prune", {"keep": keep})
    assert (pruned.status_code, pruned.json()) == (200, {"count": 3 - len(left)})
    assert [each["checkpoint_data"] for each in server.get(path).json()] == left


def test_what_is_missing_or_wrong_is_refused_and_changes_nothing(server, path):
    assert server.get(f"{path}/latest").status_code == 404
    assert server.post(path, {}).status_code == 422
    assert server.post(path, {"checkpoint_data": "x" * 300_000}).status_code == 413
    save(server, path, 1)
    for wrong, status in (({}, 422), ({"keep": "all"}, 422), ({"keep": -1}, 400)):
        assert server.post(f"{path}/prune", wrong).status_code == status
    assert len(server.get(path).json()) == 1


def test_an_unknown_instance_or_another_tenants_has_none(server, path):
    save(server, path, 1)
    nobody = f"/instances/{uuid.uuid4()}/checkpoints"
    for place, tenant in ((nobody, "acme"), (path, "other")):
        assert server.get(place, tenant=tenant).status_code == 404
        assert server.get(f"{place}/latest", tenant=tenant).status_code == 404
        assert server.post(place, {"checkpoint_data": 2}, tenant=tenant).status_code == 404
        assert server.post(f"{place}/prune", {"keep": 0}, tenant=tenant).status_code == 404
    assert [each["checkpoint_data"] for each in server.get(path).json()] == [1]


def test_saving_and_pruning_at_once_lose_nothing_that_is_kept(server, path):
    with ThreadPoolExecutor(4) as pool:
        saved = [pool.submit(save, server, path, n) for n in range(40)]
        pruned = [pool.submit(server.post, f"{path}/prune", {"keep": 3}) for _ in range(10)]
    ids = {each.result() for each in saved}
    removed = sum(each.result().json()["count"] for each in pruned)
    left = server.get(path).json()
    assert len(ids) == 40
    assert len(left) + removed == 40
    assert server.post(f"{path}/prune", {"keep": 3}).json()["count"] == len(left) - 3
    assert server.get(path).json() == left[:3]
