"""Resource pools (contract §23)."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from tests.integration.web.following import until
from tests.integration.web.house import step

pytestmark = pytest.mark.contract("23")


def pool(server, tenant, **fields):
    answer = server.post("/pools", {"tenant_id": tenant, "name": "p", **fields}, tenant=tenant)
    assert answer.status_code == 201, answer.text
    return answer.json()


def resource(server, tenant, id, key="a", **fields):
    body = {"resource_key": key, "name": key.upper(), **fields}
    return server.post(f"/pools/{id}/resources", body, tenant=tenant)


def recent(text):
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(text)
    return dt.timedelta(minutes=-1) < age < dt.timedelta(minutes=5)


def test_a_pool_has_every_field(server, tenant):
    made = pool(server, tenant)
    assert set(made) >= {
        "id",
        "tenant_id",
        "name",
        "strategy",
        "round_robin_index",
        "created_at",
        "updated_at",
    }
    assert (made["name"], made["strategy"], made["round_robin_index"]) == ("p", "round_robin", 0)
    assert recent(made["created_at"])
    assert recent(made["updated_at"])
    assert server.get(f"/pools/{made['id']}", tenant=tenant).json() == made
    assert server.get("/pools", tenant=tenant).json() == [made]


@pytest.mark.parametrize("strategy", ["round_robin", "weighted", "random"])
def test_a_strategy_is_kept(server, tenant, strategy):
    assert pool(server, tenant, strategy=strategy)["strategy"] == strategy


def test_a_name_is_a_tenants_own(server, tenant):
    pool(server, tenant)
    again = server.post("/pools", {"tenant_id": tenant, "name": "p"}, tenant=tenant)
    assert again.status_code == 409
    assert again.json()["error"].startswith("already exists: ")
    pool(server, f"{tenant}-2")


def test_a_pool_is_removed_with_its_resources(server, tenant):
    id = pool(server, tenant)["id"]
    resource(server, tenant, id)
    assert server.delete(f"/pools/{id}", tenant=tenant).status_code == 204
    assert server.get(f"/pools/{id}", tenant=tenant).status_code == 404
    assert server.delete(f"/pools/{id}", tenant=tenant).status_code == 404
    assert server.get(f"/pools/{uuid.uuid4()}", tenant=tenant).status_code == 404


def test_a_resource_has_every_field_and_its_defaults(server, tenant):
    id = pool(server, tenant)["id"]
    answer = resource(server, tenant, id)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    wanted = {
        "pool_id": id,
        "resource_key": "a",
        "name": "A",
        "weight": 1,
        "enabled": True,
        "daily_cap": 0,
        "daily_usage": 0,
        "daily_usage_date": None,
        "warmup_start": None,
        "warmup_days": 0,
        "warmup_start_cap": 0,
    }
    assert wanted.items() <= made.items(), made
    assert recent(made["created_at"])
    assert uuid.UUID(made["id"])
    assert server.get(f"/pools/{id}/resources", tenant=tenant).json() == [made]


def test_a_key_may_be_there_twice(server, tenant):
    id = pool(server, tenant)["id"]
    assert resource(server, tenant, id).status_code == 201
    assert resource(server, tenant, id).status_code == 201
    assert len(server.get(f"/pools/{id}/resources", tenant=tenant).json()) == 2


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"resource_key": ""}, 400),
        ({"name": ""}, 400),
        ({"resource_key": "x" * 256}, 400),
        ({"name": "x" * 256}, 400),
        ({"weight": 0}, 400),
        ({"weight": -1}, 400),
        ({"warmup_start": "tomorrow", "warmup_days": 3, "daily_cap": 9}, 400),
        ({"warmup_start": "2026-02-30", "warmup_days": 3, "daily_cap": 9}, 400),
        ({"weight": "heavy"}, 422),
        ({"name": None}, 422),
    ],
)
def test_what_cannot_be_is_refused(server, tenant, change, status):
    id = pool(server, tenant)["id"]
    body = {"resource_key": "a", "name": "A"} | change
    answer = server.post(f"/pools/{id}/resources", body, tenant=tenant)
    assert answer.status_code == status, answer.text
    assert server.get(f"/pools/{id}/resources", tenant=tenant).json() == []


def test_what_is_named_is_changed(server, tenant):
    id = pool(server, tenant)["id"]
    made = resource(server, tenant, id).json()
    path = f"/pools/{id}/resources/{made['id']}"
    change = {
        "name": "B",
        "weight": 5,
        "enabled": False,
        "daily_cap": 100,
        "warmup_start": "2026-01-01",
        "warmup_days": 30,
        "warmup_start_cap": 5,
    }
    answer = server.put(path, change, tenant=tenant)
    assert answer.status_code == 200, answer.text
    assert change.items() <= answer.json().items()
    assert answer.json()["created_at"] == made["created_at"]
    only = server.put(path, {"weight": 2}, tenant=tenant).json()
    assert (only["weight"], only["daily_cap"]) == (2, 100)
    assert server.put(path, {"weight": 0}, tenant=tenant).status_code == 400
    nobody = f"/pools/{id}/resources/{uuid.uuid4()}"
    assert server.put(nobody, {"weight": 2}, tenant=tenant).status_code == 404


def test_a_resource_is_removed_once_and_from_its_own_pool(server, tenant):
    one, two = pool(server, tenant)["id"], pool(server, tenant, name="q")["id"]
    made = resource(server, tenant, one).json()["id"]
    assert server.delete(f"/pools/{two}/resources/{made}", tenant=tenant).status_code == 404
    for _ in range(2):
        assert server.delete(f"/pools/{one}/resources/{made}", tenant=tenant).status_code == 204
    assert server.get(f"/pools/{one}/resources", tenant=tenant).json() == []


# pools really assign -----------------------------------------------------------------------------


def sent(server, tenant, n, **options):
    """The resources that so many instances were given, in their order."""
    params = {"via": "{{runtime.resource_key}}"}
    sequence = server.sequence(
        step("s", "transform", params=params, pool="p", **options), tenant=tenant
    )
    found = []
    for _ in range(n):
        instance = server.instance(sequence, tenant=tenant)
        server.settle(instance)
        rows = server.get(f"/instances/{instance}/outputs", tenant=tenant).json()
        found.append(rows[0]["output"]["via"])
    return found


def test_round_robin_goes_round_and_weights_weigh(server, tenant):
    id = pool(server, tenant)["id"]
    for key in ("a", "b"):
        resource(server, tenant, id, key)
    assert sent(server, tenant, 4) == ["a", "b", "a", "b"]
    rows = server.get(f"/pools/{id}/resources", tenant=tenant).json()
    assert [row["daily_usage"] for row in rows] == [2, 2]
    assert {row["daily_usage_date"] for row in rows} == {dt.datetime.now(dt.UTC).date().isoformat()}
    heavy = f"{tenant}-w"
    id = pool(server, heavy, strategy="weighted")["id"]
    resource(server, heavy, id, "a", weight=3)
    resource(server, heavy, id, "b", weight=1)
    found = sent(server, heavy, 8)
    assert (found.count("a"), found.count("b")) == (6, 2)


def test_an_exhausted_or_disabled_resource_is_passed_over_and_then_it_waits(server, tenant):
    id = pool(server, tenant)["id"]
    resource(server, tenant, id, "a", daily_cap=1)
    resource(server, tenant, id, "b", daily_cap=2)
    off = resource(server, tenant, id, "c").json()["id"]
    server.put(f"/pools/{id}/resources/{off}", {"enabled": False}, tenant=tenant)
    assert sorted(sent(server, tenant, 3)) == ["a", "b", "b"]
    waits = server.instance(server.sequence(step("s", pool="p"), tenant=tenant), tenant=tenant)

    def fires():
        shown = server.get(f"/instances/{waits}", tenant=tenant).json()
        assert shown["state"] in ("scheduled", "running")
        return shown["next_fire_at"] or ""

    tomorrow = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1)
    until(lambda: fires() >= tomorrow.isoformat())
    server.put(f"/pools/{id}/resources/{off}", {"enabled": True}, tenant=tenant)
    assert server.settle(waits) == "completed"


def test_a_warm_up_rises_day_by_day(server, tenant):
    id = pool(server, tenant)["id"]
    today = dt.datetime.now(dt.UTC).date()
    started = (today - dt.timedelta(days=5)).isoformat()
    made = resource(
        server,
        tenant,
        id,
        daily_cap=100,
        warmup_start=started,
        warmup_days=10,
        warmup_start_cap=10,
    ).json()
    assert made["cap_today"] == 10 + (100 - 10) * 5 // 10
