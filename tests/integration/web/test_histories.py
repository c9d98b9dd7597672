"""What an instance has done, over HTTP (contract §11)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step

PARALLEL = {"type": "parallel", "id": "p", "branches": [[step("a")], [step("b")]]}


@pytest.fixture(scope="module")
def done(server):
    """A completed instance of a log step and a composite."""
    sequence = server.sequence(
        step("say", "log", params={"message": "hi", "level": "warn"}), PARALLEL
    )
    instance = server.instance(sequence)
    server.settle(instance)
    return instance


@pytest.mark.req("SEQ-BLK-7")
def test_outputs_and_tree_are_shown(server, done):
    outputs = server.get(f"/instances/{done}/outputs").json()
    assert [row["block_id"] for row in outputs] == ["say", "a", "b"]
    assert outputs[0]["output"] == {"message": "hi"}
    assert outputs[0]["output_ref"] is None
    assert len({row["id"] for row in outputs}) == 3
    nodes = {node["block_id"]: node for node in server.get(f"/instances/{done}/tree").json()}
    assert {node["state"] for node in nodes.values()} == {"completed"}
    assert nodes["a"]["parent_id"] == nodes["p"]["id"]
    assert nodes["b"]["branch_index"] == 1


def test_audit_logs_timeline_and_effects_are_shown(server, done):
    changes = server.get(f"/instances/{done}/audit").json()
    assert changes[0]["event_type"] == "state_transition"
    assert changes[0]["to_state"] == "completed"
    every = server.get(f"/instances/{done}/audit?all=true").json()
    assert len(every) > len(changes)
    logs = server.get(f"/instances/{done}/logs").json()
    assert [(line["block_id"], line["level"], line["message"]) for line in logs] == [
        ("say", "warn", "hi")
    ]
    timeline = server.get(f"/instances/{done}/timeline?limit=1").json()
    assert timeline["has_more"] is True
    assert timeline["state_transitions"][-1]["to_state"] == "completed"
    assert server.get(f"/instances/{done}/effects").json() == []
    assert server.get(f"/instances/{done}/replay").json()["identical"] is True


@pytest.mark.parametrize(
    "what", ["outputs", "tree", "audit", "logs", "timeline", "effects", "explain", "replay"]
)
def test_nobody_elses_history_is_shown(server, done, what):
    assert server.get(f"/instances/{done}/{what}", tenant="other").status_code == 404
    assert server.get(f"/instances/{uuid.uuid4()}/{what}").status_code == 404


@pytest.mark.req("CORE-EXP-1")
def test_a_waiting_instance_is_explained(server):
    instance = server.instance(server.sequence({"type": "wait", "id": "w", "signal": "go"}))
    server.settle(instance, "waiting")
    told = server.get(f"/instances/{instance}/explain").json()
    assert "go" in told["summary"]
    assert told["earliest_at"] is None


def test_a_template_is_traced(server):
    body = {"template": "Dear {{data.name|you}}", "context_data": {"name": "Ada"}}
    told = server.post("/debug/template", body, tenant="").json()
    assert told["result"] == "Dear Ada"
    assert told["entries"][0]["source"] == "data.name"
    hidden = {"template": "{{data.key}}", "context_data": {"key": "sk_live_1234567890abcdef"}}
    assert server.post("/debug/template", hidden).json()["result"] == "[REDACTED]"
    broken = server.post("/debug/template", {"template": "{{nope.x}}"}).json()
    assert "result" not in broken
    assert broken["error"]
