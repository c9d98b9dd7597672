"""Rate limits, priorities and concurrency (contract §24 and the opening list)."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from tests.integration.web.following import until
from tests.integration.web.house import instance_body, step

pytestmark = pytest.mark.contract("24")

LATER = "2099-01-01T00:00:00Z"


def limit(server, tenant, key="mail", **fields):
    body = {"max_count": 2, "window_seconds": 1, **fields}
    return server.put(f"/rate-limits/{key}", body, tenant=tenant)


def limited(server, tenant, key="mail", wrap=False):
    block = step("s", rate_limit_key=key)
    if wrap:
        block = {"type": "parallel", "id": "p", "branches": [[block]]}
    return server.sequence(block, tenant=tenant)


def state(server, tenant, id):
    return server.get(f"/instances/{id}", tenant=tenant).json()


# rate limits -------------------------------------------------------------------------------------


def test_limits_are_made_read_and_removed_over_the_api(server, tenant):
    answer = limit(server, tenant, window_seconds=60)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert (made["key"], made["max_count"], made["window_seconds"]) == ("mail", 2, 60)
    assert made["tenant_id"] == tenant
    assert [each["key"] for each in server.get("/rate-limits", tenant=tenant).json()] == ["mail"]
    assert server.get("/rate-limits/mail", tenant=tenant).json()["max_count"] == 2
    assert server.get("/rate-limits/mail", tenant="other").status_code == 404
    assert limit(server, tenant, max_count=5).json()["max_count"] == 5
    assert server.delete("/rate-limits/mail", tenant=tenant).status_code == 204
    assert server.get("/rate-limits/mail", tenant=tenant).status_code == 404
    for bad in ({"max_count": 0}, {"window_seconds": 0}, {"window_seconds": -1}):
        assert limit(server, tenant, **bad).status_code == 400


@pytest.mark.parametrize("wrap", [False, True])
def test_what_is_over_a_limit_is_deferred_and_nothing_is_dropped(server, tenant, wrap):
    limit(server, tenant)
    sequence = limited(server, tenant, wrap=wrap)
    begun = time.monotonic()
    made = [server.instance(sequence, tenant=tenant) for _ in range(5)]
    assert {server.settle(id) for id in made} == {"completed"}
    assert time.monotonic() - begun >= 1.9  # two windows must have passed for the fifth


def test_who_waits_is_scheduled_for_the_next_free_slot(server, tenant):
    limit(server, tenant, window_seconds=600)
    sequence = limited(server, tenant)
    made = [server.instance(sequence, tenant=tenant) for _ in range(3)]
    for id in made[:2]:
        assert server.settle(id) == "completed"
    until(lambda: (state(server, tenant, made[2])["next_fire_at"] or "") > soon(500))
    shown = state(server, tenant, made[2])
    assert (shown["state"], shown["next_fire_at"] < soon(601)) == ("scheduled", True)
    assert server.get("/rate-limits/mail", tenant=tenant).json()["used"] == 2


def soon(seconds):
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat()


def test_a_key_is_closed_until_an_instant_and_opened_again(server, tenant):
    limit(server, tenant, max_count=100)
    body = {"closed_until": LATER}
    closed = server.post("/rate-limits/mail/close", body, tenant=tenant)
    assert closed.json()["closed_until"].startswith("2099")
    waits = server.instance(limited(server, tenant), tenant=tenant)
    until(lambda: (state(server, tenant, waits)["next_fire_at"] or "").startswith("2099"))
    assert server.post("/rate-limits/mail/open", tenant=tenant).status_code == 200
    assert server.settle(waits) == "completed"


# priorities --------------------------------------------------------------------------------------


def test_the_higher_priority_goes_first(server, tenant):
    limit(server, tenant, max_count=1, window_seconds=0.3)
    sequence = limited(server, tenant)
    server.post("/rate-limits/mail/close", {"closed_until": LATER}, tenant=tenant)
    made = {
        name: server.instance(sequence, tenant=tenant, priority=name)
        for name in ("Low", "Normal", "High", "Critical")
    }
    until(lambda: server.get("/rate-limits/mail", tenant=tenant).json()["waiting"] == 4)
    server.post("/rate-limits/mail/open", tenant=tenant)
    ends = {}
    for name, id in made.items():
        server.settle(id)
        audit = server.get(f"/instances/{id}/audit", tenant=tenant).json()
        ends[name] = audit[0]["created_at"]
    assert sorted(ends, key=ends.get) == ["Critical", "High", "Normal", "Low"]


# concurrency -------------------------------------------------------------------------------------


def test_never_more_than_the_limit_run_at_once_and_all_do(server, tenant):
    sequence = server.sequence(step("z", "sleep", params={"duration_ms": 150}), tenant=tenant)
    fields = {"concurrency_key": "k", "max_concurrency": 2}
    body = instance_body(sequence, tenant_id=tenant, **fields)
    made = [server.post("/instances", body, tenant=tenant).json()["id"] for _ in range(6)]
    most = 0
    while True:
        rows = server.get("/instances?limit=100", tenant=tenant).json()["items"]
        running = [row for row in rows if row["state"] == "running"]
        most = max(most, len(running))
        if all(row["state"] == "completed" for row in rows):
            break
    assert 1 <= most <= 2
    assert {server.settle(id) for id in made} == {"completed"}


def test_who_waits_for_a_signal_holds_no_slot(server, tenant):
    fields = {"tenant": tenant, "concurrency_key": "k", "max_concurrency": 1}
    waits = server.sequence({"type": "wait", "id": "w", "signal": "x"}, tenant=tenant)
    first = server.instance(waits, **fields)
    server.settle(first, "waiting")
    second = server.instance(server.sequence(tenant=tenant), **fields)
    assert server.settle(second) == "completed"


def test_keys_of_two_tenants_are_two_keys(server, tenant):
    slow = step("z", "sleep", params={"duration_ms": 600_000})
    fields = {"concurrency_key": "k", "max_concurrency": 1}
    held = server.instance(server.sequence(slow, tenant=tenant), tenant=tenant, **fields)
    server.settle(held, "running")
    other = f"{tenant}-2"
    free = server.instance(server.sequence(tenant=other), tenant=other, **fields)
    assert server.settle(free) == "completed"
    server.post(f"/instances/{held}/cancel", tenant=tenant)
