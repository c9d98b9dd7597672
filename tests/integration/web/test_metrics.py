"""Metrics (contract §28)."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

import detent
from tests.integration.web.following import until
from tests.integration.web.house import house, step

NAMES = (
    *("instances_claimed_total", "instances_completed_total", "instances_failed_total"),
    *("steps_executed_total", "steps_failed_total", "steps_retried_total"),
    *("signals_delivered_total", "rate_limits_exceeded_total"),
    *("recovery_stale_instances_total", "sla_breached_total"),
    *("webhooks_sent_total", "webhooks_failed_total", "webhooks_parked_total"),
    *("cron_triggered_total", "cron_skipped_total", "queue_depth", "active_tasks"),
)


@detent.handler
async def work() -> dict:
    return {}


@pytest.fixture(params=["thread", "process"])
def fresh(tmp_path, request):
    with house(tmp_path / "s.db", handlers=[work], writer=request.param) as server:
        yield server


def samples(server):
    """Every sample by name and labels."""
    answer = server.get("/metrics", tenant="")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found, name, **labels):
    return found[(f"detent_{name}", *sorted(labels.items()))]


@pytest.mark.req("SEQ-OPS-1")
def test_everything_is_there_from_the_start(fresh):
    found = samples(fresh)
    for name in NAMES:
        assert value(found, name) == 0, name
    for name in ("tick_duration", "step_duration", "instance_processing"):
        assert ("detent_" + name + "_seconds_count",) in found


@pytest.mark.req("SEQ-OPS-1")
def test_what_instances_do_is_counted(fresh):
    sequence = fresh.sequence(step("a", "work"), step("b", "work"), step("c"))
    for _ in range(3):
        fresh.settle(fresh.instance(sequence))
    retry = {"max_attempts": 3, "initial_backoff": 1, "max_backoff": 1}
    bad = step("bad", "fail", params={"retryable": True}, retry=retry)
    fresh.settle(fresh.instance(fresh.sequence(bad)))
    waiting = fresh.instance(fresh.sequence({"type": "wait", "id": "w", "signal": "go"}))
    fresh.settle(waiting, "waiting")
    fresh.post(f"/instances/{waiting}/signals", {"signal_type": "cancel"})
    until(lambda: value(samples(fresh), "instances_cancelled_total") == 1)
    found = samples(fresh)
    expected = {
        "instances_started_total": 5,
        "instances_completed_total": 3,
        "instances_failed_total": 1,
        "instances_cancelled_total": 1,
        "steps_executed_total": 9,
        "steps_failed_total": 1,
        "steps_retried_total": 2,
        "signals_delivered_total": 1,
        "step_duration_seconds_count": 6,
        "instance_processing_seconds_count": 5,
    }
    assert {name: value(found, name) for name in expected} == expected
    assert value(found, "instances_claimed_total") >= 5
    assert value(found, "tick_duration_seconds_count") >= 5
    assert value(found, "tick_duration_seconds_sum") > 0


def test_requests_are_counted_by_route_and_status_and_never_by_what_a_client_wrote(fresh):
    fresh.get("/sequences")
    fresh.get("/sequences/00000000-0000-0000-0000-000000000000")
    for path in ("/nowhere", "/elsewhere"):
        fresh.get(path)
    found = samples(fresh)
    asked = {"method": "GET", "route": "/sequences"}
    assert value(found, "http_requests_total", **asked, status="200") == 1
    assert value(found, "http_request_seconds_count", **asked, status="200") == 1
    shown = {"method": "GET", "route": "/sequences/{id:uuid}", "status": "404"}
    assert value(found, "http_requests_total", **shown) == 1
    lost = {"method": "-", "route": "-", "status": "404"}
    assert value(found, "http_requests_total", **lost) == 2
    assert "nowhere" not in str(found)


def test_metrics_need_a_key_and_no_tenant(fresh):
    assert fresh.get("/metrics", tenant="").status_code == 200
    assert fresh.get("/metrics", tenant="", key="").status_code == 401
    assert fresh.get("/api/v1/metrics", tenant="").status_code == 404


@pytest.mark.req("SEQ-OPS-1")
def test_limits_and_schedules_are_counted(fresh):
    limit = {"max_count": 1, "window_seconds": 3600}
    assert fresh.put("/rate-limits/k", limit).status_code == 200
    sequence = fresh.sequence(step("a", "work", rate_limit_key="k"))
    fresh.settle(fresh.instance(sequence))
    fresh.instance(sequence)
    until(lambda: value(samples(fresh), "rate_limits_exceeded_total") == 1)
    body = {
        "tenant_id": "acme",
        "namespace": "default",
        "sequence_id": fresh.sequence(),
        "cron_expr": "* * * * * *",
    }
    made = fresh.post("/cron", body)
    assert made.status_code == 201, made.text
    until(lambda: value(samples(fresh), "cron_triggered_total") >= 1)
