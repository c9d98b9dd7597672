"""Circuit breakers (contract §25), with a worker whose task fails.

`tests/integration/web/test_breakers.py` and `tests/acceptance/test_breakers.py` have their clock.
"""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("25")


def failing(server, tenant, handler, times, **options):
    """So many instances whose only step is failed for good by a worker."""
    sequence = server.sequence(step("s", handler, **options), tenant=tenant)
    for _ in range(times):
        instance = server.instance(sequence, tenant=tenant)
        body = {"handler_name": handler, "worker_id": "w", "wait_secs": 5}
        while not (tasks := server.post("/workers/tasks/poll", body, tenant=tenant).json()):
            pass
        report = {"worker_id": "w", "claim_epoch": tasks[0]["claim_epoch"], "message": "no"}
        path = f"/workers/tasks/{tasks[0]['id']}/fail"
        assert server.post(path, report, tenant=tenant).status_code == 200
        assert server.settle(instance) == "failed"
    return sequence


@pytest.fixture
def job():
    return f"job-{uuid.uuid4().hex[:8]}"


def shown(server, tenant, job):
    return server.get(f"/tenants/{tenant}/circuit-breakers/{job}", tenant=tenant)


def test_a_fresh_tenant_has_none_and_a_reset_makes_none(server, tenant, job):
    path = f"/tenants/{tenant}/circuit-breakers"
    assert server.get(path, tenant=tenant).json() == []
    assert shown(server, tenant, job).status_code == 404
    assert server.post(f"{path}/{job}/reset", tenant=tenant).status_code == 200
    assert shown(server, tenant, job).status_code == 404


def test_one_failure_is_counted_and_five_open_it(server, tenant, job):
    failing(server, tenant, job, 1)
    one = shown(server, tenant, job).json()
    assert {
        "tenant_id",
        "handler",
        "state",
        "failure_count",
        "failure_threshold",
        "cooldown_secs",
    } <= set(one)
    assert (one["state"], one["failure_count"]) == ("closed", 1)
    assert (one["failure_threshold"], one["cooldown_secs"]) == (5, 60)
    failing(server, tenant, job, 4)
    assert shown(server, tenant, job).json()["state"] == "open"
    assert shown(server, tenant, job).json()["opened_at"] is not None
    every = server.get("/circuit-breakers", tenant=tenant).json()
    assert [each["handler"] for each in every] == [job]


def test_an_open_breaker_holds_a_step_or_lets_another_stand_in(server, tenant, job):
    sequence = failing(server, tenant, job, 5)
    held = server.instance(sequence, tenant=tenant)
    server.settle(held, "scheduled")
    instead = step("s", job, params={"n": 1}, fallback_handler="transform")
    instance = server.instance(server.sequence(instead, tenant=tenant), tenant=tenant)
    assert server.settle(instance) == "completed"
    rows = server.get(f"/instances/{instance}/outputs", tenant=tenant).json()
    assert rows[0]["output"] == {"n": 1}
    path = f"/tenants/{tenant}/circuit-breakers/{job}/reset"
    assert server.post(path, tenant=tenant).status_code == 200
    server.settle(held, "waiting")  # for a worker again
    server.post(f"/instances/{held}/cancel", tenant=tenant)


@pytest.mark.parametrize("handler", ["fail", "noop", "log", "self_modify", "human_review"])
def test_what_computes_is_not_tracked(server, tenant, handler):
    sequence = server.sequence(step("s", handler), tenant=tenant)
    server.settle(server.instance(sequence, tenant=tenant))
    assert shown(server, tenant, handler).status_code == 404


def test_another_tenants_breakers_are_its_own(server, tenant, job):
    failing(server, tenant, job, 1)
    assert server.get(f"/tenants/{tenant}/circuit-breakers", tenant="other").status_code == 404
    assert shown(server, "other", job).status_code == 404
