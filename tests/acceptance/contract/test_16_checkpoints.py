"""Checkpoints (contract §16)."""

from __future__ import annotations

import threading

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("16")

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def instance(server):
    return server.instance(server.sequence(), next_fire_at="2099-01-01T00:00:00Z")


def save(server, instance, data):
    return server.post(f"/instances/{instance}/checkpoints", {"checkpoint_data": data})


def test_the_newest_comes_first_and_is_the_latest(server, instance):
    path = f"/instances/{instance}/checkpoints"
    assert server.get(path).json() == []
    assert server.get(f"{path}/latest").status_code == 404
    ids = []
    for data in (1, {"two": [2]}, None, "four"):
        made = save(server, instance, data)
        assert (made.status_code, list(made.json())) == (201, ["id"])
        ids.append(made.json()["id"])
    rows = server.get(path).json()
    assert [row["id"] for row in rows] == ids[::-1]
    assert [row["checkpoint_data"] for row in rows] == ["four", None, {"two": [2]}, 1]
    assert set(rows[0]) == {"id", "instance_id", "checkpoint_data", "created_at"}
    assert server.get(f"{path}/latest").json() == rows[0]


@pytest.mark.parametrize("keep", [0, 2, 10])
def test_a_prune_keeps_the_newest(server, instance, keep):
    for n in range(5):
        save(server, instance, n)
    path = f"/instances/{instance}/checkpoints"
    answer = server.post(f"{path}/prune", {"keep": keep})
    assert (answer.status_code, answer.json()) == (200, {"count": max(0, 5 - keep)})
    kept = [row["checkpoint_data"] for row in server.get(path).json()]
    assert kept == list(range(4, 4 - min(keep, 5), -1))


def test_of_nobody_there_are_none(server):
    path = f"/instances/{NOBODY}/checkpoints"
    assert save(server, NOBODY, 1).status_code == 404
    assert server.get(path).status_code == 404
    assert server.get(f"{path}/latest").status_code == 404
    assert server.post(f"{path}/prune", {"keep": 1}).status_code == 404


def test_a_list_has_a_hundred_at_most_and_any_state_takes_them(server):
    done = server.instance(server.sequence(step("a")))
    server.settle(done)
    for n in range(105):
        assert save(server, done, n).status_code == 201
    rows = server.get(f"/instances/{done}/checkpoints").json()
    assert [row["checkpoint_data"] for row in rows] == list(range(104, 4, -1))


def test_saves_and_prunes_at_once_stay_consistent(server, instance):
    path = f"/instances/{instance}/checkpoints"
    statuses = []

    def saves(start):
        statuses.extend(save(server, instance, start + n).status_code for n in range(10))

    def prunes():
        prune = {"keep": 3}
        statuses.extend(server.post(f"{path}/prune", prune).status_code for _ in range(5))

    threads = [threading.Thread(target=saves, args=(n * 100,)) for n in range(3)]
    threads.append(threading.Thread(target=prunes))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200, 201}
    server.post(f"{path}/prune", {"keep": 2})
    assert len(server.get(path).json()) == 2


def test_one_that_is_too_large_is_413_and_others_are_kept(server, instance):
    assert save(server, instance, "x" * 300_000).status_code == 413
    assert server.get(f"/instances/{instance}/checkpoints").json() == []
