"""Limits, pools and schedules over HTTP (contract §18, §23, §24)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


@pytest.mark.req("SEQ-LIM-1")
def test_a_limit_is_set_shown_closed_opened_and_removed(server, tenant):
    path = "/rate-limits/mail%3Abox"
    made = server.put(path, {"max_count": 1, "window_seconds": 3600}, tenant=tenant)
    assert made.status_code == 200, made.text
    assert (made.json()["key"], made.json()["window_ms"]) == ("mail:box", 3_600_000)
    sequence = server.sequence(step("s", "http_like", rate_limit_key="x"), tenant=tenant)
    assert sequence
    closed = server.post(f"{path}/close", {"for_seconds": 60}, tenant=tenant)
    assert closed.json()["closed_until"] is not None
    assert server.post(f"{path}/open", tenant=tenant).json()["closed_until"] is None
    assert [row["key"] for row in server.get("/rate-limits", tenant=tenant).json()] == ["mail:box"]
    assert server.get("/rate-limits", tenant="other").json() == []
    assert server.delete(path, tenant=tenant).status_code == 204
    assert server.get(path, tenant=tenant).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"max_count": 0, "window_seconds": 1},
        {"max_count": 1, "window_seconds": 0},
        {"max_count": 1, "window_seconds": -5},
        {"max_count": 1},
        {"max_count": 1, "window_seconds": 1, "window_ms": 1000},
    ],
)
def test_a_limit_that_means_nothing_is_refused(server, tenant, body):
    assert server.put("/rate-limits/k", body, tenant=tenant).status_code == 400
    assert server.get("/rate-limits", tenant=tenant).json() == []


@pytest.mark.req("SEQ-LIM-2", "SEQ-LIM-3")
def test_a_pool_and_its_resources_are_made_changed_and_removed(server, tenant):
    pool = server.post("/pools", {"name": "boxes", "tenant_id": tenant}, tenant=tenant)
    assert pool.status_code == 201, pool.text
    assert pool.json()["strategy"] == "round_robin"
    assert server.post("/pools", {"name": "boxes"}, tenant=tenant).status_code == 409
    path = f"/pools/{pool.json()['id']}"
    resources = f"{path}/resources"
    body = {"resource_key": "a@x", "name": "A", "daily_cap": 40, "warmup_days": 10}
    first = server.post(resources, body, tenant=tenant)
    again = server.post(resources, body, tenant=tenant)
    assert (first.status_code, again.status_code) == (201, 201), first.text
    assert first.json()["id"] != again.json()["id"]
    change = server.put(f"{resources}/{first.json()['id']}", {"weight": 3}, tenant=tenant)
    assert (change.json()["weight"], change.json()["daily_cap"]) == (3, 40)
    assert server.post(resources, body | {"weight": 0}, tenant=tenant).status_code == 400
    assert len(server.get(resources, tenant=tenant).json()) == 2
    gone = f"{resources}/{again.json()['id']}"
    assert server.delete(gone, tenant=tenant).status_code == 204
    assert server.delete(gone, tenant=tenant).status_code == 204
    assert server.get(path, tenant="other").status_code == 404
    assert server.delete(path, tenant=tenant).status_code == 204
    assert server.get(path, tenant=tenant).status_code == 404


@pytest.mark.req("SEQ-TIM-3")
def test_a_schedule_is_made_shown_changed_and_ended(server, tenant):
    sequence = server.sequence(tenant=tenant)
    body = {
        "tenant_id": tenant,
        "namespace": "default",
        "sequence_id": sequence,
        "cron_expr": "0 0 9 * * MON-FRI *",
        "timezone": "Europe/Berlin",
    }
    made = server.post("/cron", body, tenant=tenant)
    assert made.status_code == 201, made.text
    assert made.json()["next_fire_at"]
    path = f"/cron/{made.json()['id']}"
    shown = server.get(path, tenant=tenant).json()
    assert (shown["cron_expr"], shown["sequence_id"]) == (body["cron_expr"], sequence)
    fires = server.get(f"{path}/next-fires?n=3", tenant=tenant).json()
    assert (fires["timezone"], len(fires["fires"])) == ("Europe/Berlin", 3)
    changed = server.put(path, {"cron_expr": "0 0 * * *", "enabled": False}, tenant=tenant).json()
    assert (changed["cron_expr"], changed["enabled"]) == ("0 0 * * *", False)
    assert server.get(path, tenant="other").status_code == 404
    assert server.put(path, {"enabled": True}, tenant="other").status_code == 404
    assert server.delete(path, tenant="other").status_code == 404
    assert [row["id"] for row in server.get("/cron", tenant=tenant).json()] == [shown["id"]]
    assert server.delete(path, tenant=tenant).status_code == 204
    assert server.get(path, tenant=tenant).status_code == 404
    for change in ({"cron_expr": "no"}, {"timezone": "Mars/X"}):
        assert server.post("/cron", body | change, tenant=tenant).status_code == 400
    unknown = body | {"sequence_id": str(uuid.uuid4())}
    assert server.post("/cron", unknown, tenant=tenant).status_code == 404
    assert server.post("/cron", body | {"tenant_id": "o"}, tenant="o").status_code == 403
