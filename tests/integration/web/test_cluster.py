"""Nodes and usage (contract §31)."""

from __future__ import annotations

import os
import uuid

import pytest

from tests.integration.web.house import house, step


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def test_the_node_that_serves_is_shown_and_drains(tmp_path):
    with house(tmp_path / "s.db") as server:
        (node,) = server.get("/cluster/nodes", tenant="").json()
        assert (node["status"], node["drain"]) == ("active", False)
        assert node["name"].endswith(f":{os.getpid()}")
        assert node["registered_at"] <= node["last_heartbeat_at"]
        assert server.get("/health/ready", key="").status_code == 200
        unknown = server.post(f"/cluster/nodes/{uuid.uuid4()}/drain", tenant="")
        assert (unknown.status_code, unknown.json()["drain"]) == (200, False)
        assert server.get("/health/ready", key="").status_code == 200
        for _ in range(2):
            drained = server.post(f"/cluster/nodes/{node['id']}/drain", tenant="")
            assert (drained.status_code, drained.json()["drain"]) == (200, True)
        (node,) = server.get("/cluster/nodes", tenant="").json()
        assert (node["status"], node["drain"]) == ("draining", True)
        assert server.get("/health/ready", key="").status_code == 503
        assert server.get("/health/live", key="").status_code == 200
        assert server.settle(server.instance(server.sequence())) == "completed"
    with house(tmp_path / "s.db") as server:
        assert server.get("/health/ready", key="").status_code == 200
        (node,) = server.get("/cluster/nodes", tenant="").json()
        assert node["status"] == "active"


@pytest.mark.req("CORE-SCH-4")
def test_who_owns_which_partitions_is_shown(tmp_path):
    with house(tmp_path / "s.db") as server:
        server.settle(server.instance(server.sequence()))
        found = server.get("/cluster", tenant="").json()
        (node,) = found["nodes"]
        assert [each["partition"] for each in found["partitions"]] == list(range(16))
        assert {each["owner"] for each in found["partitions"]} == {node["id"]}
        assert all(0 < each["lease_left_ms"] <= 31_000 for each in found["partitions"])
        assert sum(each["turn"] for each in found["partitions"]) > 0


def test_what_a_tenant_has_used_is_counted(server, tenant):
    sequence = server.sequence(step("a"), step("b"), tenant=tenant)
    for _ in range(3):
        server.settle(server.instance(sequence, tenant=tenant))
    bad = server.sequence(step("bad", "fail"), tenant=tenant)
    server.settle(server.instance(bad, tenant=tenant))
    found = server.get("/usage", tenant=tenant).json()
    assert found["tenants"] == [
        {
            "tenant_id": tenant,
            "instances": 4,
            "completed": 3,
            "failed": 1,
            "cancelled": 0,
            "steps": 6,
            "effects": 0,
        }
    ]
    assert (found["has_more"], "next_cursor" in found) == (False, False)
    assert server.get("/usage", tenant="nobody").json()["tenants"] == []


@pytest.mark.parametrize(
    ("query", "status", "counted"),
    [
        ("from=2000-01-01T00:00:00Z&to=2001-01-01T00:00:00Z", 200, 0),
        ("from=2000-01-01T00:00:00Z", 200, 1),
        ("from=2000-01-01T00:00:00Z&to=2900-01-01T00:00:00Z", 200, 1),
        ("from=2800-01-01T00:00:00Z&to=2900-01-01T00:00:00Z", 200, 0),
        ("from=2001-01-01T00:00:00Z&to=2000-01-01T00:00:00Z", 400, 0),
        ("from=2001-01-01T00:00:00Z&to=2001-01-01T00:00:00Z", 400, 0),
        ("from=yesterday", 400, 0),
    ],
)
def test_a_period_holds_what_was_started_in_it(server, tenant, query, status, counted):
    server.settle(server.instance(server.sequence(tenant=tenant), tenant=tenant))
    answer = server.get(f"/usage?{query}", tenant=tenant)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert sum(row["instances"] for row in answer.json()["tenants"]) == counted


def test_a_count_goes_on_where_it_stopped(server, tenant, monkeypatch):
    monkeypatch.setattr("detent.service.usage._PAGE", 2)
    monkeypatch.setattr("detent.model.limits.USAGE_INSTANCES", 4)
    sequence = server.sequence(tenant=tenant)
    made = [server.instance(sequence, tenant=tenant) for _ in range(7)]
    for each in made:
        server.settle(each)
    counted, cursor, more = 0, 0, True
    while more:
        page = server.get(f"/usage?cursor={cursor}", tenant=tenant).json()
        counted += sum(row["instances"] for row in page["tenants"])
        cursor, more = page.get("next_cursor", 0), page["has_more"]
    assert counted == 7
