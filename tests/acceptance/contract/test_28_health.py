"""Health, info and metrics (contract §28)."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.contract("28")

COUNTERS = [
    "instances_claimed_total",
    "instances_completed_total",
    "steps_executed_total",
    "instances_failed_total",
    "steps_failed_total",
    "steps_retried_total",
    "signals_delivered_total",
    "rate_limits_exceeded_total",
    "recovery_stale_instances_total",
    "webhooks_sent_total",
    "webhooks_failed_total",
    "webhooks_parked_total",
    "cron_triggered_total",
    "cron_skipped_total",
    "sla_breached_total",
]
HISTOGRAMS = ("tick_duration_seconds", "step_duration_seconds", "instance_processing_seconds")
GAUGES = ("queue_depth", "active_tasks")


def test_health_is_empty_and_200(server):
    for path in ("/health/live", "/health/ready"):
        answer = server.get(path, key=None, tenant=None)
        assert (answer.status_code, answer.content) == (200, b"")


def test_info_says_who_answers(server):
    told = server.get("/info", key=None, tenant=None).json()
    assert set(told) == {
        "version",
        "storage_schema_version",
        "contract_schema_version",
        "env_label",
        "env_color",
    }
    assert told["version"]
    assert (told["env_label"], told["env_color"]) == (None, None)


def metrics(server):
    answer = server.get("/metrics", tenant=None)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.text


def test_every_metric_of_the_contract_is_there_from_the_start(open_server):
    text = metrics(open_server)
    for name in COUNTERS:
        assert re.search(rf"^detent_{name}(\{{.*\}})? [0-9.e+]+$", text, re.MULTILINE), name
    for name in HISTOGRAMS:
        assert re.search(rf"^detent_{name}_count", text, re.MULTILINE), name
        assert re.search(rf'^detent_{name}_bucket\{{le="\+Inf"\}}', text, re.MULTILINE), name
    for name in GAUGES:
        assert re.search(rf"^detent_{name} ", text, re.MULTILINE), name


def test_completed_instances_are_counted(server):
    def value(name):
        return float(re.search(rf"^detent_{name} ([0-9.e+]+)$", metrics(server), re.MULTILINE)[1])

    before = value("instances_completed_total")
    sequence = server.sequence()
    for _ in range(3):
        server.settle(server.instance(sequence))
    while value("instances_completed_total") < before + 3:
        pass
    assert value("steps_executed_total") >= 3
