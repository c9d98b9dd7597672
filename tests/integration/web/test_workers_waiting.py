"""Workers that wait for work, and the secrets they are given with it."""

from __future__ import annotations

import asyncio
import threading
import uuid

import httpx2
import pytest

from detent.service.credentials import (
    CredentialPatch,
    NewCredential,
    create_credential,
    delete_credential,
    patch_credential,
)
from tests.integration.web.house import ROOT, House, house, step
from tests.integration.web.worker_calls import polled, report, started

pytestmark = pytest.mark.req("SEQ-HND-3")

IDLE = 500
WAIT_S = 30
PATIENCE_S = 20
SECRET = "s3cret-canary"
POLL = "/workers/tasks/poll"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("waiting") / "s.db"
    with house(path, workers=True, vault_key=bytes(range(32)).hex()) as made:
        yield made


class Crowd:
    """Workers on one event loop, all of which wait for tasks of one handler."""

    def __init__(self, server, job):
        self.server = server
        self.job = job
        headers = {"x-tenant-id": "acme", "x-api-key": ROOT}
        many = httpx2.Limits(max_connections=IDLE + 10, max_keepalive_connections=IDLE + 10)
        self.http = httpx2.AsyncClient(
            base_url=server.url, headers=headers, limits=many, timeout=60, trust_env=False
        )

    async def poll(self, worker, **more):
        body = {"handler_name": self.job, "worker_id": worker, "wait_secs": WAIT_S, **more}
        answer = await self.http.post(POLL, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def gather(self, count):
        return [asyncio.create_task(self.poll(f"w{n}")) for n in range(count)]

    async def until_waiting(self, count):
        """Let the server come to it that so many wait."""
        async with asyncio.timeout(PATIENCE_S):
            while self.server.engine.work.bell.waiting() != count:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        await self.http.aclose()


def test_without_a_wait_an_empty_poll_is_answered_at_once(server, job):
    assert polled(server, job) == []
    assert polled(server, job, wait_secs=0) == []
    assert server.engine.work.bell.waiting() == 0


def test_a_wait_that_is_over_gives_nothing(server, job):
    assert polled(server, job, wait_secs=0.01) == []
    answer = server.post(POLL, {"handler_name": job, "worker_id": "w1"}, params={"wait_secs": 0.01})
    assert (answer.status_code, answer.json()) == (200, [])
    wrong = server.post(POLL, {"handler_name": job, "worker_id": "w1"}, params={"wait_secs": 31})
    assert wrong.status_code == 400


def test_five_hundred_wait_without_a_thread_and_a_task_wakes_exactly_one(server, job):
    polled(server, job)  # the threads that write are there
    made = server.sequence(step("a", job))
    server.settle(server.instance(server.sequence(step("n"))))

    async def story():
        async with Crowd(server, job) as crowd:
            before = threading.active_count()
            waiting = crowd.gather(IDLE)
            await crowd.until_waiting(IDLE)
            assert threading.active_count() == before
            instance = await asyncio.to_thread(server.instance, made)
            done, rest = await asyncio.wait(
                waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
            )
            (found,) = [each.result() for each in done]
            assert [task["instance_id"] for task in found] == [instance]
            assert server.engine.work.bell.waiting() == IDLE - 1 == len(rest)
            for each in rest:
                each.cancel()
            await asyncio.wait(rest)
            await crowd.until_waiting(0)
            return instance, found[0]

    instance, task = asyncio.run(story())
    assert report(server, task, "complete", task["worker_id"], output={}).status_code == 200
    assert server.settle(instance) == "completed"


def test_who_went_away_is_given_nothing_and_the_next_one_is(server, job):
    async def story():
        async with Crowd(server, job) as crowd:
            (gone,) = crowd.gather(1)
            await crowd.until_waiting(1)
            gone.cancel()
            await asyncio.wait([gone])
            await crowd.until_waiting(0)
            instance = await asyncio.to_thread(started, server, step("a", job))
            (task,) = await crowd.poll("w2")
            assert (task["instance_id"], task["claim_epoch"]) == (instance, 1)

    asyncio.run(story())


def test_a_poll_under_an_idempotency_key_waits_as_any_other_and_gives_its_answer_again(server, job):
    async def story():
        async with Crowd(server, job) as crowd:
            body = {"handler_name": job, "worker_id": "w1", "wait_secs": WAIT_S}
            named = {"idempotency-key": uuid.uuid4().hex}
            waiting = asyncio.create_task(crowd.http.post(POLL, json=body, headers=named))
            await crowd.until_waiting(1)
            await asyncio.to_thread(started, server, step("a", job))
            answer = await waiting
            assert len(answer.json()) == 1
            again = await crowd.http.post(POLL, json=body, headers=named)
            assert again.json() == answer.json()
            assert await crowd.poll("w1", wait_secs=0) == []

    asyncio.run(story())


def test_only_a_waiter_of_the_task_s_queue_and_tenant_is_woken(server, job):
    async def story():
        async with Crowd(server, job) as crowd:
            other = asyncio.create_task(
                crowd.http.post(
                    f"{POLL}/queue",
                    json={
                        "handler_name": job,
                        "worker_id": "w1",
                        "queue_name": "q2",
                        "wait_secs": WAIT_S,
                    },
                )
            )
            foreign = asyncio.create_task(
                crowd.http.post(
                    POLL,
                    json={"handler_name": job, "worker_id": "w2", "wait_secs": WAIT_S},
                    headers={"x-tenant-id": "other"},
                )
            )
            mine = asyncio.create_task(crowd.poll("w3"))
            await crowd.until_waiting(3)
            queued = step("a", job, queue_name="q1")
            instance = await asyncio.to_thread(started, server, queued)
            (task,) = await mine
            assert task["instance_id"] == instance
            assert not other.done()
            assert not foreign.done()
            other.cancel()
            foreign.cancel()
            await asyncio.wait([other, foreign])

    asyncio.run(story())


def test_a_task_goes_past_a_worker_that_was_drained_while_it_waited(server, job):
    async def story():
        async with Crowd(server, job) as crowd:
            drained = asyncio.create_task(crowd.poll(f"drained-{job}"))
            await crowd.until_waiting(1)
            other = asyncio.create_task(crowd.poll("w1"))
            await crowd.until_waiting(2)
            command = {"worker_id": f"drained-{job}", "command": "drain"}
            sent = await crowd.http.post("/workers/commands", json=command)
            assert sent.status_code == 201, sent.text
            instance = await asyncio.to_thread(started, server, step("a", job))
            (task,) = await other
            assert (task["instance_id"], task["worker_id"]) == (instance, "w1")
            assert not drained.done()
            drained.cancel()
            await asyncio.wait([drained])

    asyncio.run(story())


def test_a_server_that_stops_answers_those_who_wait(tmp_path, job):
    found = []
    with house(tmp_path / "s.db", workers=True) as made:
        mine = House(made.engine, made.url)
        waiter = threading.Thread(target=lambda: found.append(polled(mine, job, wait_secs=WAIT_S)))
        waiter.start()
        turn = threading.Event()
        while not made.engine.work.bell.waiting():
            turn.wait(0.001)
    waiter.join(PATIENCE_S)
    mine.http.close()
    assert found == [[]]


# secrets -----------------------------------------------------------------------------------------


def give(server, value=SECRET):
    """A credential of the tenant; its id."""
    id = f"c-{uuid.uuid4().hex}"
    new = NewCredential(id=id, name="Mail", value=value)
    parts = server.engine._parts
    parts.write(lambda store: create_credential(store, parts.safe, "acme", new, parts.now_ms()))
    return id


def test_a_worker_gets_the_secret_and_nobody_else_sees_it(server, job):
    params = {"key": f"credentials://{give(server)}", "to": "ada"}
    instance = started(server, step("a", job, params=params))
    (task,) = polled(server, job)
    assert task["params"] == {"key": SECRET, "to": "ada"}
    saved = {"checkpoint": {"key": SECRET}, "checkpoint_seq": 0}
    assert report(server, task, "heartbeat", **saved).status_code == 200
    logs = [{"ts": "now", "level": "info", "message": f"sent with {SECRET}"}]
    output = {"echo": f"Bearer {SECRET}", "ok": True}
    assert report(server, task, "complete", output=output, logs=logs).status_code == 200
    assert server.settle(instance) == "completed"
    listed = server.get("/workers/tasks", params={"handler_name": job}).text
    assert SECRET not in listed
    assert params["key"] in listed
    assert "[REDACTED]" in listed
    for path in ("", "/outputs", "/audit"):
        assert SECRET not in server.get(f"/instances/{instance}{path}").text
    shown = server.get(f"/instances/{instance}").json()["context"]["data"]
    assert shown == {"echo": "Bearer [REDACTED]", "ok": True}


def test_a_secret_that_was_changed_meanwhile_is_hidden_as_it_was_and_as_it_is(server, job):
    id, later = give(server), "another-secret"
    instance = started(server, step("a", job, params={"key": f"credentials://{id}"}))
    (task,) = polled(server, job)
    parts = server.engine._parts
    patch = CredentialPatch(value=later)
    parts.write(lambda s: patch_credential(s, parts.safe, "acme", id, patch, parts.now_ms()))
    assert report(server, task, "fail", message=f"{SECRET} or {later}?").status_code == 200
    assert server.settle(instance) == "failed"
    (shown,) = server.get("/workers/tasks", params={"handler_name": job}).json()
    assert shown["error_message"] == "[REDACTED] or [REDACTED]?"


def test_a_task_without_its_secret_fails_and_the_next_one_is_given(server, job):
    lost, kept = give(server), give(server)
    parts = server.engine._parts
    first = started(server, step("a", job, params={"key": f"credentials://{lost}"}))
    second = started(server, step("a", job, params={"key": f"credentials://{kept}"}))
    parts.write(lambda store: delete_credential(store, "acme", lost))
    (task,) = polled(server, job)
    assert (task["instance_id"], task["params"]) == (second, {"key": SECRET})
    assert server.settle(first) == "failed"
    (failed,) = server.get("/workers/tasks", params={"handler_name": job, "state": "failed"}).json()
    assert lost in failed["error_message"]
    assert failed["error_retryable"] is False
