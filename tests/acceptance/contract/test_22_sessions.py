"""Sessions (contract §22); `tests/integration/web/test_sessions.py` has what joins them."""

from __future__ import annotations

import uuid

import pytest

pytestmark = pytest.mark.contract("22")

WAIT = {"type": "wait", "id": "w", "signal": "x"}


def made(server, tenant, **fields):
    return server.post(
        "/sessions", {"tenant_id": tenant, "session_key": "k", **fields}, tenant=tenant
    )


def test_a_session_has_every_field_and_is_active(server, tenant):
    answer = made(server, tenant, data={"a": 1}, expires_at="2099-01-01T00:00:00Z")
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert set(shown) == {
        "id",
        "tenant_id",
        "session_key",
        "data",
        "state",
        "created_at",
        "updated_at",
        "expires_at",
    }
    assert (shown["state"], shown["data"], shown["session_key"]) == ("active", {"a": 1}, "k")
    bare = made(server, tenant, session_key="other").json()
    assert "expires_at" not in bare or bare["expires_at"] is None
    assert bare["data"] in (None, {})


@pytest.mark.parametrize(("key", "status"), [("", 400), ("x" * 513, 400), ("x" * 512, 201)])
def test_a_key_has_one_to_512_characters(server, tenant, key, status):
    assert made(server, tenant, session_key=key).status_code == status


def test_a_key_is_a_tenants_own(server, tenant):
    assert made(server, tenant).status_code == 201
    assert made(server, tenant).status_code == 409
    assert made(server, f"{tenant}-2").status_code == 201


def test_it_is_found_by_id_and_by_key(server, tenant):
    one = made(server, tenant, session_key="a/b c").json()
    assert server.get(f"/sessions/{one['id']}", tenant=tenant).json() == one
    by_key = server.get(f"/sessions/by-key/{tenant}/a%2Fb%20c", tenant=tenant)
    assert by_key.json() == one
    assert server.get(f"/sessions/by-key/{tenant}/nobody", tenant=tenant).status_code == 404
    assert server.get(f"/sessions/{uuid.uuid4()}", tenant=tenant).status_code == 404
    foreign = server.get(f"/sessions/by-key/{tenant}/a%2Fb%20c", tenant="other")
    assert foreign.status_code == 404


@pytest.mark.parametrize("data", [{"b": 2}, None, [1], "x"])
def test_data_is_replaced(server, tenant, data):
    id = made(server, tenant, data={"a": 1}).json()["id"]
    answer = server.patch(f"/sessions/{id}/data", {"data": data}, tenant=tenant)
    assert (answer.status_code, answer.content) == (200, b"")
    assert server.get(f"/sessions/{id}", tenant=tenant).json()["data"] == data
    missing = server.patch(f"/sessions/{uuid.uuid4()}/data", {"data": 1}, tenant=tenant)
    assert missing.status_code == 404


def test_any_state_follows_any_other(server, tenant):
    id = made(server, tenant).json()["id"]
    for state in ("paused", "completed", "active", "expired", "paused", "active"):
        answer = server.patch(f"/sessions/{id}/state", {"state": state}, tenant=tenant)
        assert (answer.status_code, answer.content) == (200, b""), state
        assert server.get(f"/sessions/{id}", tenant=tenant).json()["state"] == state
    bad = server.patch(f"/sessions/{id}/state", {"state": "dancing"}, tenant=tenant)
    assert bad.status_code == 422


def test_instances_join_at_creation_and_pause_with_their_session(server, tenant):
    id = made(server, tenant).json()["id"]
    sequence = server.sequence(tenant=tenant)
    later = {"next_fire_at": "2099-01-01T00:00:00Z", "session_id": id}
    members = [server.instance(sequence, tenant=tenant, **later) for _ in range(2)]
    alone = server.instance(sequence, tenant=tenant, next_fire_at=later["next_fire_at"])
    listed = server.get(f"/sessions/{id}/instances", tenant=tenant).json()
    assert {row["id"] for row in listed} == set(members)
    assert {row["session_id"] for row in listed} == {id}
    server.patch(f"/sessions/{id}/state", {"state": "paused"}, tenant=tenant)
    states = [server.get(f"/instances/{m}", tenant=tenant).json()["state"] for m in members]
    assert states == ["paused", "paused"]
    other = server.get(f"/instances/{alone}", tenant=tenant).json()["state"]
    assert other == "scheduled"
    server.patch(f"/sessions/{id}/state", {"state": "active"}, tenant=tenant)
    states = [server.get(f"/instances/{m}", tenant=tenant).json()["state"] for m in members]
    assert states == ["scheduled", "scheduled"]


def test_data_that_is_too_large_is_413(server, tenant):
    answer = made(server, tenant, data="x" * 300_000)
    assert answer.status_code == 413
    assert answer.json()["error"].startswith("payload too large: ")
