"""Events (contract §20)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("20")


def event(tenant, **fields):
    return {
        "tenant_id": tenant,
        "event_name": "paid",
        "producer_event_id": uuid.uuid4().hex,
        "correlation_key": "order-1",
        "payload": {"n": 1},
        **fields,
    }


def tell(server, tenant, **fields):
    return server.post("/events", event(tenant, **fields), tenant=tenant)


def listening(server, tenant, **params):
    block = step(
        "wait",
        "wait_for_event",
        params={"events": "paid", "correlation_key": "{{data.order}}", **params},
        wait_for_input={},
    )
    instance = server.instance(
        server.sequence(block, step("after"), tenant=tenant), {"order": "order-1"}, tenant=tenant
    )
    server.settle(instance, "waiting")
    return instance


def output(server, tenant, instance):
    rows = server.get(f"/instances/{instance}/outputs", tenant=tenant).json()
    return next(row["output"] for row in rows if row["block_id"] == "wait")


def test_an_event_is_new_once(server, tenant):
    body = event(tenant)
    first = server.post("/events", body, tenant=tenant)
    again = server.post("/events", body, tenant=tenant)
    assert (first.status_code, again.status_code) == (201, 200)
    assert {"event_id", "duplicate", "satisfied"} <= set(first.json())
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    assert first.json()["event_id"] == again.json()["event_id"]
    assert first.json()["satisfied"] is False
    other = body | {"event_name": "sent"}
    assert server.post("/events", other, tenant=tenant).status_code == 201


@pytest.mark.parametrize("name", ["event_name", "producer_event_id", "correlation_key"])
def test_a_blank_or_missing_field_is_refused(server, tenant, name):
    assert tell(server, tenant, **{name: " "}).status_code == 400
    body = event(tenant)
    del body[name]
    assert server.post("/events", body, tenant=tenant).status_code == 422


def test_a_batch_is_told_in_order_and_checked_as_a_whole(server, tenant):
    def batch(*events):
        return server.post("/events/batch", {"events": list(events)}, tenant=tenant)

    good = [event(tenant) for _ in range(3)]
    answer = batch(*good, good[0])
    assert answer.status_code == 200, answer.text
    outcomes = answer.json()["outcomes"]
    assert [each["duplicate"] for each in outcomes] == [False, False, False, True]
    assert outcomes[3]["event_id"] == outcomes[0]["event_id"]
    assert batch().status_code == 400
    assert batch(*[event(tenant) for _ in range(101)]).status_code == 400
    assert batch(*[event(tenant) for _ in range(100)]).status_code == 200
    known = event(tenant)
    assert batch(known, event(tenant, correlation_key="")).status_code == 400
    assert batch(known, event("somebody-else")).status_code == 403
    assert server.post("/events", known, tenant=tenant).status_code == 201  # nothing was written


def test_what_waits_is_resumed_by_what_fits(server, tenant):
    instance = listening(server, tenant)
    tell(server, tenant, correlation_key="order-2")
    tell(server, tenant, event_name="sent")
    assert server.get(f"/instances/{instance}", tenant=tenant).json()["state"] == "waiting"
    told = tell(server, tenant, producer_event_id="p-1", payload={"n": 5})
    assert told.json()["satisfied"] is True
    assert told.json()["matched_wait"]
    assert server.settle(instance) == "completed"
    made = output(server, tenant, instance)
    assert set(made) >= {
        "wait_id",
        "events",
        "all",
        "waiting_for",
        "correlation_key",
        "satisfied",
        "matched",
    }
    got = made["events"]["paid"]
    assert (got["event_name"], got["producer_event_id"]) == ("paid", "p-1")
    assert got["payload"] == {"n": 5}
    assert (made["satisfied"], made["correlation_key"]) == (True, "order-1")


def test_an_event_that_came_before_is_found(server, tenant):
    tell(server, tenant)
    block = step(
        "wait",
        "wait_for_event",
        params={"events": ["paid"], "correlation_key": "order-1"},
        wait_for_input={},
    )
    instance = server.instance(server.sequence(block, tenant=tenant), tenant=tenant)
    assert server.settle(instance) == "completed"


@pytest.mark.parametrize(
    ("params", "enough"),
    [
        ({"events": ["paid", "sent"]}, ["paid", "sent"]),
        ({"events": ["paid", "sent"], "join": "all"}, ["sent", "paid"]),
        ({"events": ["paid", "sent"], "join": "any"}, ["sent"]),
        ({"events": ["paid"], "join": "count", "count": 2}, ["paid", "paid"]),
    ],
)
def test_joins(server, tenant, params, enough):
    instance = listening(server, tenant, **params)
    for n, name in enumerate(enough):
        shown = server.get(f"/instances/{instance}", tenant=tenant).json()
        assert shown["state"] == "waiting", n
        tell(server, tenant, event_name=name)
    assert server.settle(instance) == "completed"
    assert len(output(server, tenant, instance)["all"]) == len(enough)


def test_events_are_listed_newest_first_and_shown(server, tenant):
    made = [tell(server, tenant, correlation_key=f"k{n}").json()["event_id"] for n in range(3)]
    rows = server.get("/events", tenant=tenant).json()
    assert {row["id"] for row in rows} == set(made)
    times = [row["received_at"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert set(rows[0]) >= {
        "id",
        "tenant_id",
        "event_name",
        "producer_event_id",
        "correlation_key",
        "payload",
        "status",
        "received_at",
    }
    assert server.get(f"/events/{made[0]}", tenant=tenant).json() in rows
    assert len(server.get("/events?limit=2", tenant=tenant).json()) == 2
    assert server.get(f"/events/{made[0]}", tenant="other").status_code == 404


def test_a_status_tells_who_took_it(server, tenant):
    instance = listening(server, tenant)
    taken = tell(server, tenant).json()["event_id"]
    server.settle(instance)
    kept = tell(server, tenant, correlation_key="nobody-waits").json()["event_id"]
    by = {row["id"]: row for row in server.get("/events", tenant=tenant).json()}
    assert (by[taken]["status"], by[kept]["status"]) == ("consumed", "pending")
    assert by[taken]["consumed_by"]
    found = server.get("/events?status=pending", tenant=tenant).json()
    assert [row["id"] for row in found] == [kept]


def test_what_looks_like_a_secret_in_a_payload_is_hidden_in_lists(server, tenant):
    tell(server, tenant, payload={"key": "sk_live_abcdefgh12345678", "password": "hunter2"})
    (row,) = server.get("/events", tenant=tenant).json()
    assert "sk_live_abcdefgh12345678" not in str(row)
