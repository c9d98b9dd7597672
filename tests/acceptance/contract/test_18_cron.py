"""Cron (contract §18)."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("18")

NOBODY = "00000000-0000-7000-8000-000000000000"
FIELDS = {
    "id",
    "tenant_id",
    "namespace",
    "sequence_id",
    "cron_expr",
    "timezone",
    "enabled",
    "metadata",
    "overlap_policy",
    "skipped_fires",
    "last_skipped_at",
    "last_triggered_at",
    "next_fire_at",
    "created_at",
    "updated_at",
}


@pytest.fixture
def sequence(server, tenant):
    return server.sequence(tenant=tenant)


def body(tenant, sequence, **fields):
    return {
        "tenant_id": tenant,
        "namespace": "default",
        "sequence_id": sequence,
        "cron_expr": "0 0 9 * * MON-FRI *",
        **fields,
    }


def made(server, tenant, sequence, **fields):
    answer = server.post("/cron", body(tenant, sequence, **fields), tenant=tenant)
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"id", "next_fire_at"}
    return answer.json()["id"]


def show(server, tenant, id):
    answer = server.get(f"/cron/{id}", tenant=tenant)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_schedule_has_every_field_and_its_defaults(server, tenant, sequence):
    shown = show(server, tenant, made(server, tenant, sequence))
    assert set(shown) >= FIELDS
    assert (shown["timezone"], shown["enabled"]) == ("UTC", True)
    assert (shown["overlap_policy"], shown["skipped_fires"]) == ("allow", 0)
    assert (shown["last_skipped_at"], shown["last_triggered_at"]) == (None, None)
    assert shown["sequence_id"] == sequence
    assert shown["next_fire_at"] > shown["created_at"]


@pytest.mark.parametrize(
    "expr",
    [
        "0 0 * * *",
        "0 0 9 * * MON-FRI *",
        "*/5 * * * *",
        "0 30 8 1 * *",
        "0 0 12 * JAN,JUL SUN",
        "0 0 0 1 1 * 2090-2095",
    ],
)
def test_the_text_is_given_back_as_it_was(server, tenant, sequence, expr):
    shown = show(server, tenant, made(server, tenant, sequence, cron_expr=expr))
    assert shown["cron_expr"] == expr
    assert shown["next_fire_at"] is not None


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"cron_expr": "not a cron"}, 400),
        ({"cron_expr": ""}, 400),
        ({"cron_expr": "61 * * * *"}, 400),
        ({"cron_expr": "* * * *"}, 400),
        ({"timezone": "Mars/Olympus"}, 400),
        ({"sequence_id": NOBODY}, 404),
        ({"overlap_policy": "dance"}, 422),
        ({"enabled": "yes"}, 422),
    ],
)
def test_what_cannot_be_is_refused(server, tenant, sequence, change, status):
    answer = server.post("/cron", body(tenant, sequence) | change, tenant=tenant)
    assert answer.status_code == status, answer.text
    assert server.get("/cron", tenant=tenant).json() == []


@pytest.mark.parametrize("metadata", [None, {"a": {"b": [1]}}])
def test_metadata_is_kept(server, tenant, sequence, metadata):
    shown = show(server, tenant, made(server, tenant, sequence, metadata=metadata))
    assert shown["metadata"] == metadata


def test_a_schedule_has_a_namespace_of_its_own(server, tenant, sequence):
    id = made(server, tenant, sequence, namespace="nights", cron_expr="* * * * * *")
    assert show(server, tenant, id)["namespace"] == "nights"
    fired = first_fire(server, tenant, id)
    assert (fired["namespace"], fired["sequence_id"]) == ("nights", sequence)
    assert len(server.get("/sequences", tenant=tenant).json()["items"]) == 1
    blank = server.post("/cron", body(tenant, sequence, namespace=" "), tenant=tenant)
    assert blank.status_code == 400


def test_lists_are_in_the_order_of_creation(server, tenant, sequence):
    ids = [made(server, tenant, sequence) for _ in range(3)]
    assert [row["id"] for row in server.get("/cron", tenant=tenant).json()] == ids
    assert [row["id"] for row in server.get("/cron?limit=2", tenant=tenant).json()] == ids[:2]


def test_changes_are_shown_and_the_next_fire_is_counted_anew(server, tenant, sequence):
    id = made(server, tenant, sequence)
    before = show(server, tenant, id)
    change = {"cron_expr": "0 0 1 1 *", "timezone": "Asia/Tokyo", "overlap_policy": "skip"}
    answer = server.put(f"/cron/{id}", change, tenant=tenant)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert set(shown) >= FIELDS
    assert change.items() <= shown.items()
    assert shown["next_fire_at"] != before["next_fire_at"]
    assert shown["next_fire_at"].endswith("12-31T15:00:00.000000Z")
    off = server.put(f"/cron/{id}", {"enabled": False, "metadata": {"x": 1}}, tenant=tenant).json()
    assert (off["enabled"], off["metadata"], off["cron_expr"]) == (False, {"x": 1}, "0 0 1 1 *")
    for bad in ({"cron_expr": "x"}, {"timezone": "Mars"}):
        assert server.put(f"/cron/{id}", bad, tenant=tenant).status_code == 400
    assert server.put(f"/cron/{NOBODY}", {}, tenant=tenant).status_code == 404


def test_a_deleted_schedule_is_gone(server, tenant, sequence):
    id = made(server, tenant, sequence)
    assert server.delete(f"/cron/{id}", tenant=tenant).status_code == 204
    assert server.get(f"/cron/{id}", tenant=tenant).status_code == 404
    assert server.delete(f"/cron/{id}", tenant=tenant).status_code == 404
    assert server.get("/cron", tenant=tenant).json() == []
    assert server.get(f"/cron/{NOBODY}", tenant=tenant).status_code == 404


def test_next_fires_are_previewed(server, tenant, sequence):
    id = made(server, tenant, sequence, timezone="Europe/Berlin")
    found = server.get(f"/cron/{id}/next-fires", tenant=tenant).json()
    assert (found["timezone"], len(found["fires"])) == ("Europe/Berlin", 5)
    for at in found["fires"]:
        assert dt.datetime.fromisoformat(at).weekday() < 5
    assert len(server.get(f"/cron/{id}/next-fires?n=50", tenant=tenant).json()["fires"]) == 50
    for n in (0, 51):
        assert server.get(f"/cron/{id}/next-fires?n={n}", tenant=tenant).status_code in (200, 400)
    assert server.get(f"/cron/{NOBODY}/next-fires", tenant=tenant).status_code == 404


def first_fire(server, tenant, id):
    """The first instance that a schedule starts."""
    while True:
        found = server.get("/instances", tenant=tenant).json()["items"]
        mine = [row for row in found if row["metadata"].get("cron_schedule_id") == id]
        if mine:
            server.delete(f"/cron/{id}", tenant=tenant)
            return mine[-1]


def test_a_fire_starts_an_instance_of_the_sequence(server, tenant):
    name = f"s-{tenant}"
    sequence = server.sequence(step("a"), tenant=tenant, name=name)
    fields = {"cron_expr": "* * * * * *", "timezone": "Asia/Tokyo", "metadata": {"team": "red"}}
    id = made(server, tenant, sequence, **fields)
    row = first_fire(server, tenant, id)
    assert (row["priority"], row["timezone"]) == ("Normal", "Asia/Tokyo")
    assert row["metadata"] == {"team": "red", "cron_schedule_id": id}
    assert row["sequence_id"] == sequence
    assert row["context"]["data"] in (None, {})


def test_one_that_is_disabled_never_fires(server, tenant, sequence):
    fields = {"cron_expr": "* * * * * *"}
    off = made(server, tenant, sequence, enabled=False, **fields)
    on = made(server, tenant, sequence, **fields)
    first_fire(server, tenant, on)
    found = server.get("/instances", tenant=tenant).json()["items"]
    assert off not in [row["metadata"]["cron_schedule_id"] for row in found]
    assert show(server, tenant, off)["last_triggered_at"] is None


def test_a_fire_while_the_last_one_runs_is_skipped_and_counted(server, tenant):
    waits = server.sequence({"type": "wait", "id": "w", "signal": "x"}, tenant=tenant)
    id = made(server, tenant, waits, cron_expr="* * * * * *", overlap_policy="skip")
    while show(server, tenant, id)["skipped_fires"] < 1:
        pass
    shown = show(server, tenant, id)
    assert shown["last_skipped_at"] is not None
    assert shown["last_triggered_at"] is not None
    server.delete(f"/cron/{id}", tenant=tenant)
    assert len(server.get("/instances", tenant=tenant).json()["items"]) == 1


def test_a_fire_may_cancel_the_one_before(server, tenant):
    waits = server.sequence({"type": "wait", "id": "w", "signal": "x"}, tenant=tenant)
    id = made(server, tenant, waits, cron_expr="* * * * * *", overlap_policy="cancel_previous")
    while not server.get("/instances?state=cancelled", tenant=tenant).json()["items"]:
        pass
    server.delete(f"/cron/{id}", tenant=tenant)


def test_a_schedule_may_start_what_workers_perform(server, tenant):
    sequence = server.sequence(step("a", "nobody-has-registered-it"), tenant=tenant)
    id = made(server, tenant, sequence, cron_expr="* * * * * *")
    assert first_fire(server, tenant, id)["sequence_id"] == sequence
