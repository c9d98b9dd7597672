"""Bulk operations (contract §15)."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("15")

LATER = "2099-01-01T00:00:00Z"
WAIT = {"type": "wait", "id": "w", "signal": "x"}


@pytest.fixture
def many(server, tenant):
    """Three scheduled, two waiting, one failed, one completed."""
    plain = server.sequence(tenant=tenant)
    made = {
        "scheduled": [
            server.instance(plain, tenant=tenant, next_fire_at=LATER, metadata={"n": n})
            for n in range(3)
        ],
        "waiting": [
            server.instance(server.sequence(WAIT, tenant=tenant), tenant=tenant) for _ in range(2)
        ],
        "failed": [
            server.instance(server.sequence(step("f", "fail"), tenant=tenant), tenant=tenant)
        ],
        "completed": [server.instance(plain, tenant=tenant)],
    }
    for state, ids in made.items():
        for id in ids:
            server.settle(id, state)
    return made | {"sequence": plain}


def states(server, ids, tenant):
    return [server.get(f"/instances/{id}", tenant=tenant).json()["state"] for id in ids]


def test_a_state_is_set_where_the_life_cycle_allows_it(server, tenant, many):
    body = {"filter": {"tenant_id": tenant, "states": ["scheduled"]}, "state": "paused"}
    answer = server.patch("/instances/bulk/state", body, tenant=tenant)
    assert (answer.status_code, answer.json()) == (200, {"count": 3})
    assert set(states(server, many["scheduled"], tenant)) == {"paused"}
    everybody = {"filter": {}, "state": "cancelled"}
    assert server.patch("/instances/bulk/state", everybody, tenant=tenant).json() == {"count": 5}
    assert states(server, many["completed"] + many["failed"], tenant) == ["completed", "failed"]


def test_filters_narrow(server, tenant, many):
    def count(**given):
        body = {"filter": given, "action": "pause", "dry_run": True}
        return server.post("/instances/batch-action", body, tenant=tenant).json()["matched"]

    assert count() == 7
    assert count(states=["failed", "waiting"]) == 3
    assert count(sequence_id=many["sequence"]) == 4
    assert count(metadata={"n": 1}) == 1
    assert count(metadata={"n": 9}) == 0
    assert count(namespace="nowhere") == 0
    assert count(states=[]) == 7


def test_a_due_time_is_moved_for_those_that_are_scheduled(server, tenant, many):
    def due(id):
        shown = server.get(f"/instances/{id}", tenant=tenant).json()
        return dt.datetime.fromisoformat(shown["next_fire_at"])

    first = many["scheduled"][0]
    before = due(first)
    body = {"filter": {"tenant_id": tenant}, "offset_secs": 3600}
    answer = server.patch("/instances/bulk/reschedule", body, tenant=tenant)
    assert (answer.status_code, answer.json()) == (200, {"count": 3})
    assert abs((due(first) - before).total_seconds() - 3600) < 1
    back = {"filter": {"metadata": {"n": 0}}, "offset_secs": -7200}
    assert server.patch("/instances/bulk/reschedule", back, tenant=tenant).json() == {"count": 1}
    assert abs((before - due(first)).total_seconds() - 3600) < 1


def act(server, tenant, action, **more):
    body = {"filter": {"tenant_id": tenant}, "action": action, **more}
    answer = server.post("/instances/batch-action", body, tenant=tenant)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"matched", "applied", "skipped", "failed", "dry_run"}
    return answer.json()


def test_an_action_is_counted_and_audited(server, tenant, many):
    told = act(server, tenant, "pause", filter={"states": ["scheduled"]})
    assert told == {"matched": 3, "applied": 3, "skipped": 0, "failed": 0, "dry_run": False}
    audit = server.get(f"/instances/{many['scheduled'][0]}/audit", tenant=tenant).json()
    (row,) = [each for each in audit if each["event_type"] == "batch_action"]
    assert row["details"]["action"] == "pause"
    assert row["from_state"] == "scheduled"
    assert act(server, tenant, "resume", filter={"states": ["paused"]})["applied"] == 3
    assert act(server, tenant, "retry")["applied"] == 1
    told = act(server, tenant, "cancel", filter={"states": ["completed"]})
    assert (told["matched"], told["applied"], told["skipped"]) == (1, 0, 1)


def test_a_signal_is_sent_to_all_that_can_take_it(server, tenant, many):
    told = act(server, tenant, "signal", signal_type={"custom": "x"}, payload={"n": 1})
    assert (told["matched"], told["applied"]) == (7, 5)
    for id in many["waiting"]:
        assert server.settle(id) == "completed"
    missing = {"filter": {}, "action": "signal"}
    assert server.post("/instances/batch-action", missing, tenant=tenant).status_code == 400


def test_a_dry_run_changes_nothing_and_a_limit_cuts(server, tenant, many):
    told = act(server, tenant, "cancel", dry_run=True)
    assert (told["matched"], told["applied"], told["dry_run"]) == (7, 0, True)
    assert set(states(server, many["scheduled"], tenant)) == {"scheduled"}
    assert act(server, tenant, "pause", limit=2)["matched"] == 2
    for limit in (0, 10_001, -1):
        body = {"filter": {}, "action": "pause", "limit": limit}
        assert server.post("/instances/batch-action", body, tenant=tenant).status_code == 400


def test_another_tenants_filter_reaches_nobody(server, tenant, many):
    body = {"filter": {"tenant_id": tenant}, "state": "cancelled"}
    answer = server.patch("/instances/bulk/state", body, tenant="somebody-else")
    assert answer.status_code in (200, 403)
    assert set(states(server, many["scheduled"], tenant)) == {"scheduled"}
    if answer.status_code == 200:
        assert answer.json() == {"count": 0}


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {}, "state": "dancing"},
        {"filter": {"states": ["dancing"]}, "state": "paused"},
        {"state": "paused"},
        {"filter": {}},
    ],
)
def test_what_cannot_be_read_is_422(server, body):
    assert server.patch("/instances/bulk/state", body).status_code == 422
