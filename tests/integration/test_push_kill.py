"""A real server, killed around the push of a task: the task is brought again under a new claim."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import httpx2
import pytest

from tests.integration.engine_processes import process, said
from tests.integration.web.following import until
from tests.integration.web.house import instance_body, sequence_body, step
from tests.integration.web.receiver import Receiver, done
from tests.unit.handlers.network.loopback import answer

SERVE = """
from detent.model import limits
from detent.testing.serving import serving

limits.PUSH_TIMEOUT_MS = 300
limits.REAPER_PAUSE_MS = 10
settings = dict(workers=True, allow_internal_urls=True, work_stale_ms=200)
with detent.Engine(path, **settings) as engine, serving(engine) as url:
    say(url)
    sys.stdin.read()
"""
TENANT = {"x-tenant-id": "acme"}


@pytest.fixture
def story(tmp_path):
    """A sequence whose step is pushed."""
    return tmp_path / "s.db", sequence_body(step("s", "job", queue_name="q"))


def client(url):
    return httpx2.Client(base_url=url, headers=TENANT, timeout=20)


def begin(http, sequence, receiver):
    """Set everything up; the instance whose task is pushed, though nobody may live to say so."""
    target = {"queue_name": "q", "url": receiver.url}
    assert http.post("/queues/dispatch", json=target).status_code == 201
    assert http.post("/sequences", json=sequence).status_code == 201
    body = instance_body(sequence["id"], idempotency_key="once")
    with suppress(httpx2.TransportError):  # it may die before it answers
        http.post("/instances", json=body)


@pytest.mark.req("SEQ-HND-3", "CORE-REC-1")
@pytest.mark.parametrize(
    ("moment", "epochs"),
    [("before_push", [2]), ("in flight", [1, 2]), ("after_push", [1, 2])],
)
def test_a_task_survives_a_server_that_is_killed_around_its_push(
    story, monkeypatch, moment, epochs
):
    path, sequence = story
    if moment != "in flight":
        monkeypatch.setenv("DETENT_FAILPOINT", f"{moment}:1")
    victim = []

    def kill(_seen):
        """The receiver has the task, and whoever sent it dies before there is an answer."""
        os.kill(victim[0], signal.SIGKILL)
        return answer(202)

    first = kill if moment == "in flight" else done({"from": "the first"})
    answers = (
        [first, done({"from": "the second"})] if moment != "before_push" else [done({"from": 2})]
    )
    with Receiver(*answers) as receiver:
        with process(SERVE, path) as dying:
            victim.append(dying.pid)
            with client(said(dying)) as http:
                begin(http, sequence, receiver)
            assert dying.wait(20) == -signal.SIGKILL
        monkeypatch.delenv("DETENT_FAILPOINT", raising=False)
        with process(SERVE, path) as living, client(said(living)) as http:
            (row,) = http.get("/instances").json()["items"]
            until(lambda: http.get(f"/instances/{row['id']}").json()["state"] == "completed")
            assert [task["claim_epoch"] for task in receiver.tasks] == epochs
            assert len({task["id"] for task in receiver.tasks}) == 1
            task = receiver.tasks[0]
            lines = http.get(f"/workers/tasks/{task['id']}/attempts").json()
            assert [line["event"] for line in lines] == [
                "claimed",
                "reclaimed",
                "claimed",
                "completed",
            ]
            late = {"worker_id": "push:q", "claim_epoch": 1, "output": {"from": "the first"}}
            refused = http.post(f"/workers/tasks/{task['id']}/complete", json=late)
            assert refused.status_code == 409
            outputs = http.get(f"/instances/{row['id']}/outputs").json()
            assert len(outputs) == 1
            assert outputs[0]["output"]["from"] in ("the second", 2)
            living.stdin.close()
            assert living.wait(20) == 0
