"""Bulk operations over HTTP (contract §15)."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid

import pytest

from detent.model import limits
from detent.web.api.settings import ApiSettings
from tests.integration.web.house import ROOT, house, instance_body, step

WAITING = {"type": "wait", "id": "w", "signal": "go"}
LATER = "2099-01-01T00:00:00Z"


@pytest.fixture
def tenant():
    return f"t{uuid.uuid4().hex}"


def states(server, tenant):
    rows = server.get("/instances?limit=1000", tenant=tenant).json()["items"]
    return {row["id"]: row["state"] for row in rows}


def crowd(server, tenant):
    """Two that wait, one that is scheduled, one that has failed, one that is completed."""
    waiting = server.sequence(WAITING, tenant=tenant)
    quick = server.sequence(tenant=tenant)
    bad = server.sequence(step("bad", "fail"), tenant=tenant)
    made = {
        "w1": server.instance(waiting, tenant=tenant, metadata={"team": "red", "n": 1}),
        "w2": server.instance(waiting, tenant=tenant, metadata={"team": "blue"}),
        "later": server.instance(quick, tenant=tenant, next_fire_at=LATER, namespace="nights"),
        "failed": server.instance(bad, tenant=tenant),
        "done": server.instance(quick, tenant=tenant),
    }
    for name in ("w1", "w2"):
        server.settle(made[name], "waiting")
    for name in ("failed", "done"):
        server.settle(made[name])
    return made, waiting


def set_state(server, tenant, state, /, *, header=None, **wanted):
    body = {"filter": wanted, "state": state}
    return server.patch("/instances/bulk/state", body, tenant=header or tenant)


# state -------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "CORE-STM-1")
def test_a_state_is_set_where_the_life_cycle_allows_it_and_nowhere_else(server, tenant):
    made, _ = crowd(server, tenant)
    told = set_state(server, tenant, "cancelled", tenant_id=tenant)
    assert (told.status_code, told.json()) == (200, {"count": 3})
    now = states(server, tenant)
    assert {name: now[id] for name, id in made.items()} == {
        "w1": "cancelled",
        "w2": "cancelled",
        "later": "cancelled",
        "failed": "failed",
        "done": "completed",
    }
    assert set_state(server, tenant, "cancelled").json() == {"count": 0}


@pytest.mark.req("SEQ-OPS-1")
def test_every_part_of_the_filter_narrows(server, tenant):
    made, waiting = crowd(server, tenant)
    count = lambda **wanted: set_state(server, tenant, "cancelled", **wanted).json()["count"]  # noqa: E731
    assert count(namespace="nowhere") == 0
    assert count(sequence_id=str(uuid.uuid4())) == 0
    assert count(states=["paused", "completed"]) == 0
    assert count(metadata={"team": "green"}) == 0
    assert count(metadata={"team": "red", "n": 2}) == 0
    assert count(metadata={"team": "red", "n": 1}, sequence_id=waiting, states=["waiting"]) == 1
    assert states(server, tenant)[made["w1"]] == "cancelled"
    assert count(namespace="nights") == 1
    assert states(server, tenant)[made["later"]] == "cancelled"
    assert states(server, tenant)[made["w2"]] == "waiting"


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {}, "state": "dancing"},
        {"filter": {}},
        {"state": "paused"},
        {"filter": {"states": ["dancing"]}, "state": "paused"},
        {"filter": {"metadata": 3}, "state": "paused"},
    ],
)
def test_a_body_of_another_shape_is_422(server, tenant, body):
    assert server.patch("/instances/bulk/state", body, tenant=tenant).status_code == 422


def test_a_filter_that_finds_too_many_is_refused_before_anything_is_done(
    server, tenant, monkeypatch
):
    crowd(server, tenant)
    before = states(server, tenant)
    monkeypatch.setattr(limits, "BULK_REACH", 4)
    refused = set_state(server, tenant, "cancelled")
    assert refused.status_code == 400
    assert "narrow it" in refused.json()["error"]
    assert states(server, tenant) == before
    monkeypatch.setattr(limits, "BULK_REACH", 5)
    assert set_state(server, tenant, "cancelled").json() == {"count": 3}


# due times ---------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1", "SEQ-TIM-1")
@pytest.mark.parametrize("offset", [3600, -3600])
def test_due_times_of_scheduled_instances_are_moved_either_way(server, tenant, offset):
    made, _ = crowd(server, tenant)
    body = {"filter": {"tenant_id": tenant}, "offset_secs": offset}
    told = server.patch("/instances/bulk/reschedule", body, tenant=tenant)
    assert (told.status_code, told.json()) == (200, {"count": 1})
    shown = server.get(f"/instances/{made['later']}", tenant=tenant).json()["next_fire_at"]
    moved = dt.datetime.fromisoformat(shown) - dt.datetime.fromisoformat(LATER)
    assert moved.total_seconds() == pytest.approx(offset, abs=1)
    assert states(server, tenant)[made["w1"]] == "waiting"


@pytest.mark.parametrize("more", [{}, {"offset_secs": "1h"}, {"offset_secs": 1.5}])
def test_a_missing_offset_is_422(server, tenant, more):
    body = {"filter": {"tenant_id": tenant}, **more}
    assert server.patch("/instances/bulk/reschedule", body, tenant=tenant).status_code == 422


def test_an_offset_beyond_any_duration_is_400(server, tenant):
    body = {"filter": {"tenant_id": tenant}, "offset_secs": 2**62}
    assert server.patch("/instances/bulk/reschedule", body, tenant=tenant).status_code == 400


# actions -----------------------------------------------------------------------------------------


def act(server, tenant, action, **more):
    body = {"filter": {"tenant_id": tenant}, "action": action, **more}
    return server.post("/instances/batch-action", body, tenant=tenant)


@pytest.mark.req("SEQ-OPS-1")
def test_an_action_says_what_it_matched_applied_and_skipped(server, tenant):
    made, _ = crowd(server, tenant)
    counted = act(server, tenant, "cancel", dry_run=True)
    assert counted.status_code == 200
    assert counted.json() == {
        "matched": 5,
        "applied": 0,
        "skipped": 0,
        "failed": 0,
        "dry_run": True,
    }
    assert states(server, tenant)[made["w1"]] == "waiting"
    done = act(server, tenant, "cancel", limit=2)
    assert done.json() == {
        "matched": 2,
        "applied": 2,
        "skipped": 0,
        "failed": 0,
        "dry_run": False,
    }
    rest = act(server, tenant, "cancel").json()
    assert (rest["matched"], rest["applied"], rest["skipped"]) == (5, 1, 4)
    row = server.get(f"/instances/{made['w1']}/audit", tenant=tenant).json()[0]
    assert (row["event_type"], row["from_state"]) == ("batch_action", "waiting")
    assert row["details"]["action"] == "cancel"


@pytest.mark.req("SEQ-OPS-1", "SEQ-SIG-1")
def test_failed_ones_are_retried_paused_ones_resumed_and_waiting_ones_signalled(server, tenant):
    made, _ = crowd(server, tenant)
    assert act(server, tenant, "retry").json()["applied"] == 1
    server.settle(made["failed"], "failed")
    assert act(server, tenant, "pause").json()["applied"] == 3
    assert states(server, tenant)[made["later"]] == "paused"
    assert act(server, tenant, "resume").json()["applied"] == 3
    go = {"signal_type": {"custom": "go"}, "payload": {"by": "bulk"}}
    sent = act(server, tenant, "signal", **go).json()
    assert (sent["matched"], sent["applied"], sent["skipped"]) == (5, 3, 2)
    assert server.settle(made["w1"]) == "completed"
    rows = server.get(f"/instances/{made['w1']}/outputs", tenant=tenant).json()
    assert rows[-1]["output"] == {"by": "bulk"}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"action": "signal"}, 400),
        ({"action": "signal", "signal_type": "dance"}, 422),
        ({"action": "dance"}, 422),
        ({"action": "cancel", "limit": 0}, 400),
        ({"action": "cancel", "limit": 10_001}, 400),
        ({"action": "cancel", "limit": "many"}, 422),
        ({"action": "cancel", "filter": None}, 422),
    ],
)
def test_what_is_no_action_is_refused_and_nothing_happens(server, tenant, more, status):
    made, _ = crowd(server, tenant)
    before = states(server, tenant)
    answer = server.post(
        "/instances/batch-action", {"filter": {"tenant_id": tenant}, **more}, tenant=tenant
    )
    assert answer.status_code == status, answer.text
    assert states(server, tenant) == before
    assert made


# tenants -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_nobody_reaches_another_tenants_instances(server, tenant):
    made, waiting = crowd(server, tenant)
    other = f"{tenant}x"
    mine = server.instance(server.sequence(WAITING, tenant=other), tenant=other)
    server.settle(mine, "waiting")
    for wanted in ({"tenant_id": tenant}, {"sequence_id": waiting}):
        assert set_state(server, other, "cancelled", **wanted).json() == {"count": 0}
        body = {"filter": wanted, "action": "cancel"}
        told = server.post("/instances/batch-action", body, tenant=other).json()
        assert told["matched"] == 0
    assert states(server, other) == {mine: "waiting"}
    assert states(server, tenant)[made["w1"]] == "waiting"
    assert set_state(server, other, "cancelled").json() == {"count": 1}
    assert states(server, tenant)[made["w1"]] == "waiting"


def test_the_operator_must_say_whose_instances_are_meant(tmp_path):
    free = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=free) as server:
        instance = server.instance(server.sequence(WAITING))
        server.settle(instance, "waiting")
        calls = (
            ("PATCH", "/instances/bulk/state", {"state": "cancelled"}),
            ("PATCH", "/instances/bulk/reschedule", {"offset_secs": 1}),
            ("POST", "/instances/batch-action", {"action": "cancel"}),
        )
        for method, path, body in calls:
            answer = server.call(method, path, {"filter": {}, **body}, tenant="")
            assert answer.status_code == 400, path
            assert "tenant" in answer.json()["error"]
        named = {"filter": {"tenant_id": "acme"}, "state": "cancelled"}
        told = server.patch("/instances/bulk/state", named, tenant="")
        assert told.json() == {"count": 1}


@pytest.mark.req("SEQ-OPS-1")
def test_in_the_engines_own_words_a_tenant_reaches_its_own_and_the_operator_all(tmp_path):
    free = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with house(tmp_path / "s.db", api=free) as server:
        made = {}
        for tenant in ("a", "b"):
            made[tenant] = server.instance(server.sequence(WAITING, tenant=tenant), tenant=tenant)
            server.settle(made[tenant], "waiting")
        path, asked = "/instances/bulk", {"action": "set_state", "args": {"state": "paused"}}
        foreign = server.post(path, {**asked, "where": {"tenant": "a"}}, tenant="b").json()
        assert (foreign["matched"], states(server, "a")) == (0, {made["a"]: "waiting"})
        assert server.post(path, asked, tenant="b").json()["matched"] == 1
        assert states(server, "a") == {made["a"]: "waiting"}
        counted = server.post(path, {**asked, "dry_run": True}, tenant="").json()
        assert (counted["matched"], counted["applied"]) == (2, 0)
        told = {"action": "cancel", "where": {"states": ["waiting", "paused"]}}
        assert server.post(path, told, tenant="").json()["applied"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {"action": "explode"},
        {"action": "cancel", "where": {"colour": "red"}},
        {"action": "cancel", "where": {"states": ["asleep"]}},
        {"action": "cancel", "limit": 0},
        {"action": "signal"},
        {"action": "set_state", "args": {"state": "asleep"}},
        {"action": "set_state", "args": {"state": "scheduled", "next_fire_at": "soon"}},
        {"action": "reschedule", "args": {"offset_ms": "1h"}},
    ],
)
def test_in_the_engines_own_words_too_what_is_wrong_is_refused(server, tenant, body):
    crowd(server, tenant)
    before = states(server, tenant)
    answer = server.post("/instances/bulk", body, tenant=tenant)
    assert answer.status_code in (400, 422), answer.text
    assert states(server, tenant) == before


# many --------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_a_thousand_are_changed_in_one_call_while_others_are_served(server, tenant):
    sequence = server.sequence(WAITING, tenant=tenant)
    item = instance_body(sequence, tenant_id=tenant, next_fire_at=LATER)
    made = server.post("/instances/batch", {"instances": [item] * 1_000}, tenant=tenant)
    assert made.json() == {"count": 1_000}
    told = []
    threads = threading.active_count()

    def cancel():
        told.append(set_state(server, tenant, "cancelled"))

    bulk = threading.Thread(target=cancel)
    bulk.start()
    longest = 0.0
    answers = 0
    while bulk.is_alive():
        begun = time.perf_counter()
        assert server.get("/info", tenant="").status_code == 200
        assert server.get(f"/sequences/{sequence}", tenant=tenant).status_code == 200
        longest = max(longest, time.perf_counter() - begun)
        answers += 1
        assert threading.active_count() < threads + 20  # the engine's own, none per instance
    bulk.join()
    assert told[0].json() == {"count": 1_000}
    assert answers > 1
    assert longest < 2
    assert set(states(server, tenant).values()) == {"cancelled"}
