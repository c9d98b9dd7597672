"""Pushed queues (contract §31): tasks are brought to a URL, and what its answers mean."""

from __future__ import annotations

import time

import pytest

from detent.kernel.webhooks import verify
from detent.model import limits
from tests.integration.web.following import until
from tests.integration.web.house import house, step
from tests.integration.web.receiver import (
    QUEUE,
    SECRET,
    Receiver,
    done,
    history,
    pushed_to,
    task_of,
)
from tests.integration.web.worker_calls import polled, report
from tests.unit.handlers.network.loopback import answer

pytestmark = pytest.mark.req("SEQ-HND-3")


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_BACKOFF_MS", 20)
    monkeypatch.setattr(limits, "PUSH_TIMEOUT_MS", 2_000)
    monkeypatch.setattr(limits, "REAPER_PAUSE_MS", 10)
    with house(tmp_path / "s.db", workers=True, allow_internal_urls=True) as made:
        yield made


def queued(job="job", **more):
    return step("s", job, queue_name=QUEUE, **more)


def begun(server, *steps, data=None, tenant="acme"):
    """An instance whose step is on its way to a receiver, or was there."""
    return server.instance(server.sequence(*steps, tenant=tenant), data, tenant=tenant)


# what is sent, and answers that end a task -------------------------------------------------------


def test_a_task_is_sent_signed_and_its_answer_is_the_output(server):
    with Receiver(done({"charge": "ch_1"}, logs=[{"message": "charged"}])) as receiver:
        target = pushed_to(server, receiver.url, secret=SECRET)
        assert (target["has_secret"], target["push_url"]) == (True, receiver.url)
        assert "secret" not in target
        params = {"n": "{{ data.n }}"}
        instance = begun(server, queued(params=params, timeout=60_000), data={"n": 7})
        server.settle(instance)
        assert server.outputs(instance) == [("s", {"charge": "ch_1"})]
        assert server.shown(instance)["context"]["data"] == {"n": 7, "charge": "ch_1"}
        (task,), (seen,) = receiver.tasks, receiver.requests
    assert (seen.method, seen.path) == ("POST", "/tasks")
    assert seen.headers["content-type"] == "application/json"
    stored = task_of(server, instance)
    sent = {**stored, "state": "claimed", "output": None, "completed_at": None}
    sent |= {"task_id": stored["id"], "tenant_id": "acme"}
    assert {**task, "error_retryable": None} == sent
    assert (task["worker_id"], task["claim_epoch"], task["params"]) == ("push:q", 1, {"n": 7})
    assert (task["attempt"], task["timeout_ms"]) == (0, 60_000)
    assert seen.headers["webhook-id"] == f"{task['id']}-1"
    now_s = int(time.time())
    assert verify(SECRET, seen.headers, seen.body, now_s)
    assert not verify("another", seen.headers, seen.body, now_s)
    assert seen.headers["x-detent-signature"].startswith("sha256=")
    assert history(server, task["id"]) == [("claimed", 1), ("completed", 1)]
    logs = server.get(f"/instances/{instance}/logs").json()
    assert [line["message"] for line in logs] == ["charged"]


@pytest.mark.parametrize("said", [answer(202), answer(204), answer(200, b"OK"), answer(200, [1])])
def test_a_task_that_is_taken_is_reported_under_the_claim_it_came_with(server, said):
    with Receiver(said) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        task = receiver.got()
        worker = task["worker_id"]
        assert report(server, task, "heartbeat", worker).status_code == 200
        wrong = {**task, "claim_epoch": 2}
        assert report(server, wrong, "complete", worker, output={}).status_code == 409
        assert report(server, task, "complete", "w1", output={}).status_code == 409
        assert report(server, task, "complete", worker, output={"n": 1}).status_code == 200
        server.settle(instance)
        assert server.outputs(instance) == [("s", {"n": 1})]
        assert len(receiver.tasks) == 1


def test_a_receiver_may_say_at_once_that_it_failed(server):
    failures = [
        answer(200, {"error": {"message": "busy", "retryable": True}}),
        answer(200, {"error": {"message": "card refused"}}),
    ]
    retry = {"max_attempts": 5, "initial_backoff": 10, "max_backoff": 10}
    with Receiver(*failures) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued(retry=retry))
        assert server.settle(instance) == "failed"
        assert [task["attempt"] for task in receiver.tasks] == [0, 1]
        assert len({task["id"] for task in receiver.tasks}) == 2
    assert task_of(server, instance)["error_message"] == "card refused"


def test_an_output_that_cannot_be_taken_fails_the_task(server):
    with Receiver(done("x" * (limits.PAYLOAD_BYTES + 1))) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        assert server.settle(instance) == "failed"
    assert "cannot be taken" in task_of(server, instance)["error_message"]


# answers that give a task back -------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_receiver_that_cannot_now_gets_the_task_again(server, status):
    with Receiver(answer(status), answer(status), done({"n": 1})) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        server.settle(instance)
        assert [task["claim_epoch"] for task in receiver.tasks] == [1, 2, 3]
        ids = [seen.headers["webhook-id"] for seen in receiver.requests]
        assert len(set(ids)) == 3
    lines = server.get(f"/workers/tasks/{receiver.tasks[0]['id']}/attempts").json()
    assert [line["event"] for line in lines] == [
        *["claimed", "push_failed"] * 2,
        *["claimed", "completed"],
    ]
    assert lines[1]["reason"] == f"the receiver answered {status}"


def test_a_receiver_says_when_it_may_be_called_again(server):
    with Receiver(answer(429, headers=["Retry-After: 3600"])) as receiver:
        pushed_to(server, receiver.url)
        begun(server, queued("retrying"))
        task = receiver.got()
        until(lambda: history(server, task["id"])[-1][0] == "push_failed")
        due = server.engine._parts.read(
            lambda store: store._connection.execute(
                "SELECT push_ms, created_ms FROM work_item"
            ).fetchone()
        )
        assert due[0] - due[1] > 3_500_000
        (again,) = polled(server, "retrying")  # whoever polls need not wait
    assert again["claim_epoch"] == 2
    assert report(server, again, "complete", output={}).status_code == 200


@pytest.mark.parametrize("status", [301, 400, 404, 422])
def test_a_receiver_that_refuses_is_asked_seldom_and_others_may_have_the_task(server, status):
    with Receiver(answer(status, headers=["Location: http://127.0.0.1:1/"])) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued("refused"))
        task = receiver.got()
        until(lambda: history(server, task["id"])[-1][0] == "push_failed")
        (again,) = polled(server, "refused")
        assert report(server, again, "complete", output={"n": 2}).status_code == 200
        server.settle(instance)
        assert len(receiver.tasks) == 1


def test_a_receiver_that_is_gone_gets_nothing_more_until_somebody_says_so(server):
    with Receiver(answer(410), done({})) as receiver:
        target = pushed_to(server, receiver.url)
        first = begun(server, queued())
        item = f"/queues/dispatch/{target['id']}"
        until(lambda: server.get(item).json()["enabled"] is False)
        assert server.get(item).json()["reason"] == "the receiver answered 410"
        second = begun(server, queued())
        server.settle(second, "waiting")
        assert len(receiver.tasks) == 1
        assert server.put(item, {"queue_name": QUEUE, "url": receiver.url}).status_code == 200
        server.settle(second)
        (again,) = polled(server, "job")  # its own pause is long, but not for who polls
        assert again["instance_id"] == first


def test_a_receiver_that_is_not_there_gets_the_task_when_it_is(server):
    with Receiver() as away:
        port = away.port
    pushed_to(server, f"http://127.0.0.1:{port}/tasks")
    instance = begun(server, queued())
    server.settle(instance, "waiting")
    until(lambda: ("push_failed", 1) in history(server, task_of(server, instance)["id"]))
    with Receiver(done({"n": 1}), at=port) as receiver:
        server.settle(instance)
        assert receiver.got()["claim_epoch"] >= 2


# answers that never come -------------------------------------------------------------------------


def test_an_answer_that_is_lost_leaves_the_claim_to_the_receiver(server):
    """The connection breaks after the task was read: it may be at work, and it is."""

    async def broken(_seen):
        return
        yield b""

    with Receiver(broken) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        task = receiver.got()
        busy = server.served._pusher._busy
        until(lambda: not busy)
        assert task_of(server, instance)["state"] == "claimed"
        assert report(server, task, "complete", task["worker_id"], output={}).status_code == 200
        server.settle(instance)
        assert len(receiver.tasks) == 1
        assert history(server, task["id"]) == [("claimed", 1), ("completed", 1)]


def test_an_answer_that_cannot_be_read_leaves_the_claim_to_the_receiver_too(server):
    """It took the task and says so at a length that nobody asked for."""
    with Receiver(answer(200, b"x" * (limits.PUSH_ANSWER_BYTES + 1))) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        task = receiver.got()
        until(lambda: not server.served._pusher._busy)
        assert task_of(server, instance)["state"] == "claimed"
        assert report(server, task, "complete", task["worker_id"], output={}).status_code == 200
        server.settle(instance)
        assert len(receiver.tasks) == 1


def test_tasks_are_pushed_where_the_writer_is_a_process_of_its_own(tmp_path):
    settings = {"workers": True, "allow_internal_urls": True, "writer": "process"}
    with house(tmp_path / "s.db", **settings) as server, Receiver(done({"n": 1})) as receiver:
        pushed_to(server, receiver.url)
        made = [begun(server, queued()) for _ in range(5)]
        assert {server.settle(each) for each in made} == {"completed"}
        assert sorted(task["instance_id"] for task in receiver.tasks) == sorted(made)


def test_a_receiver_that_falls_silent_loses_the_task_and_gets_it_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PUSH_TIMEOUT_MS", 200)
    monkeypatch.setattr(limits, "REAPER_PAUSE_MS", 10)
    settings = {"workers": True, "allow_internal_urls": True, "work_stale_ms": 100}
    with house(tmp_path / "s.db", **settings) as server, Receiver(None, done({"n": 2})) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        server.settle(instance)
        first, second = receiver.tasks
        assert (first["id"], first["claim_epoch"]) == (second["id"], 1)
        assert second["claim_epoch"] == 2
        assert report(server, first, "complete", "push:q", output={"n": 1}).status_code == 409
        assert server.outputs(instance) == [("s", {"n": 2})]
        receiver.go_on()
        assert [event for event, _epoch in history(server, first["id"])] == [
            "claimed",
            "reclaimed",
            "claimed",
            "completed",
            "stale_mutation_rejected",
        ]


def test_what_is_called_off_while_it_is_on_its_way_is_over(server):
    with Receiver(None) as receiver:
        pushed_to(server, receiver.url)
        instance = begun(server, queued())
        task = receiver.got()
        assert server.post(f"/instances/{instance}/cancel").status_code == 200
        assert server.settle(instance) == "cancelled"
        receiver.go_on()
        until(lambda: not server.served._pusher._busy)
        assert task_of(server, instance)["state"] == "cancelled"
        assert report(server, task, "complete", task["worker_id"], output={}).status_code == 200
        assert len(receiver.tasks) == 1
