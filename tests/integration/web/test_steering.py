"""Setting the state and the data of one instance over HTTP (contract §10.4)."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from detent.model import limits
from tests.integration.web.house import step

WAITING = {"type": "wait", "id": "w", "signal": "go"}
LATER = "2099-01-01T00:00:00.000000Z"


@pytest.fixture
def waiting(server):
    instance = server.instance(server.sequence(WAITING, step("after")), {"n": 1})
    server.settle(instance, "waiting")
    return instance


@pytest.fixture
def failed(server):
    sequence = server.sequence(
        step("a", "transform", params={"n": "{{data.n}}"}),
        step("check", "assert", params={"condition": "data.n > 0"}),
        step("b", "transform", params={"twice": "{{data.n}}"}),
    )
    instance = server.instance(sequence, {"n": -1})
    assert server.settle(instance) == "failed"
    return instance


# state -------------------------------------------------------------------------------------------


@pytest.mark.req("CORE-STM-1", "SEQ-OPS-1")
def test_a_state_is_set_as_the_life_cycle_allows_and_is_audited(server):
    instance = server.instance(server.sequence(), next_fire_at=LATER)
    path = f"/instances/{instance}/state"
    paused = server.patch(path, {"state": "paused"})
    assert (paused.status_code, paused.content) == (200, b"")
    assert server.shown(instance)["state"] == "paused"
    assert server.shown(instance)["next_fire_at"] is None
    due = "2098-05-05T10:00:00"
    assert server.patch(path, {"state": "scheduled", "next_fire_at": due}).status_code == 200
    shown = server.shown(instance)
    assert (shown["state"], shown["next_fire_at"]) == ("scheduled", "2098-05-05T10:00:00.000000Z")
    moved = [row["to_state"] for row in server.get(f"/instances/{instance}/audit").json()]
    assert moved[:2] == ["scheduled", "paused"]
    assert server.patch(path, {"state": "cancelled"}).status_code == 200
    assert server.shown(instance)["state"] == "cancelled"


@pytest.mark.req("CORE-STM-1")
@pytest.mark.parametrize("wanted", ["paused", "running", "waiting"])
def test_an_illegal_move_is_400_and_changes_nothing(server, waiting, wanted):
    refused = server.patch(f"/instances/{waiting}/state", {"state": wanted})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("invalid argument: ")
    assert refused.json()["code"] == "instance.transition"
    assert server.shown(waiting)["state"] == "waiting"


@pytest.mark.parametrize("body", [{"state": "dancing"}, {"state": None}, {}, {"state": 3}])
def test_an_unknown_state_is_422(server, waiting, body):
    assert server.patch(f"/instances/{waiting}/state", body).status_code == 422
    assert server.shown(waiting)["state"] == "waiting"


@pytest.mark.req("CORE-STM-1")
def test_what_has_completed_never_moves_again(server):
    done = server.instance(server.sequence())
    server.settle(done)
    for wanted in ("scheduled", "paused", "failed", "cancelled"):
        refused = server.patch(f"/instances/{done}/state", {"state": wanted})
        assert refused.status_code == 400, wanted
    assert server.shown(done)["state"] == "completed"


@pytest.mark.req("SEQ-BLK-6")
def test_a_child_driven_to_its_end_wakes_its_waiting_parent(server):
    name = f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(WAITING, name=name)
    parent = server.instance(
        server.sequence({"type": "sub_sequence", "id": "sub", "sequence_name": name}, step("s"))
    )
    server.settle(parent, "waiting")
    (child,) = server.get(f"/instances/{parent}/children").json()
    assert child["parent_instance_id"] == parent
    server.settle(child["id"], "waiting")
    assert server.patch(f"/instances/{child['id']}/state", {"state": "failed"}).status_code == 200
    assert server.settle(parent) == "failed"


# context -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-CTX-1")
def test_a_context_replaces_data_and_nothing_else(server, waiting):
    path = f"/instances/{waiting}/context"
    before = server.shown(waiting)["context"]
    given = {
        "data": {"new": [1]},
        "config": {"evil": True},
        "audit": [{"event": "never"}],
        "runtime": {"attempt": 99},
    }
    answer = server.patch(path, {"context": given})
    assert (answer.status_code, answer.content) == (200, b"")
    after = server.shown(waiting)["context"]
    assert after["data"] == {"new": [1]}
    assert after["config"] == before["config"]
    assert after["runtime"] == before["runtime"]
    assert after["audit"][: len(before["audit"])] == before["audit"]
    assert after["audit"][-1]["event"] == "data.replaced"


@pytest.mark.req("SEQ-CTX-1")
def test_data_is_replaced_after_the_end_too(server, failed):
    done = server.instance(server.sequence())
    server.settle(done)
    for instance, now in ((done, "completed"), (failed, "failed")):
        body = {"context": {"data": {"late": 1}}}
        assert server.patch(f"/instances/{instance}/context", body).status_code == 200
        shown = server.shown(instance)
        assert (shown["state"], shown["context"]["data"]) == (now, {"late": 1})


def test_data_that_is_too_large_is_413_and_what_is_no_context_is_422(server, waiting):
    path = f"/instances/{waiting}/context"
    fits = {"v": "x" * 150_000}
    assert server.patch(path, {"context": {"data": fits}}).status_code == 200
    large = server.patch(path, {"context": {"data": {"v": "x" * limits.CONTEXT_BYTES}}})
    assert large.status_code == 413
    assert large.json()["error"].startswith("payload too large: ")
    for body in ({}, {"context": 3}, {"context": None}):
        assert server.patch(path, body).status_code == 422
    assert server.shown(waiting)["context"]["data"] == fits


@pytest.mark.req("SEQ-CTX-1")
def test_the_audit_of_a_context_is_the_end_of_the_journal_in_order(server):
    steps = [step(f"s{n}") for n in range(60)]
    instance = server.instance(server.sequence(*steps))
    server.settle(instance)
    entries = server.shown(instance)["context"]["audit"]
    assert len(entries) == limits.AUDIT_SHOWN
    assert list(entries[0]) == ["timestamp", "event", "details"]
    assert entries[-1]["event"] == "run.completed"
    assert entries[-1]["details"]["to"] == "completed"
    stamps = [entry["timestamp"] for entry in entries]
    assert stamps == sorted(stamps)
    listed = server.get(f"/instances/{instance}/audit?all=true").json()
    assert [row["created_at"] for row in listed[: len(entries)]][::-1] == stamps


# pause, resume, cancel ---------------------------------------------------------------------------


@pytest.mark.req("SEQ-SIG-1", "CORE-STM-7")
def test_short_ways_to_pause_resume_and_cancel_tell_the_verdict(server):
    instance = server.instance(server.sequence(), next_fire_at=LATER)
    path = f"/instances/{instance}"
    assert server.post(f"{path}/resume").status_code == 400
    paused = server.post(f"{path}/pause")
    assert (paused.status_code, paused.json()) == (200, {"id": instance, "state": "paused"})
    assert server.post(f"{path}/pause").status_code == 400
    assert server.post(f"{path}/resume").json()["state"] == "scheduled"
    assert server.post(f"{path}/cancel").json()["state"] == "cancelled"
    again = server.post(f"{path}/cancel")
    assert (again.status_code, again.json()["code"]) == (400, "instance.transition")


# nobody else's -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "state", {"state": "cancelled"}),
        ("PATCH", "context", {"context": {"data": 1}}),
        ("POST", "resume-from/w", {}),
        ("POST", "fork", {"from_block_id": "w"}),
        ("POST", "inject-blocks", {"blocks": [step("x")]}),
        ("POST", "pause", None),
        ("POST", "resume", None),
        ("POST", "cancel", None),
        ("GET", "blocks/after/resolved-input", None),
    ],
)
def test_nobody_steers_what_is_not_theirs(server, waiting, method, path, body):
    for instance, tenant in ((waiting, "other"), (str(uuid.uuid4()), "acme")):
        answer = server.call(method, f"/instances/{instance}/{path}", body, tenant=tenant)
        assert answer.status_code == 404, answer.text
        assert answer.json()["code"] == "instance.not_found"
    assert server.call(method, f"/instances/nonsense/{path}", body).status_code == 400
    shown = server.shown(waiting)
    assert (shown["state"], shown["context"]["data"]) == ("waiting", {"n": 1})


def test_times_are_instants_of_utc(server, waiting):
    shown = server.shown(waiting)
    since = shown["context"]["runtime"]["current_step_started_at"]
    assert since is None  # a wait is no step
    sleeper = server.instance(server.sequence(step("z", "sleep", params={"duration_ms": 60_000})))
    server.settle(sleeper, "running")
    runtime = server.shown(sleeper)["context"]["runtime"]
    assert runtime["current_step"] == "z"
    assert dt.datetime.fromisoformat(runtime["current_step_started_at"]).tzinfo is not None
    assert runtime["run_id"]
