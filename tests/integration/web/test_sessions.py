"""Sessions over HTTP (contract §22): instances join them, and pause and resume with them."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from tests.integration.web.house import house, instance_body, step

pytestmark = pytest.mark.req("SEQ-OPS-1")
WAIT = {"type": "wait", "id": "w", "signal": "go"}


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def opened(server, tenant, key="alice", **fields):
    body = {"tenant_id": tenant, "session_key": key, **fields}
    made = server.post("/sessions", body, tenant=tenant)
    assert made.status_code == 201, made.text
    return made.json()


def test_a_session_is_opened_found_and_changed(server, tenant):
    made = opened(server, tenant, data={"n": 1}, expires_at="2100-01-01T01:00:00+01:00")
    assert (made["state"], made["data"]) == ("active", {"n": 1})
    assert made["expires_at"] == "2100-01-01T00:00:00Z"
    path = f"/sessions/{made['id']}"
    assert server.get(path, tenant=tenant).json() == made
    assert server.get(f"/sessions/by-key/{tenant}/alice", tenant=tenant).json() == made
    changed = server.patch(f"{path}/data", {"data": {"m": 2}}, tenant=tenant)
    assert (changed.status_code, changed.content) == (200, b"")
    assert server.get(path, tenant=tenant).json()["data"] == {"m": 2}
    for state in ("paused", "completed", "expired", "active"):
        moved = server.patch(f"{path}/state", {"state": state}, tenant=tenant)
        assert (moved.status_code, moved.content) == (200, b"")
        assert server.get(path, tenant=tenant).json()["state"] == state
    assert "expires_at" not in opened(server, tenant, "bob")


def test_a_key_is_one_in_its_tenant_and_free_in_another(server, tenant):
    opened(server, tenant)
    again = server.post("/sessions", {"tenant_id": tenant, "session_key": "alice"}, tenant=tenant)
    assert (again.status_code, again.json()["code"]) == (409, "session.exists")
    assert opened(server, tenant + "2")["tenant_id"] == tenant + "2"


@pytest.mark.parametrize("key", ["a/b", "with space", "ümlaut", "a%2Fb", "?", "x" * 512])
def test_a_key_of_any_text_is_found(server, tenant, key):
    made = opened(server, tenant, key)
    path = f"/sessions/by-key/{tenant}/{quote(key, safe='')}"
    assert server.get(path, tenant=tenant).json() == made


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (400, {"session_key": ""}),
        (400, {"session_key": "x" * 513}),
        (422, {"session_key": None}),
        (422, {"expires_at": "soon"}),
        (413, {"data": "x" * 262_144}),
        (403, {"tenant_id": "somebody-else"}),
    ],
)
def test_a_session_that_is_wrong_is_refused(server, tenant, status, fields):
    body = {"tenant_id": tenant, "session_key": "alice", **fields}
    assert server.post("/sessions", body, tenant=tenant).status_code == status
    assert server.post("/sessions", {"tenant_id": tenant}, tenant=tenant).status_code == 422
    assert server.get(f"/sessions/by-key/{tenant}/alice", tenant=tenant).status_code == 404


def test_another_tenants_session_is_not_there(server, tenant):
    made = opened(server, tenant)
    path = f"/sessions/{made['id']}"
    for answer in (
        server.get(path, tenant="other"),
        server.get(f"/sessions/by-key/{tenant}/alice", tenant="other"),
        server.get(f"{path}/instances", tenant="other"),
        server.patch(f"{path}/data", {"data": 1}, tenant="other"),
        server.patch(f"{path}/state", {"state": "paused"}, tenant="other"),
        server.get(f"/sessions/{uuid.uuid4()}", tenant=tenant),
    ):
        assert answer.status_code == 404
    assert server.patch(f"{path}/state", {"state": "asleep"}, tenant=tenant).status_code == 422
    assert server.get(path, tenant=tenant).json() == made


def test_an_instance_joins_at_its_start_with_what_it_starts_itself(server, tenant):
    session = opened(server, tenant)["id"]
    child = server.sequence(step("c"), tenant=tenant, name=f"child-{uuid.uuid4().hex}")
    name = server.get(f"/sequences/{child}", tenant=tenant).json()["name"]
    sub = {"type": "sub_sequence", "id": "sub", "sequence_name": name}
    parent = server.instance(server.sequence(sub, tenant=tenant), tenant=tenant, session_id=session)
    server.settle(parent)
    alone = server.instance(child, tenant=tenant)
    shown = server.get(f"/instances/{parent}", tenant=tenant).json()
    assert shown["session_id"] == session
    assert "session_id" not in server.get(f"/instances/{alone}", tenant=tenant).json()
    found = server.get(f"/sessions/{session}/instances", tenant=tenant).json()
    assert found[0]["id"] == parent
    assert [each.get("parent_instance_id") for each in found] == [None, parent]
    assert {each["session_id"] for each in found} == {session}
    page = server.get(f"/sessions/{session}/instances?offset=1&limit=1", tenant=tenant).json()
    assert page == found[1:]
    wrong = server.get(f"/sessions/{session}/instances?limit=0", tenant=tenant)
    assert wrong.status_code == 400


def test_a_session_that_is_closed_unknown_or_anothers_takes_nobody(server, tenant):
    sequence = server.sequence(tenant=tenant)
    session = opened(server, tenant)["id"]
    foreign = opened(server, "other-" + tenant)["id"]

    def start(session):
        body = instance_body(sequence, tenant_id=tenant, session_id=session)
        return server.post("/instances", body, tenant=tenant)

    assert start("no-id").status_code == 422
    for missing in (foreign, str(uuid.uuid4())):
        answer = start(missing)
        assert (answer.status_code, answer.json()["code"]) == (404, "session.not_found")
    server.patch(f"/sessions/{session}/state", {"state": "completed"}, tenant=tenant)
    answer = start(session)
    assert (answer.status_code, answer.json()["code"]) == (409, "session.closed")
    assert server.get("/instances", tenant=tenant).json()["items"] == []


def test_a_known_key_gives_its_instance_and_moves_it_into_no_session(server, tenant):
    sequence = server.sequence(tenant=tenant)
    first = server.instance(sequence, tenant=tenant, idempotency_key="k")
    session = opened(server, tenant)["id"]
    again = server.instance(sequence, tenant=tenant, idempotency_key="k", session_id=session)
    assert again == first
    assert "session_id" not in server.get(f"/instances/{first}", tenant=tenant).json()
    assert server.get(f"/sessions/{session}/instances", tenant=tenant).json() == []


def test_a_batch_joins_too(server, tenant):
    sequence = server.sequence(tenant=tenant)
    session = opened(server, tenant)["id"]
    item = instance_body(sequence, tenant_id=tenant, session_id=session)
    made = server.post("/instances/batch", {"instances": [item, item]}, tenant=tenant)
    assert made.json() == {"count": 2}
    assert len(server.get(f"/sessions/{session}/instances", tenant=tenant).json()) == 2
    wrong = {"instances": [item, {**item, "session_id": str(uuid.uuid4())}]}
    assert server.post("/instances/batch", wrong, tenant=tenant).status_code == 404
    assert len(server.get(f"/sessions/{session}/instances", tenant=tenant).json()) == 2


def test_pausing_a_session_pauses_its_instances_and_activating_resumes_just_those(server, tenant):
    sequence = server.sequence(WAIT, tenant=tenant)
    session = opened(server, tenant)["id"]
    later = {"tenant": tenant, "next_fire_at": "2040-01-01T00:00:00Z"}
    inside = [server.instance(sequence, **later, session_id=session) for _ in range(3)]
    outside = server.instance(sequence, **later)
    waiting = server.instance(sequence, tenant=tenant, session_id=session)
    server.settle(waiting, "waiting")
    server.engine.pause(inside[2])

    def states():
        found = [server.get(f"/instances/{each}", tenant=tenant).json() for each in inside]
        return [each["state"] for each in found]

    def held():
        found = server.get(f"/instances/{waiting}", tenant=tenant).json()
        return found["state"], found.get("pause_requested", False)

    assert states() == ["scheduled", "scheduled", "paused"]
    path = f"/sessions/{session}/state"
    for _ in range(2):  # told twice is told once
        assert server.patch(path, {"state": "paused"}, tenant=tenant).status_code == 200
        assert states() == ["paused"] * 3
        assert held() == ("waiting", True)  # a wait keeps its pause until it ends
    assert server.get(f"/instances/{outside}", tenant=tenant).json()["state"] == "scheduled"
    assert server.patch(path, {"state": "active"}, tenant=tenant).status_code == 200
    assert states() == ["scheduled", "scheduled", "paused"]
    assert held() == ("waiting", False)
    signal = {"signal_type": {"custom": "go"}}
    sent = server.post(f"/instances/{waiting}/signals", signal, tenant=tenant)
    assert sent.status_code == 201
    assert server.settle(waiting) == "completed"
    assert server.patch(path, {"state": "paused"}, tenant=tenant).status_code == 200
    assert held() == ("completed", False)


def test_an_instance_that_starts_while_its_session_is_paused_is_paused_too(tmp_path):
    reached, go = threading.Event(), threading.Event()
    with house(tmp_path / "s.db") as server, ThreadPoolExecutor(1) as pool:
        sequence, session = server.sequence(), opened(server, "acme")["id"]
        parts = server.engine._parts
        submit = parts.submit

        def slow(*items):
            if any(getattr(item, "birth", None) is not None for item in items):
                reached.set()
                threading.Thread(target=lambda: (go.wait(20), submit(*items))).start()
            else:
                submit(*items)

        parts.submit = slow
        later = {"next_fire_at": "2040-01-01T00:00:00Z", "session_id": session}
        start = pool.submit(server.instance, sequence, **later)
        assert reached.wait(20)
        moved = server.patch(f"/sessions/{session}/state", {"state": "paused"})
        assert moved.status_code == 200
        go.set()
        assert server.get(f"/instances/{start.result()}").json()["state"] == "paused"
        server.patch(f"/sessions/{session}/state", {"state": "active"})
        assert server.get(f"/instances/{start.result()}").json()["state"] == "scheduled"
