"""Tasks, histories, figures, workers and handlers, as they are shown (contract §17)."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from tests.integration.web.house import house, step
from tests.integration.web.worker_calls import listed, polled, report, started

pytestmark = pytest.mark.req("SEQ-HND-3")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with house(tmp_path_factory.mktemp("views") / "s.db", workers=True) as made:
        yield made


def test_tasks_are_listed_newest_first_by_any_filter(server, job):
    sequence = server.sequence(step("a", job, queue_name="q1"))
    made = [server.instance(sequence) for _ in range(4)]
    for each in made:
        server.settle(each, "waiting")
    tasks = polled(server, job, limit=2)
    report(server, tasks[0], "complete", output={})
    assert [each["instance_id"] for each in listed(server, job)] == made[::-1]
    states = [each["state"] for each in listed(server, job, state="claimed,completed")]
    assert states == ["claimed", "completed"]
    assert len(listed(server, job, state="pending", limit=1)) == 1
    assert [each["instance_id"] for each in listed(server, job, offset=3)] == made[:1]
    assert len(listed(server, job, worker_id="w1")) == 2
    assert len(listed(server, job, queue_name="q1")) == 4
    assert listed(server, job, queue_name="q2") == []
    for wrong in ({"state": "dancing"}, {"limit": 0}, {"limit": "x"}, {"offset": -1}):
        assert server.get("/workers/tasks", params=wrong).status_code == 400


def test_figures_say_how_many_are_where_and_who_holds_some(server, job):
    tenant = f"t{uuid.uuid4().hex}"
    assert server.get("/workers/tasks/stats", tenant=tenant).json() == {
        "by_state": {},
        "by_handler": {},
        "active_workers": [],
    }
    for _ in range(3):
        started(server, step("a", job), tenant=tenant)
    done, _held = polled(server, job, limit=2, tenant=tenant)
    report(server, done, "complete", output={}, tenant=tenant)
    counted = {"pending": 1, "claimed": 1, "completed": 1}
    assert server.get("/workers/tasks/stats", tenant=tenant).json() == {
        "by_state": counted,
        "by_handler": {job: counted},
        "active_workers": ["w1"],
    }


def test_a_history_has_ids_instants_and_reasons(server, job):
    started(server, step("a", job))
    (task,) = polled(server, job)
    report(server, task, "fail", message="no such card")
    claimed, failed = server.get(f"/workers/tasks/{task['id']}/attempts").json()
    fields = {"id", "task_id", "claim_epoch", "worker_id", "event", "created_at"}
    assert set(claimed) == fields
    assert set(failed) == fields | {"reason"}
    assert failed["reason"] == "no such card"
    assert claimed["task_id"] == task["id"]
    assert str(uuid.UUID(claimed["id"])) != failed["id"]
    path = f"/workers/tasks/{task['id']}/attempts"
    assert len(server.get(path, params={"limit": 1}).json()) == 1
    assert server.get(path, params={"limit": 0}).status_code == 400
    assert server.get(path, tenant="other").status_code == 404
    assert server.get(f"/workers/tasks/{uuid.uuid4()}/attempts").status_code == 404


def test_workers_are_listed_by_what_they_poll_for(server, job):
    tenant = f"t{uuid.uuid4().hex}"
    started(server, step("a", job, queue_name="q1"), tenant=tenant)
    polled(server, job, "w1", tenant=tenant, version="1.2")
    path = "/workers/tasks/poll/queue"
    polled(server, job, "w2", tenant=tenant, path=path, queue_name="q1")
    first, second = server.get("/workers", tenant=tenant).json()
    seen = first.pop("last_seen_at")
    assert dt.datetime.fromisoformat(seen).tzinfo is not None
    assert first == {
        "worker_id": "w1",
        "handlers": [job],
        "queues": [],
        "version": "1.2",
        "alive": True,
        "in_flight": 1,
    }
    assert (second["worker_id"], second["queues"]) == ("w2", ["q1"])
    assert (second["version"], second["in_flight"]) == (None, 0)
    assert server.get("/workers", tenant=f"t{uuid.uuid4().hex}").json() == []
    both = server.get(
        "/workers", tenant=tenant, params={"alive_within_secs": 0, "include_stale": "true"}
    )
    assert len(both.json()) == 2
    for wrong in ({"alive_within_secs": -1}, {"alive_within_secs": "x"}, {"include_stale": "x"}):
        assert server.get("/workers", params=wrong).status_code == 400


def test_handlers_are_the_engine_s_own_and_those_of_workers(server, job):
    tenant = f"t{uuid.uuid4().hex}"
    known = server.get("/handlers", tenant=tenant).json()
    assert set(known) == {"builtin", "external"}
    assert {"noop", "sleep", "log", "http_request"} <= set(known["builtin"])
    assert "*" not in known["builtin"]
    assert known["external"] == []
    polled(server, job, tenant=tenant)
    assert server.get("/handlers", tenant=tenant).json()["external"] == [job]
    assert job not in server.get("/handlers").json()["external"]


def test_tenants_are_apart(server, job):
    instance = started(server, step("a", job))
    assert polled(server, job, tenant="other") == []
    assert server.get("/workers/tasks", tenant="other", params={"tenant_id": "acme"}).json() == []
    (task,) = polled(server, job)
    assert task["instance_id"] == instance
    foreign = server.get("/workers/tasks", tenant="other", params={"handler_name": job})
    assert foreign.json() == []


def test_what_workers_wrote_down_is_among_the_logs_of_the_instance(server, job):
    says = step("says", "log", params={"message": "begun"})
    instance = started(
        server, says, step("a", job), step("ends", "log", params={"message": "over"})
    )
    (task,) = polled(server, job)
    lines = [
        {"ts": "2000-01-01T00:00:00Z", "level": "warn", "message": "long ago"},
        {"ts": "9999-01-01T00:00:00+02:00", "message": "in the future"},
        {"message": "who knows when"},
    ]
    assert report(server, task, "complete", output={}, logs=lines).status_code == 200
    server.settle(instance)
    found = server.get(f"/instances/{instance}/logs").json()
    assert [(line["block_id"], line["message"]) for line in found] == [
        ("a", "long ago"),
        ("says", "begun"),
        ("ends", "over"),
        ("a", "in the future"),
        ("a", "who knows when"),
    ]
    assert found[0] == {
        "block_id": "a",
        "ts": "2000-01-01T00:00:00Z",
        "level": "warn",
        "message": "long ago",
    }
    assert server.get(f"/instances/{instance}/logs", tenant="other").status_code == 404
