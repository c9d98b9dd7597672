"""Routing rules over HTTP: they count at once, for the tenant that made them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.web.following import until
from tests.integration.web.house import house, step
from tests.integration.web.worker_calls import events, listed, polled, report, started

pytestmark = pytest.mark.req("SEQ-HND-3")

QUEUE = "/workers/tasks/poll/queue"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with house(tmp_path_factory.mktemp("web") / "s.db", workers=True) as made:
        yield made


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def test_a_rule_made_changed_and_removed_counts_from_then_on(server, tenant, job):
    def made():
        started(server, step("s", job), tenant=tenant)
        return listed_queues()

    def listed_queues():
        found = server.get("/workers/tasks", params={"handler_name": job}, tenant=tenant).json()
        return [task.get("queue_name") for task in reversed(found)]

    assert made() == [None]
    body = {"handler_name": job, "queue_override": "heavy", "tenant_id": tenant}
    rule = server.post("/routing-rules", body, tenant=tenant)
    assert rule.status_code == 201, rule.text
    assert rule.json()["queue_name"] == rule.json()["queue_override"] == "heavy"
    assert made() == [None, "heavy"]
    item = f"/routing-rules/{rule.json()['id']}"
    changed = server.put(item, body | {"queue_override": "cold"}, tenant=tenant)
    assert changed.json()["queue_name"] == "cold"
    assert made() == [None, "heavy", "cold"]
    assert server.delete(item, tenant=tenant).status_code == 204
    assert made() == [None, "heavy", "cold", None]


def test_who_waits_at_a_queue_is_woken_by_a_task_that_is_routed_there(server, job):
    body = {"handler_name": job, "queue_name": "heavy"}
    server.post("/routing-rules", body)
    bell = server.engine.work.bell
    with ThreadPoolExecutor(1) as pool:
        more = {"queue_name": "heavy", "path": QUEUE, "wait_secs": 20}
        polling = pool.submit(polled, server, job, **more)
        until(lambda: job in bell._ears)
        instance = started(server, step("s", job))
        (task,) = polling.result(20)
    assert (task["instance_id"], task["queue_name"]) == (instance, "heavy")
    assert report(server, task, "complete", output={"n": 1}).status_code == 200
    server.settle(instance)
    assert events(server, task) == ["routed", "claimed", "completed"]
    assert server.outputs(instance) == [("s", {"n": 1})]


def test_rules_are_found_by_handler_and_queue(server, tenant, job):
    other = f"{job}x"
    for handler, queue in ((job, "a"), (job, "b"), (other, "a")):
        body = {"handler_name": handler, "queue_name": queue}
        assert server.post("/routing-rules", body, tenant=tenant).status_code == 201

    def found(**query):
        rules = server.get("/routing-rules", params=query, tenant=tenant).json()
        return [(rule["handler_name"], rule["queue_name"]) for rule in rules]

    assert found(handler_name=job) == [(job, "a"), (job, "b")]
    assert found(queue_name="a") == [(job, "a"), (other, "a")]
    assert found(handler_name=job, limit=1) == [(job, "a")]
    assert found(handler_name=job, queue_name="c") == []
    assert len(found()) == 3


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"queue_override": "other"}, 400),
        ({"queue_name": ""}, 400),
        ({"match_queue": "x" * 256}, 400),
        ({"match_queue": 3}, 422),
        ({"priority": 2**31}, 400),
        ({"priority": "high"}, 422),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(server, tenant, job, change, status):
    body = {"handler_name": job, "queue_name": "q"} | change
    assert server.post("/routing-rules", body, tenant=tenant).status_code == status
    assert server.get("/routing-rules", tenant=tenant).json() == []
    assert listed(server, job) == []
