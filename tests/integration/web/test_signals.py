"""Signals, approvals, retries and decisions over HTTP (contract §12 to §14)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step

WAITING = {"type": "wait", "id": "w", "signal": "go", "store_as": "answer"}


@pytest.fixture
def waiting(server):
    instance = server.instance(server.sequence(WAITING))
    server.settle(instance, "waiting")
    return instance


@pytest.mark.req("SEQ-SIG-1", "SEQ-SIG-2")
@pytest.mark.parametrize("kind", [{"custom": "go"}, "custom:go"])
def test_a_custom_signal_is_taken(server, waiting, kind):
    sent = server.post(f"/instances/{waiting}/signals", {"signal_type": kind, "payload": {"n": 1}})
    assert sent.status_code == 201
    assert sent.json()["signal_id"]
    assert server.settle(waiting) == "completed"
    assert server.get(f"/instances/{waiting}").json()["context"]["data"] == {"answer": {"n": 1}}


@pytest.mark.req("SEQ-SIG-1")
def test_control_words_do_what_they_say(server, waiting):
    path = f"/instances/{waiting}/signals"
    merged = {"signal_type": "update_context", "payload": {"data": {"a": 1}}}
    assert server.post(path, merged).status_code == 201
    assert server.get(f"/instances/{waiting}").json()["context"]["data"] == {"a": 1}
    assert server.post(path, {"signal_type": "update_context", "payload": 3}).status_code == 422
    assert server.post(path, {"signal_type": "cancel"}).status_code == 201
    assert server.settle(waiting) == "cancelled"
    late = server.post(path, {"signal_type": "pause"})
    assert late.status_code == 400
    assert late.json()["code"] == "instance.terminal"


@pytest.mark.parametrize("kind", ["", "dance", {"custom": ""}, {"other": "x"}, 3, None])
def test_no_signal_is_made_up(server, waiting, kind):
    answer = server.post(f"/instances/{waiting}/signals", {"signal_type": kind})
    assert answer.status_code == 422, answer.text


def test_a_signal_for_nobody_is_not_found(server, waiting):
    body = {"signal_type": "cancel"}
    assert server.post(f"/instances/{uuid.uuid4()}/signals", body).status_code == 404
    foreign = server.post(f"/instances/{waiting}/signals", body, tenant="other")
    assert foreign.status_code == 404
    assert server.get(f"/instances/{waiting}").json()["state"] == "waiting"


def test_a_question_is_listed_until_it_is_answered(server):
    tenant = f"t{uuid.uuid4().hex}"
    asking = step("ask", wait_for_input={"prompt": "Sure?", "timeout": 3_600_000})
    instance = server.instance(server.sequence(asking, tenant=tenant), tenant=tenant)
    server.settle(instance, "waiting")
    listed = server.get("/approvals", tenant=tenant).json()
    assert listed["total"] == 1
    item = listed["items"][0]
    assert (item["instance_id"], item["prompt"], item["block_id"]) == (instance, "Sure?", "ask")
    assert [choice["value"] for choice in item["choices"]] == ["yes", "no"]
    assert item["deadline"] is not None
    assert server.get("/approvals", tenant="other").json()["items"] == []
    answer = {"signal_type": {"custom": "human_input:ask"}, "payload": {"value": "yes"}}
    server.post(f"/instances/{instance}/signals", answer, tenant=tenant)
    server.settle(instance)
    assert server.get("/approvals", tenant=tenant).json() == {"items": [], "total": 0}


def test_only_a_failed_instance_is_retried(server, waiting):
    failed = server.instance(server.sequence(step("ok"), step("bad", "fail")))
    assert server.settle(failed) == "failed"
    assert failed in [row["id"] for row in server.get("/instances/dlq").json()]
    again = server.post(f"/instances/{failed}/retry")
    assert (again.status_code, again.json()) == (200, {"id": failed, "state": "scheduled"})
    rows = server.get(f"/instances/{failed}/outputs").json()
    assert [row["block_id"] for row in rows].count("ok") == 1
    assert server.post(f"/instances/{waiting}/retry").status_code == 400
