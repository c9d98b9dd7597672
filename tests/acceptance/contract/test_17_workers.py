"""External workers (contract §17)."""

from __future__ import annotations

import threading
import uuid

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("17")

NOBODY = "00000000-0000-7000-8000-000000000000"
RETRY = {"max_attempts": 2, "initial_backoff": 1, "max_backoff": 1}


@pytest.fixture
def job():
    return f"job-{uuid.uuid4().hex[:8]}"


def waiting(server, job, data=None, **options):
    instance = server.instance(server.sequence(step("s", job, **options), step("after")), data)
    server.settle(instance, "waiting")
    return instance


def poll(server, job, worker="w1", **more):
    body = {"handler_name": job, "worker_id": worker, **more}
    path = "/workers/tasks/poll" + ("/queue" if "queue_name" in more else "")
    answer = server.post(path, body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def report(server, task, verb, **more):
    body = {"worker_id": task["worker_id"], "claim_epoch": task["claim_epoch"], **more}
    return server.post(f"/workers/tasks/{task['id']}/{verb}", body)


def test_a_task_has_every_field_resolved_and_filtered(server, job):
    options = {"params": {"v": "{{data.x}}"}, "context_access": {"data": {"fields": ["x"]}}}
    instance = waiting(server, job, {"x": 1, "y": 2}, timeout=60_000, **options)
    (task,) = poll(server, job)
    wanted = {
        "id",
        "instance_id",
        "block_id",
        "handler_name",
        "params",
        "context",
        "attempt",
        "timeout_ms",
        "state",
        "worker_id",
        "claimed_at",
        "heartbeat_at",
        "claim_epoch",
        "checkpoint_seq",
        "completed_at",
        "output",
        "error_message",
        "error_retryable",
        "created_at",
    }
    assert wanted <= set(task)
    assert (task["instance_id"], task["block_id"], task["handler_name"]) == (instance, "s", job)
    assert (task["params"], task["attempt"], task["timeout_ms"]) == ({"v": 1}, 0, 60_000)
    assert (task["state"], task["worker_id"], task["claim_epoch"]) == ("claimed", "w1", 1)
    assert task["context"]["data"] == {"x": 1}
    assert poll(server, job) == []
    assert report(server, task, "complete", output={}).status_code == 200


def test_a_completed_task_merges_its_object_and_goes_on(server, job):
    instance = waiting(server, job, {"x": 1})
    (task,) = poll(server, job)
    answer = report(server, task, "complete", output={"n": 5}, logs=[])
    assert (answer.status_code, answer.content) == (200, b"")
    assert server.settle(instance) == "completed"
    assert dict(server.outputs(instance))["s"] == {"n": 5}
    assert server.shown(instance)["context"]["data"] == {"x": 1, "n": 5}
    assert report(server, task, "complete", output={}).status_code == 409


@pytest.mark.parametrize("verb", ["complete", "fail", "heartbeat"])
def test_only_who_holds_a_task_may_report(server, job, verb):
    waiting(server, job)
    (task,) = poll(server, job)
    more = {"complete": {"output": {}}, "fail": {"message": "x"}, "heartbeat": {}}[verb]
    assert report(server, {**task, "worker_id": "w2"}, verb, **more).status_code == 409
    assert report(server, {**task, "claim_epoch": 2}, verb, **more).status_code == 409
    assert report(server, {**task, "id": NOBODY}, verb, **more).status_code == 404
    assert report(server, task, verb, **more).status_code == 200


def test_a_permanent_failure_fails_and_a_retryable_one_is_a_new_task(server, job):
    instance = waiting(server, job)
    (task,) = poll(server, job)
    assert report(server, task, "fail", message="no").status_code == 200
    assert server.settle(instance) == "failed"
    instance = waiting(server, job, retry=RETRY)
    (first,) = poll(server, job)
    report(server, first, "fail", message="no", retryable=True)
    (second,) = poll(server, job, wait_secs=10)
    assert second["id"] != first["id"]
    assert (second["attempt"], second["claim_epoch"]) == (1, 1)
    report(server, second, "fail", message="no", retryable=True)
    assert server.settle(instance) == "failed"
    assert poll(server, job) == []


def test_queues_are_kept_apart(server, job):
    waiting(server, job, queue_name="blue")
    assert poll(server, job, queue_name="red") == []
    (task,) = poll(server, job, queue_name="blue")
    assert task["queue_name"] == "blue"
    waiting(server, job, queue_name="blue")
    assert len(poll(server, job)) == 1  # a poll without a queue takes any


def test_checkpoints_are_compared_and_counted(server, job):
    waiting(server, job)
    (task,) = poll(server, job)
    assert report(server, task, "heartbeat").json() == {"checkpoint_seq": 0}
    beat = report(server, task, "heartbeat", checkpoint={"at": 1}, checkpoint_seq=0)
    assert beat.json() == {"checkpoint_seq": 1}
    stale = report(server, task, "heartbeat", checkpoint={"at": 2}, checkpoint_seq=0)
    assert stale.status_code == 409
    assert report(server, task, "heartbeat", checkpoint=1).status_code == 400
    big = {"checkpoint": "x" * 300_000, "checkpoint_seq": 1}
    assert report(server, task, "heartbeat", **big).status_code == 413


def test_two_workers_never_get_the_same_task(server, job):
    for _ in range(10):
        waiting(server, job)
    got = []

    def work(name):
        for _ in range(10):
            got.extend(task["id"] for task in poll(server, job, name, limit=2))

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(set(got))
    assert len(got) == 10


def test_tasks_stats_workers_and_handlers_are_listed(server, job):
    waiting(server, job)
    (task,) = poll(server, job)
    listed = server.get(f"/workers/tasks?handler_name={job}&state=claimed,pending").json()
    assert [row["id"] for row in listed] == [task["id"]]
    assert server.get("/workers/tasks?state=dancing").status_code == 400
    stats = server.get("/workers/tasks/stats").json()
    assert set(stats) >= {"by_state", "by_handler", "active_workers"}
    assert stats["by_handler"][job]["claimed"] == 1
    history = server.get(f"/workers/tasks/{task['id']}/attempts").json()
    assert [row["event"] for row in history] == ["claimed"]
    workers = {row["worker_id"]: row for row in server.get("/workers").json()}
    assert {"handlers", "queues", "version", "last_seen_at", "alive", "in_flight"} <= set(
        workers["w1"]
    )
    handlers = server.get("/handlers").json()
    assert set(handlers) == {"builtin", "external"}
    assert "noop" in handlers["builtin"]
    assert job in handlers["external"]


def test_a_report_of_what_has_ended_is_taken_and_ignored(server, job):
    instance = waiting(server, job)
    (task,) = poll(server, job)
    server.post(f"/instances/{instance}/signals", {"signal_type": "cancel"})
    server.settle(instance, "cancelled")
    answer = report(server, task, "complete", output={"n": 1})
    assert answer.status_code == 200, answer.text
    assert server.shown(instance)["context"]["data"] is None
