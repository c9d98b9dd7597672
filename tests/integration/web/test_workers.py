"""External workers over HTTP (contract §17): polls, reports, heartbeats, and what is shown."""

from __future__ import annotations

import datetime as dt
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.model.limits import CHECKPOINT_BYTES
from detent.web.api.tables import all_routes
from tests.integration.web.house import house, step
from tests.integration.web.worker_calls import events, listed, polled, report, started, state_of

pytestmark = pytest.mark.req("SEQ-HND-3")

PATIENCE_S = 20
FIELDS = {
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
    # beyond the contract, for clients that show a task whole
    "tenant_id",
    "available_at",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with house(tmp_path_factory.mktemp("workers") / "s.db", workers=True) as made:
        yield made


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server whose claims are over soon."""
    path = tmp_path_factory.mktemp("hasty") / "s.db"
    with house(path, workers=True, resolution_ms=10, work_stale_ms=250) as made:
        yield made


# claiming ----------------------------------------------------------------------------------------


def test_dispatch_puts_the_instance_in_waiting_and_a_task_with_every_field_in_the_table(
    server, job
):
    params = {"n": "{{ data.n }}", "to": "ada"}
    instance = started(server, step("charge", job, params=params, timeout=60_000), data={"n": 7})
    assert state_of(server, instance) == "waiting"
    (pending,) = server.get("/workers/tasks", params={"handler_name": job}).json()
    assert set(pending) == FIELDS
    assert (pending["state"], pending["claim_epoch"], pending["worker_id"]) == ("pending", 0, None)
    (task,) = polled(server, job)
    assert set(task) == FIELDS
    assert task["id"] == pending["id"]
    assert (task["instance_id"], task["block_id"]) == (instance, "charge")
    assert (task["handler_name"], task["params"]) == (job, {"n": 7, "to": "ada"})
    assert task["context"]["data"] == {"n": 7}
    assert (task["attempt"], task["timeout_ms"], task["state"]) == (0, 60_000, "claimed")
    assert (task["worker_id"], task["claim_epoch"], task["checkpoint_seq"]) == ("w1", 1, 0)
    for name in ("claimed_at", "heartbeat_at", "created_at"):
        assert dt.datetime.fromisoformat(task[name]).tzinfo is not None
        assert task[name].endswith("Z")
    for name in ("completed_at", "output", "error_message", "error_retryable"):
        assert task[name] is None


def test_a_poll_gives_the_oldest_first_and_no_task_twice_and_then_nothing(server, job):
    sequence = server.sequence(step("a", job))
    made = [server.instance(sequence) for _ in range(5)]
    for each in made:
        server.settle(each, "waiting")
    first = polled(server, job, limit=3)
    assert [task["instance_id"] for task in first] == made[:3]
    assert {task["claim_epoch"] for task in first} == {1}
    assert [task["instance_id"] for task in polled(server, job, "w2", limit=1_001)] == made[3:]
    assert polled(server, job, "w3") == []


def test_workers_at_once_never_get_the_same_task(server, job):
    sequence = server.sequence(step("a", job))
    made = {server.instance(sequence) for _ in range(40)}
    for each in made:
        server.settle(each, "waiting")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(polled, server, job, f"w{n}", limit=3) for n in range(20)]
        tasks = [task["instance_id"] for each in asked for task in each.result()]
    assert sorted(tasks) == sorted(made)


def test_a_queue_must_match_and_a_poll_without_one_takes_any(server, job):
    path = "/workers/tasks/poll/queue"
    first = started(server, step("a", job, queue_name="mail"))
    second = started(server, step("a", job, queue_name="post"))
    plain = started(server, step("a", job))
    assert polled(server, job, path=path, queue_name="fax") == []
    (task,) = polled(server, job, path=path, queue_name="post")
    assert (task["instance_id"], task["queue_name"]) == (second, "post")
    rest = polled(server, job, limit=10)
    assert [each["instance_id"] for each in rest] == [first, plain]
    assert [each.get("queue_name") for each in rest] == ["mail", None]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"handler_name": "x"}, 422),
        ({"handler_name": "x", "worker_id": 3}, 422),
        ({"handler_name": "", "worker_id": "w"}, 400),
        ({"handler_name": "x", "worker_id": ""}, 400),
        ({"handler_name": "x", "worker_id": "w", "limit": 0}, 400),
        ({"handler_name": "x", "worker_id": "w", "limit": "many"}, 422),
        ({"handler_name": "x", "worker_id": "w", "wait_secs": -1}, 400),
        ({"handler_name": "x", "worker_id": "w", "wait_secs": 30.5}, 400),
        ({"handler_name": "x", "worker_id": "w", "wait_secs": "long"}, 422),
    ],
    ids=str,
)
def test_a_poll_that_makes_no_sense_is_refused(server, body, status):
    assert server.post("/workers/tasks/poll", body).status_code == status
    queued = server.post("/workers/tasks/poll/queue", {**body, "queue_name": "q"})
    assert queued.status_code == status


def test_without_a_queue_s_name_there_is_no_poll_of_a_queue(server):
    body = {"handler_name": "x", "worker_id": "w"}
    assert server.post("/workers/tasks/poll/queue", body).status_code == 422


# reporting ---------------------------------------------------------------------------------------


def test_a_completed_task_is_the_step_s_output_and_its_keys_are_data(server, job):
    instance = started(server, step("charge", job), step("after"), data={"n": 1})
    (task,) = polled(server, job)
    answer = report(server, task, "complete", output={"charge": "ch_1"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert server.settle(instance) == "completed"
    shown = server.get(f"/instances/{instance}").json()
    assert shown["context"]["data"] == {"n": 1, "charge": "ch_1"}
    rows = server.get(f"/instances/{instance}/outputs").json()
    assert {"charge": "ch_1"} in [row["output"] for row in rows]
    (ended,) = server.get("/workers/tasks", params={"handler_name": job}).json()
    assert (ended["state"], ended["output"]) == ("completed", {"charge": "ch_1"})
    assert ended["completed_at"].endswith("Z")
    assert events(server, task) == ["claimed", "completed"]


@pytest.mark.parametrize("output", [None, 3, "text", [1, {"a": 2}]], ids=str)
def test_any_json_is_an_output_but_it_must_be_there(server, job, output):
    instance = started(server, step("a", job))
    (task,) = polled(server, job)
    assert report(server, task, "complete").status_code == 422
    assert report(server, task, "complete", output=output).status_code == 200
    assert server.settle(instance) == "completed"


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("complete", {"output": {}}),
        ("fail", {"message": "no"}),
        ("heartbeat", {}),
        ("heartbeat", {"checkpoint": {}, "checkpoint_seq": 0}),
    ],
    ids=str,
)
def test_only_the_holder_of_the_claim_may_report(server, job, what, more):
    instance = started(server, step("a", job))
    (task,) = polled(server, job)
    assert report(server, task, what, "w2", **more).status_code == 409
    wrong = {**task, "claim_epoch": 2}
    refused = report(server, wrong, what, **more)
    assert refused.status_code == 409
    assert refused.json()["code"] == "work.lost"
    assert refused.json()["error"].startswith("conflict: ")
    unknown = report(server, {**task, "id": str(uuid.uuid4())}, what, **more)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "work.not_found")
    assert report(server, task, what, tenant="other", **more).status_code == 404
    assert report(server, {**task, "id": "no-uuid"}, what, **more).status_code == 400
    assert state_of(server, instance) == "waiting"
    assert report(server, task, "complete", output={}).status_code == 200
    assert report(server, task, what, **more).status_code == 409
    assert server.settle(instance) == "completed"


def test_nobody_holds_a_pending_task(server, job):
    started(server, step("a", job))
    (task,) = server.get("/workers/tasks", params={"handler_name": job}).json()
    for epoch in (0, 1):
        pending = {**task, "claim_epoch": epoch}
        assert report(server, pending, "heartbeat").status_code == 409
        assert report(server, pending, "complete", output={}).status_code == 409
    assert len(polled(server, job)) == 1


def test_a_retryable_failure_makes_a_new_task_at_once_until_the_attempts_are_used_up(server, job):
    retry = {"max_attempts": 2, "initial_backoff": 0, "max_backoff": 0}
    instance = started(server, step("a", job, retry=retry))
    (first,) = polled(server, job)
    report(server, first, "heartbeat", checkpoint={"page": 3}, checkpoint_seq=0)
    failed = report(server, first, "fail", message="down", retryable=True)
    assert (failed.status_code, failed.content) == (200, b"")
    (second,) = polled(server, job, wait_secs=PATIENCE_S)
    assert second["id"] != first["id"]
    assert (second["attempt"], second["claim_epoch"]) == (1, 1)
    assert second["resume_checkpoint"] == {"page": 3}
    found = {each["id"]: each for each in listed(server, job)}
    assert found[first["id"]]["state"] == "failed"
    assert found[first["id"]]["error_message"] == "down"
    assert found[first["id"]]["error_retryable"] is True
    report(server, second, "fail", message="down again", retryable=True)
    assert server.settle(instance) == "failed"
    assert polled(server, job) == []
    assert events(server, first) == ["claimed", "failed"]


def test_a_permanent_failure_fails_a_flat_instance_and_is_caught_in_a_tree(server, job):
    retry = {"max_attempts": 5, "initial_backoff": 0, "max_backoff": 0}
    flat = started(server, step("a", job, retry=retry))
    (task,) = polled(server, job)
    assert report(server, task, "fail", message="no such card").status_code == 200
    assert server.settle(flat) == "failed"
    catching = {
        "type": "try_catch",
        "id": "t",
        "try_block": [step("a", job)],
        "catch_block": [step("c")],
    }
    tree = started(server, catching)
    (task,) = polled(server, job)
    report(server, task, "fail", message="no such card", retryable=False)
    assert server.settle(tree) == "completed"
    without_policy = started(server, step("a", job))
    (task,) = polled(server, job)
    report(server, task, "fail", message="down", retryable=True)
    assert server.settle(without_policy) == "failed"


def test_a_report_for_an_instance_that_was_cancelled_or_paused_is_taken(server, job):
    for word, state in (("cancel", "cancelled"), ("pause", "paused")):
        instance = started(server, step("a", job), step("b", job))
        (task,) = polled(server, job)
        sent = server.post(f"/instances/{instance}/signals", {"signal_type": word})
        assert sent.status_code == 201
        assert report(server, task, "complete", output={}).status_code == 200
        assert server.settle(instance, state) == state
        assert polled(server, job) == []


# staying alive -----------------------------------------------------------------------------------


def test_a_heartbeat_keeps_the_claim_and_a_checkpoint_replaces_the_one_it_names(server, job):
    started(server, step("a", job))
    (task,) = polled(server, job)
    kept = report(server, task, "heartbeat")
    assert (kept.status_code, kept.json()) == (200, {"checkpoint_seq": 0})
    saved = report(server, task, "heartbeat", checkpoint={"page": 1}, checkpoint_seq=0)
    assert saved.json() == {"checkpoint_seq": 1}
    late = report(server, task, "heartbeat", checkpoint={"page": 9}, checkpoint_seq=0)
    assert (late.status_code, late.json()["code"]) == (409, "work.checkpoint")
    bare = report(server, task, "heartbeat", checkpoint={"page": 9})
    assert (bare.status_code, bare.json()["code"]) == (400, "request.invalid")
    (shown,) = listed(server, job)
    assert (shown["resume_checkpoint"], shown["checkpoint_seq"]) == ({"page": 1}, 1)


def test_a_checkpoint_has_a_limit(server, job):
    started(server, step("a", job))
    (task,) = polled(server, job)
    room = "x" * (CHECKPOINT_BYTES - len('""'))
    assert report(server, task, "heartbeat", checkpoint=room, checkpoint_seq=0).status_code == 200
    more = report(server, task, "heartbeat", checkpoint=room + "x", checkpoint_seq=1)
    assert (more.status_code, more.json()["code"]) == (413, "payload.too_large")


def test_a_silent_worker_s_task_goes_on_under_its_id_from_the_checkpoint(hasty, job):
    instance = started(hasty, step("a", job))
    (task,) = polled(hasty, job, "silent")
    body = {"checkpoint": {"page": 4}, "checkpoint_seq": 0}
    assert report(hasty, task, "heartbeat", "silent", **body).status_code == 200
    (again,) = polled(hasty, job, "w2", wait_secs=PATIENCE_S)
    assert (again["id"], again["claim_epoch"], again["attempt"]) == (task["id"], 2, 0)
    assert (again["resume_checkpoint"], again["checkpoint_seq"]) == ({"page": 4}, 1)
    assert report(hasty, task, "complete", "silent", output={}).status_code == 409
    assert report(hasty, task, "heartbeat", "silent").status_code == 409
    assert report(hasty, again, "complete", "w2", output={"done": True}).status_code == 200
    assert hasty.settle(instance) == "completed"
    history = ["claimed", "reclaimed", "claimed", "stale_mutation_rejected", "completed"]
    assert events(hasty, task) == history


def test_a_poll_says_how_long_a_claim_lives(server, hasty, job):
    body = {"handler_name": job, "worker_id": "w1"}
    for each, lease in ((server, "60000"), (hasty, "250")):
        answer = each.post("/workers/tasks/poll", body)
        assert answer.headers["x-detent-lease-ms"] == lease


# who may -----------------------------------------------------------------------------------------


def test_a_worker_s_key_carries_a_task_through_and_opens_nothing_else(server, job):
    tenant = f"t{uuid.uuid4().hex}"
    new = {"tenant_id": tenant, "capabilities": ["worker"]}
    key = server.post("/api-keys", new, tenant="").json()["secret"]
    instance = started(server, step("a", job), tenant=tenant)
    who = {"tenant": "", "key": key}
    body = {"handler_name": job, "worker_id": "w1"}
    (task,) = server.post("/workers/tasks/poll", body, **who).json()
    assert task["instance_id"] == instance
    held = {"worker_id": "w1", "claim_epoch": 1}
    path = f"/workers/tasks/{task['id']}"
    assert server.post(f"{path}/heartbeat", held, **who).status_code == 200
    assert server.post(f"{path}/complete", {**held, "output": {}}, **who).status_code == 200
    assert server.settle(instance) == "completed"
    for opened in ("/workers", "/workers/tasks", "/workers/tasks/stats", "/handlers"):
        assert server.get(opened, **who).status_code == 200
    workers = ("/workers", "/handlers", "/inspect/tasks", "/inspect/workers")
    for route in all_routes():
        if route.public or route.path.startswith(workers):
            continue
        closed = route.path.replace("{", "").replace("}", "").replace(":uuid", "")
        asked = closed.replace("/id", f"/{instance}")
        assert server.call(route.method, asked, **who).status_code in (400, 403), route.path
