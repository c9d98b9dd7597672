"""What an operator says about workers: rules, pins, push targets, commands (contract §31)."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.service.holds import VersionPin
from detent.service.work import PollRequest, poll
from detent.web.api.settings import ApiSettings
from tests.integration.web.following import until
from tests.integration.web.house import ROOT, house, step

CRUNCH = step("s", "crunch", queue_name="heavy")
RECORDS = {
    "/routing-rules": ({"handler_name": "h", "queue_name": "q"}, {"queue_name": "other"}),
    "/workers/version-pins": ({"handler_name": "h", "version": "1"}, {"version": "2"}),
    "/queues/dispatch": (
        {"queue_name": "q", "url": "https://example.com/push"},
        {"url": "https://example.org/"},
    ),
}


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


@pytest.mark.parametrize("path", RECORDS)
def test_a_record_is_made_listed_shown_changed_and_removed(server, tenant, path):
    body, change = RECORDS[path]
    made = server.post(path, body, tenant=tenant)
    assert made.status_code == 201, made.text
    assert made.json().items() >= (body | {"tenant_id": tenant}).items()
    item = f"{path}/{made.json()['id']}"
    assert server.get(path, tenant=tenant).json() == [made.json()]
    assert server.get(item, tenant=tenant).json() == made.json()
    changed = server.put(item, body | change, tenant=tenant)
    assert changed.status_code == 200, changed.text
    assert changed.json().items() >= change.items()
    assert server.get(item, tenant="other").status_code == 404
    assert server.put(item, body, tenant="other").status_code == 404
    assert server.delete(item, tenant="other").status_code == 404
    assert server.get(path, tenant="other").json() == []
    assert server.delete(item, tenant=tenant).status_code == 204
    assert server.get(item, tenant=tenant).status_code == 404
    assert server.delete(item, tenant=tenant).status_code == 404


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [
        ("/routing-rules", {"handler_name": ""}, 400),
        ("/routing-rules", {"queue_name": "x" * 256}, 400),
        ("/routing-rules", {"queue_name": None}, 422),
        ("/routing-rules", {"tenant_id": "other"}, 403),
        ("/workers/version-pins", {"version": ""}, 400),
        ("/workers/version-pins", {"min_version": "2"}, 400),
        ("/workers/version-pins", {"handler_name": 3}, 422),
        ("/queues/dispatch", {"url": "ftp://example.com"}, 400),
        ("/queues/dispatch", {"url": "http://127.0.0.1/"}, 400),
        ("/queues/dispatch", {"queue_name": ""}, 400),
    ],
)
def test_a_record_that_means_nothing_is_refused(server, tenant, path, change, status):
    assert server.post(path, RECORDS[path][0] | change, tenant=tenant).status_code == status
    assert server.get(path, tenant=tenant).json() == []


@pytest.mark.parametrize("path", ["/workers/version-pins", "/queues/dispatch"])
def test_there_is_one_for_each_thing(server, tenant, path):
    body, _change = RECORDS[path]
    made = server.post(path, body, tenant=tenant).json()
    again = server.post(path, body, tenant=tenant)
    assert (again.status_code, again.json()["code"]) == (409, "record.exists")
    assert server.post(path, body, tenant=f"{tenant}x").status_code == 201
    key = "handler_name" if "pins" in path else "queue_name"
    moved = server.put(f"{path}/{made['id']}", body | {key: "new"}, tenant=tenant)
    assert moved.status_code == 400
    assert server.get(path, tenant=tenant).json() == [made]


def test_a_command_is_told_listed_heard_and_removed(server, tenant):
    body = {"worker_id": "w1", "command": "reload", "payload": {"a": 1}}
    made = server.post("/workers/commands", body, tenant=tenant).json()
    server.post("/workers/commands", body | {"worker_id": "w2"}, tenant=tenant)
    assert made["acknowledged"] is False
    listed = server.get("/workers/commands?worker_id=w1", tenant=tenant).json()
    assert listed == [made]
    heard = server.post(f"/workers/commands/{made['id']}/ack", tenant=tenant)
    assert heard.json()["acknowledged"] is True
    for path in (f"/workers/commands/{made['id']}/ack", f"/workers/commands/{uuid.uuid4()}/ack"):
        assert server.post(path, tenant="other").status_code == 404
    assert server.delete(f"/workers/commands/{made['id']}", tenant="other").status_code == 404
    assert server.delete(f"/workers/commands/{made['id']}", tenant=tenant).status_code == 204
    assert len(server.get("/workers/commands", tenant=tenant).json()) == 1
    for bad, status in (({"worker_id": ""}, 400), ({"command": ""}, 400), ({"command": 1}, 422)):
        assert server.post("/workers/commands", body | bad, tenant=tenant).status_code == status


def given(server, tenant, version=None, worker="w1", **more):
    """What a worker is given."""
    more = {"handler": "crunch", **more}
    request = PollRequest(worker=worker, version=version, tenant=tenant, **more)
    parts = server.engine._parts
    return parts.write(lambda store: poll(store, request, parts.now_ms())).tasks


def waiting(server, job, *tenants):
    """One instance of each tenant, that stands at its worker."""
    made = []
    for tenant in tenants:
        steps = step("s", job, queue_name="heavy")
        made.append(server.instance(server.sequence(steps, tenant=tenant), tenant=tenant))
        server.settle(made[-1], "waiting")
    return made


@pytest.mark.req("SEQ-HND-3")
def test_a_pinned_handler_is_given_to_workers_of_that_version_only(server, tenant):
    instance = server.instance(server.sequence(CRUNCH, tenant=tenant), tenant=tenant)
    server.settle(instance, "waiting")
    pin = {"handler_name": "crunch", "version": "2"}
    made = server.post("/workers/version-pins", pin, tenant=tenant).json()
    assert given(server, tenant) == ()
    assert given(server, tenant, version="1") == ()
    (task,) = given(server, tenant, version="2")
    assert task.instance == instance
    other = server.instance(server.sequence(CRUNCH, tenant=tenant), tenant=tenant)
    server.settle(other, "waiting")
    server.delete(f"/workers/version-pins/{made['id']}", tenant=tenant)
    assert [each.instance for each in given(server, tenant, version="1")] == [other]


@pytest.mark.req("SEQ-HND-3")
def test_a_worker_that_drains_is_given_nothing_until_it_resumes(server, tenant):
    instance = server.instance(server.sequence(CRUNCH, tenant=tenant), tenant=tenant)
    server.settle(instance, "waiting")
    for command in ("drain", "drain"):
        body = {"worker_id": "w1", "command": command}
        assert server.post("/workers/commands", body, tenant=tenant).status_code == 201
    server.post("/workers/commands", {"worker_id": "w2", "command": "drain"}, tenant="other")
    assert given(server, tenant) == ()
    body = {"worker_id": "w1", "command": "resume"}
    assert server.post("/workers/commands", body, tenant=tenant).status_code == 201
    assert [each.instance for each in given(server, tenant)] == [instance]


@pytest.mark.req("SEQ-HND-3")
@pytest.mark.parametrize("queue", [None, "heavy"])
def test_a_pin_holds_for_a_worker_that_polls_for_all_tenants(server, tenant, job, queue):
    other = f"{tenant}x"
    _pinned, free = waiting(server, job, tenant, other)
    pin = {"handler_name": job, "version": "2"}
    made = server.post("/workers/version-pins", pin, tenant=tenant).json()
    asked = {"handler": job, "queue": queue, "limit": 9}
    assert [each.instance for each in given(server, None, version="1", **asked)] == [free]
    assert given(server, None, **asked) == ()
    (task,) = given(server, None, version="2", **asked)
    assert task.tenant == tenant
    (again,) = waiting(server, job, tenant)
    assert given(server, None, version="1", **asked) == ()
    server.delete(f"/workers/version-pins/{made['id']}", tenant=tenant)
    assert [each.instance for each in given(server, None, version="1", **asked)] == [again]


@pytest.mark.req("SEQ-HND-3")
def test_a_drain_of_a_tenant_holds_for_a_worker_that_polls_for_all(server, tenant, job):
    other = f"{tenant}x"
    _mine, theirs, third = waiting(server, job, tenant, other, f"{tenant}y")
    worker = f"w-{job}"
    body = {"worker_id": worker, "command": "drain"}
    server.post("/workers/commands", body, tenant=tenant)
    asked = {"handler": job, "worker": worker}
    assert [each.instance for each in given(server, None, **asked)] == [theirs]
    assert [each.instance for each in given(server, None, **asked)] == [third]
    assert given(server, None, **asked) == ()
    server.post("/workers/commands", body | {"command": "resume"}, tenant=other)
    assert given(server, None, **asked) == (), "another tenant has no say in it"
    server.post("/workers/commands", body | {"command": "resume"}, tenant=tenant)
    assert len(given(server, None, **asked)) == 1


@pytest.mark.req("SEQ-HND-3")
def test_the_operator_lets_a_worker_drain_for_everybody(tmp_path, job):
    api = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=api) as server:
        waiting(server, job, "acme", "beta")
        poll = {"handler_name": job, "worker_id": "w", "limit": 9}
        body = {"worker_id": "w", "command": "drain"}
        assert server.post("/workers/commands", body, tenant="").status_code == 201
        for tenant in ("", "acme", "beta"):
            assert server.post("/workers/tasks/poll", poll, tenant=tenant).json() == []
        resume = body | {"command": "resume"}
        server.post("/workers/commands", resume, tenant="acme")
        assert server.post("/workers/tasks/poll", poll, tenant="acme").json() == []
        server.post("/workers/commands", resume, tenant="")
        assert len(server.post("/workers/tasks/poll", poll, tenant="").json()) == 2


@pytest.mark.req("SEQ-HND-3")
@pytest.mark.parametrize(
    ("least", "given_to", "not_to"),
    [
        (
            "1.10",
            ("1.10", "1.10.0", "v1.11", "2", "2.0-rc1"),
            ("1.9.9", "1.10-rc1", "1", "x", None),
        ),
        ("blue", ("blue",), ("green", "2", None)),
    ],
)
def test_a_pin_may_name_the_least_version(least, given_to, not_to):
    pin = VersionPin(handler_name="h", min_version=least)
    assert all(pin.fits(version) for version in given_to)
    assert not any(pin.fits(version) for version in not_to)


@pytest.mark.req("SEQ-HND-3")
def test_a_worker_that_waits_is_given_its_task_when_the_pin_goes(server, tenant, job):
    """The poll waits while the handler is pinned; nobody adds a task, only the pin is removed."""
    (instance,) = waiting(server, job, tenant)
    pin = {"handler_name": job, "version": "2"}
    made = server.post("/workers/version-pins", pin, tenant=tenant).json()
    body = {"handler_name": job, "worker_id": "w", "version": "1", "wait_secs": 20}
    bell = server.engine.work.bell
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(server.post, "/workers/tasks/poll", body, tenant=tenant)
        until(lambda: any(ear.deaf for ear in bell._ears.get(job, ())))
        server.delete(f"/workers/version-pins/{made['id']}", tenant=tenant)
        (task,) = polling.result(20).json()
    assert task["instance_id"] == instance
