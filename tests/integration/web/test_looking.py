"""Budgets, inputs of blocks and groups of dead letters over HTTP (contract §8 and §10)."""

from __future__ import annotations

import uuid

import pytest

from detent.model import limits
from tests.integration.web.house import instance_body, step

WAITING = {"type": "wait", "id": "w", "signal": "go"}


# budgets -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_a_budget_is_taken_shown_and_pauses_with_its_reason(server):
    sequence = server.sequence(step("a"), step("b"), step("c"))
    budget = {"max_steps": 2, "max_total_tokens": None, "unknown": 1}
    instance = server.instance(sequence, budget=budget, metadata={"own": "m"})
    assert server.settle(instance, "paused") == "paused"
    shown = server.shown(instance)
    assert shown["budget"] == {"max_steps": 2}
    assert shown["paused_reason"] == "budget_exceeded"
    assert shown["metadata"]["paused_reason"] == "budget_exceeded"
    assert shown["metadata"]["own"] == "m"
    assert shown["metadata"]["budget_breach"] == {"limit": "max_steps", "max": 2, "used": 2}
    assert server.post(f"/instances/{instance}/resume").status_code == 200
    assert server.settle(instance) == "completed"
    assert server.shown(instance)["metadata"] == {"own": "m"}
    plain = server.instance(sequence)
    assert "budget" not in server.shown(plain)


@pytest.mark.parametrize(
    ("budget", "status"),
    [({"max_steps": -1}, 400), ({"max_steps": 1.5}, 422), ({"max_steps": "2"}, 422), (7, 422)],
)
def test_a_budget_that_is_none_is_refused(server, budget, status):
    body = instance_body(server.sequence(), budget=budget)
    assert server.post("/instances", body).status_code == status


# looking -----------------------------------------------------------------------------------------


def test_the_input_of_a_block_is_traced_as_it_was_seen(server):
    params = {"to": "{{data.mail}}", "key": "{{data.key}}", "gone": "{{data.none|x}}"}
    sequence = server.sequence(step("send", "transform", params=params), WAITING, step("later"))
    data = {"mail": "ada@example.org", "key": "sk_live_1234567890abcdef"}
    instance = server.instance(sequence, data)
    server.settle(instance, "waiting")
    server.patch(f"/instances/{instance}/context", {"context": {"data": {"mail": "new"}}})
    told = server.get(f"/instances/{instance}/blocks/send/resolved-input").json()
    assert told["result"] == {"to": "ada@example.org", "key": "[REDACTED]", "gone": "x"}
    assert (told["block_id"], told["handler"], told["node"]) == ("send", "transform", "send")
    entries = {entry["param_path"]: entry for entry in told["entries"]}
    assert entries["to"]["source"] == "data.mail"
    assert entries["key"]["status"] == "redacted"
    assert entries["gone"]["fallback_used"] is True
    later = server.get(f"/instances/{instance}/blocks/later/resolved-input").json()
    assert (later["node"], later["result"], later["entries"]) == (None, None, [])
    for block in ("nobody", "w"):
        unknown = server.get(f"/instances/{instance}/blocks/{block}/resolved-input")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "block.not_found")


def test_the_input_of_a_block_in_a_loop_is_that_of_its_last_round(server):
    each = {
        "type": "for_each",
        "id": "f",
        "collection": "items",
        "body": [step("s", "transform", params={"v": "{{data.item}}"})],
    }
    instance = server.instance(server.sequence(each), {"items": [1, 2, 3]})
    server.settle(instance)
    told = server.get(f"/instances/{instance}/blocks/s/resolved-input").json()
    assert told["result"] == {"v": 3}
    hidden = step("s", "transform", params={"v": "{{data.a}}"}, context_access={"data": False})
    blind = server.instance(server.sequence(hidden), {"a": 1})
    server.settle(blind)
    told = server.get(f"/instances/{blind}/blocks/s/resolved-input").json()
    assert told["result"] == {"v": None}


def test_dead_letters_are_grouped_by_what_they_died_of(server, monkeypatch):
    tenant = f"t{uuid.uuid4().hex}"
    asserting = step("check", "assert", params={"condition": "data.ok"})
    one = server.sequence(step("pay", "fail", params={"message": "no money"}), tenant=tenant)
    two = server.sequence(asserting, tenant=tenant)
    dead = [server.instance(one, tenant=tenant) for _ in range(3)]
    dead.append(server.instance(two, {"ok": False}, tenant=tenant))
    for instance in dead:
        assert server.settle(instance) == "failed"
    groups = server.get("/instances/dlq/groups", tenant=tenant).json()
    assert [(group["block_id"], group["count"]) for group in groups] == [("pay", 3), ("check", 1)]
    first = groups[0]
    assert (first["sequence_id"], first["message"]) == (one, "no money")
    assert first["instance_ids"] == dead[2::-1]
    assert first["error_code"]
    assert first["first_failed_at"] <= first["last_failed_at"]
    assert first["fingerprint"] != groups[1]["fingerprint"]
    only = server.get(f"/instances/dlq/groups?sequence_id={two}", tenant=tenant).json()
    assert only == groups[1:]
    assert server.get("/instances/dlq/groups", tenant=f"{tenant}x").json() == []
    assert server.get("/instances/dlq/groups?limit=0", tenant=tenant).status_code == 400
    monkeypatch.setattr(limits, "DEAD_LETTERS_GROUPED", 3)
    newest = server.get("/instances/dlq/groups", tenant=tenant).json()
    assert [group["count"] for group in newest] == [2, 1]
    assert server.get(f"/instances/dlq/groups?tenant_id={tenant}", tenant="other").json() == []
