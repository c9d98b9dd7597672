"""Circuit breakers over HTTP (contract §25)."""

from __future__ import annotations

import uuid

import pytest

import detent
from tests.integration.web.house import house, step

BROKEN = {"down": True}


@detent.handler("pay")
async def pay():
    if BROKEN["down"]:
        raise detent.Failed("down", retryable=False)
    return {"paid": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("breakers") / "s.db"
    with house(path, [pay]) as made:
        yield made


@pytest.fixture
def tenant():
    BROKEN["down"] = True
    return f"t{uuid.uuid4().hex}"


def orders(server, tenant, count):
    """Instances that fail, one after the other."""
    sequence = server.sequence(step("pay", "pay"), tenant=tenant)
    for _ in range(count):
        server.settle(server.instance(sequence, tenant=tenant), "failed")
    return sequence


@pytest.mark.req("SEQ-HND-5")
def test_a_fresh_tenant_has_none_and_one_that_never_failed_is_not_found(server, tenant):
    path = f"/tenants/{tenant}/circuit-breakers"
    assert server.get(path, tenant=tenant).json() == []
    missing = server.get(f"{path}/pay", tenant=tenant)
    assert (missing.status_code, missing.json()["code"]) == (404, "breaker.unknown")


@pytest.mark.req("SEQ-HND-5")
def test_one_failure_is_counted_and_five_open(server, tenant):
    path = f"/tenants/{tenant}/circuit-breakers"
    orders(server, tenant, 1)
    assert server.get(f"{path}/pay", tenant=tenant).json() == {
        "tenant_id": tenant,
        "handler": "pay",
        "state": "closed",
        "failure_count": 1,
        "failure_threshold": 5,
        "cooldown_secs": 60,
        "opened_at": None,
        "next_call_at": None,
    }
    sequence = orders(server, tenant, 4)
    shown = server.get(f"/api/v1{path}/pay", tenant=tenant).json()
    assert (shown["state"], shown["failure_count"]) == ("open", 5)
    assert shown["opened_at"] < shown["next_call_at"]
    waiting = server.instance(sequence, tenant=tenant)
    server.settle(waiting, "scheduled")

    BROKEN["down"] = False
    reset = server.post(f"{path}/pay/reset", tenant=tenant)
    assert (reset.status_code, reset.json()["state"]) == (200, "closed")
    server.settle(waiting, "completed")
    shown = server.get(f"{path}/pay", tenant=tenant).json()
    assert (shown["state"], shown["failure_count"], shown["opened_at"]) == ("closed", 0, None)


@pytest.mark.req("SEQ-HND-5")
def test_a_reset_is_always_fine_and_makes_no_entry(server, tenant):
    path = f"/tenants/{tenant}/circuit-breakers"
    for _ in range(2):
        assert server.post(f"{path}/never/reset", tenant=tenant).status_code == 200
    assert server.get(path, tenant=tenant).json() == []


@pytest.mark.req("SEQ-HND-5")
def test_the_operator_sees_all_tenants_and_a_tenant_only_itself(server, tenant):
    other = f"o{tenant}"
    orders(server, tenant, 1)
    orders(server, other, 2)
    rows = server.get("/circuit-breakers", tenant=None).json()
    seen = {row["tenant_id"]: row["failure_count"] for row in rows}
    assert (seen[tenant], seen[other]) == (1, 2)
    own = server.get("/circuit-breakers", tenant=tenant).json()
    assert [row["tenant_id"] for row in own] == [tenant]
    path = f"/tenants/{other}/circuit-breakers"
    assert len(server.get(path, tenant=None).json()) == 1
    for method, place in (("GET", path), ("GET", f"{path}/pay"), ("POST", f"{path}/pay/reset")):
        assert server.call(method, place, tenant=tenant).status_code == 404
    assert server.get(f"{path}/pay", tenant=other).json()["failure_count"] == 2
    assert server.get(path, tenant=None, key="").status_code == 401
