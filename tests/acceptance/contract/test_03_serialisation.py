"""How values are written (contract §3)."""

from __future__ import annotations

import re
import uuid

import pytest

from tests.integration.web.house import instance_body, sequence_body, step

pytestmark = pytest.mark.contract("3")

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
LATER = "2099-01-01T00:00:00Z"


def block(server, id):
    return server.get(f"/sequences/{id}").json()["blocks"][0]


@pytest.mark.parametrize(
    ("given", "shown"), [(200, 200), (0.2, 200), (1.5, 1500), (2.0, 2000), (60_000, 60_000)]
)
def test_a_whole_number_is_milliseconds_and_a_decimal_is_seconds(server, given, shown):
    options = {
        "timeout": given,
        "deadline": given,
        "delay": {"duration": given, "jitter": given},
        "retry": {"max_attempts": 2, "initial_backoff": given, "max_backoff": given},
        "wait_for_input": {"timeout": given},
    }
    id = server.sequence(step("s", **options), sla={"max_runtime": given})
    made = block(server, id)
    assert made["timeout"] == made["deadline"] == shown
    assert made["delay"]["duration"] == made["delay"]["jitter"] == shown
    assert made["retry"]["initial_backoff"] == made["retry"]["max_backoff"] == shown
    assert made["wait_for_input"]["timeout"] == shown
    assert server.get(f"/sequences/{id}").json()["sla"]["max_runtime"] == shown
    assert isinstance(made["timeout"], int)


@pytest.mark.parametrize("given", [-1, -0.5, "1h", True])
@pytest.mark.parametrize("name", ["timeout", "deadline"])
def test_a_negative_or_foreign_duration_is_422(server, name, given):
    answer = server.post("/sequences", sequence_body(step("s", **{name: given})))
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("priority", ["Low", "Normal", "High", "Critical"])
def test_priorities_are_capitalised(server, priority):
    instance = server.instance(server.sequence(), priority=priority, next_fire_at=LATER)
    assert server.shown(instance)["priority"] == priority
    for wrong in (priority.lower(), priority.upper()):
        body = instance_body(server.sequence(), priority=wrong)
        assert server.post("/instances", body).status_code == 422


def test_the_split_is_spelled_with_two_underscores(server):
    variants = [{"name": name, "weight": 1, "blocks": [step(name)]} for name in "ab"]
    split = {"type": "a_b_split", "id": "x", "variants": variants}
    assert block(server, server.sequence(split))["type"] == "a_b_split"
    other = sequence_body({**split, "type": "ab_split"})
    assert server.post("/sequences", other).status_code == 422


def test_ids_are_uuids_ordered_by_time(server):
    sequence = server.sequence()
    made = [server.instance(sequence, next_fire_at=LATER) for _ in range(3)]
    assert [uuid.UUID(id).version for id in made] == [7, 7, 7]
    assert sorted(made) == made


def test_timestamps_are_rfc_3339_in_utc_or_null(server):
    instance = server.instance(server.sequence(), next_fire_at="2099-01-01T02:00:00+02:00")
    shown = server.shown(instance)
    assert shown["next_fire_at"] == "2099-01-01T00:00:00.000000Z"
    for name in ("created_at", "updated_at"):
        assert INSTANT.fullmatch(shown[name]), shown[name]
    done = server.instance(server.sequence())
    server.settle(done)
    assert server.shown(done)["next_fire_at"] is None


def test_every_other_kind_of_object_writes_instants_the_same_way(server, tenant):
    session = server.post("/sessions", {"tenant_id": tenant, "session_key": "k"}, tenant=tenant)
    sequence = server.sequence(tenant=tenant)
    cron = {
        "tenant_id": tenant,
        "namespace": "default",
        "sequence_id": sequence,
        "cron_expr": "0 0 1 1 *",
    }
    made = server.post("/cron", cron, tenant=tenant).json()["id"]
    schedule = server.get(f"/cron/{made}", tenant=tenant)
    secret = {"id": tenant, "name": "n", "value": "v", "expires_at": LATER}
    credential = server.post("/credentials", secret, tenant=tenant)
    for answer in (session, schedule, credential):
        shown = answer.json()
        for name, value in shown.items():
            if name.endswith("_at") and value is not None:
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value), name


def test_signals_are_words_or_a_custom_object(server):
    waits = server.sequence({"type": "wait", "id": "w", "signal": "go"})
    instance = server.instance(waits)
    path = f"/instances/{instance}/signals"
    for kind in ("pause", "resume", {"custom": "other"}, "custom:another"):
        assert server.post(path, {"signal_type": kind}).status_code == 201, kind
    for kind in ("custom", {"custom": ""}, {"other": "x"}, {"custom": 3}, None, 5):
        assert server.post(path, {"signal_type": kind}).status_code == 422, kind


def test_secrets_are_redacted_or_left_out(server, tenant):
    body = sequence_body(tenant_id=tenant)
    server.post("/sequences", body, tenant=tenant)
    trigger = {"slug": tenant, "sequence_name": body["name"], "tenant_id": tenant}
    made = server.post("/triggers", {**trigger, "secret": "hush-hush"}, tenant=tenant)
    assert made.json()["secret"] == "[REDACTED]"
    assert server.get(f"/triggers/{tenant}", tenant=tenant).json()["secret"] == "[REDACTED]"
    bare = server.post("/triggers", {**trigger, "slug": f"{tenant}-2"}, tenant=tenant)
    assert "secret" not in bare.json()
    secret = {"id": tenant, "name": "n", "value": "hush-hush"}
    shown = server.post("/credentials", secret, tenant=tenant).json()
    assert "value" not in shown
    assert "hush-hush" not in str(shown)


def test_pages_say_exactly_whether_there_is_more(server, tenant):
    for n in range(3):
        server.sequence(tenant=tenant, name=f"n{n}")
    for path in ("/sequences", "/instances"):
        found = server.get(path, tenant=tenant).json()
        assert set(found) == {"items", "has_more"}
    assert server.get("/sequences?limit=3", tenant=tenant).json()["has_more"] is False
    assert server.get("/sequences?limit=2", tenant=tenant).json()["has_more"] is True


@pytest.mark.parametrize(
    "path",
    ["/cron", "/triggers", "/credentials", "/pools", "/instances/dlq", "/events", "/workers/tasks"],
)
def test_every_other_list_is_a_bare_array(server, tenant, path):
    assert server.get(path, tenant=tenant).json() == []


@pytest.mark.parametrize(
    "path",
    [
        "/sequences",
        "/instances",
        "/instances/dlq",
        "/cron",
        "/triggers",
        "/credentials",
        "/approvals",
        "/webhooks/outbox",
        "/webhooks/deliveries",
        "/workers/tasks",
    ],
)
def test_a_limit_beyond_the_most_is_the_most(server, tenant, path):
    assert server.get(f"{path}?limit=5000", tenant=tenant).status_code == 200
