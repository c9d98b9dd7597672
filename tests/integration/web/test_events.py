"""Events over HTTP (contract §20)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def event(tenant, name="paid", producer="p-1", key="order-1", payload=None):
    return {
        "tenant_id": tenant,
        "event_name": name,
        "producer_event_id": producer,
        "correlation_key": key,
        "payload": payload,
    }


def listening(key="order-1", **params):
    params = {"events": ["paid"], "correlation_key": key, **params}
    return step("w", "wait_for_event", params=params, wait_for_input={"store_as": "heard"})


@pytest.mark.req("SEQ-SIG-2")
def test_an_event_resumes_the_instance_that_waits_for_it(server, tenant):
    instance = server.instance(server.sequence(listening(), tenant=tenant), tenant=tenant)
    server.settle(instance, "waiting")
    told = server.post("/events", event(tenant, payload={"sum": 3}), tenant=tenant)
    assert told.status_code == 201, told.text
    assert (told.json()["duplicate"], told.json()["satisfied"]) == (False, True)
    assert told.json()["matched_wait"]
    assert server.settle(instance) == "completed"
    shown = server.get(f"/instances/{instance}", tenant=tenant).json()["context"]["data"]
    assert shown["heard"]["events"]["paid"]["payload"] == {"sum": 3}
    again = server.post("/events", event(tenant, payload={"sum": 3}), tenant=tenant)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert again.json()["event_id"] == told.json()["event_id"]
    (listed,) = server.get("/events", tenant=tenant).json()
    assert (listed["status"], listed["instance_id"]) == ("consumed", instance)
    assert listed["consumed_by"] == told.json()["matched_wait"]


def test_an_event_that_nobody_waits_for_is_kept_and_shown(server, tenant):
    body = event(tenant, payload={"password": "hunter2", "n": 1})
    told = server.post("/events", body, tenant=tenant).json()
    assert "matched_wait" not in told
    shown = server.get(f"/events/{told['event_id']}", tenant=tenant).json()
    assert (shown["status"], shown["event_name"]) == ("pending", "paid")
    assert shown["payload"]["n"] == 1
    assert "hunter2" not in str(shown)
    assert "consumed_by" not in shown
    assert shown["received_at"].endswith("Z")
    for path in (f"/events/{told['event_id']}", f"/events/{uuid.uuid4()}"):
        assert server.get(path, tenant="other").status_code == 404
    assert server.get("/events", tenant="other").json() == []
    assert [row["id"] for row in server.get("/events?status=pending", tenant=tenant).json()] == [
        shown["id"]
    ]
    assert server.get("/events?status=consumed", tenant=tenant).json() == []
    assert server.get("/events?status=lost", tenant=tenant).status_code == 400
    assert server.get("/events?limit=0", tenant=tenant).status_code == 400


def test_a_batch_is_told_in_order_and_answered_in_order(server, tenant):
    events = [event(tenant, producer=f"p-{i}", key=f"k-{i % 3}") for i in range(100)]
    events[50] = events[7]
    told = server.post("/events/batch", {"events": events}, tenant=tenant)
    assert told.status_code == 200, told.text
    outcomes = told.json()["outcomes"]
    assert [each["duplicate"] for each in outcomes] == [i == 50 for i in range(100)]
    assert outcomes[50]["event_id"] == outcomes[7]["event_id"]
    assert len(server.get("/events?limit=1000", tenant=tenant).json()) == 99


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_of_none_or_too_many_is_refused(server, tenant, count):
    events = [event(tenant, producer=f"p-{i}") for i in range(count)]
    answer = server.post("/events/batch", {"events": events}, tenant=tenant)
    assert answer.status_code == 400
    assert server.get("/events", tenant=tenant).json() == []


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"event_name": " "}, 400),
        ({"producer_event_id": ""}, 400),
        ({"correlation_key": ""}, 400),
        ({"tenant_id": "other"}, 403),
        ({"tenant_id": ""}, 422),
        ({"event_name": 3}, 422),
        ({"correlation_key": None}, 422),
    ],
)
def test_an_event_that_is_not_well_formed_changes_nothing(server, tenant, change, status):
    bad = event(tenant, producer="bad") | change
    assert server.post("/events", bad, tenant=tenant).status_code == status
    batch = {"events": [event(tenant), bad]}
    assert server.post("/events/batch", batch, tenant=tenant).status_code == status
    assert server.get("/events", tenant=tenant).json() == []


def test_a_missing_field_is_told_by_its_name(server, tenant):
    body = event(tenant)
    del body["producer_event_id"]
    answer = server.post("/events", body, tenant=tenant)
    assert answer.status_code == 422
    assert "producer_event_id" in answer.text


def test_a_list_without_a_tenant_is_refused(tmp_path):
    from detent.web.api.settings import ApiSettings
    from tests.integration.web.house import ROOT, house

    free = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=free) as open_house:
        answer = open_house.get("/events", tenant="")
        assert answer.status_code == 400
        assert "tenant" in answer.text
        assert open_house.get("/events?tenant_id=acme", tenant="").json() == []
        told = open_house.post("/events", event("acme"), tenant="")
        assert told.status_code == 201
        assert len(open_house.get("/events?tenant_id=acme", tenant="").json()) == 1
