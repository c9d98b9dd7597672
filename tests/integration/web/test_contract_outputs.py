"""Outputs, tree, audit and questions for people, told by the served API (contract §11 and §14)."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import house, step

ASK = {"prompt": "Go?"}


def asking(id="ask", handler="noop", **options):
    return step(id, handler, wait_for_input={**ASK, **options})


def answer(server, instance, value, block="ask"):
    payload = value if isinstance(value, dict) else {"value": value}
    server.signal(instance, f"human_input:{block}", payload)


def waiting(server, *blocks, **fields):
    instance = server.instance(server.sequence(*blocks), **fields)
    server.settle(instance, "waiting")
    return instance


def rows(server, instance):
    return server.get(f"/instances/{instance}/outputs").json()


# outputs -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-7")
def test_an_output_row_has_every_field_of_the_contract(server):
    instance = server.instance(server.sequence(step("a"), step("b", "log")))
    server.settle(instance)
    first, second = rows(server, instance)
    assert list(first) == [
        "id",
        "instance_id",
        "block_id",
        "output",
        "output_ref",
        "output_size",
        "attempt",
        "created_at",
    ]
    assert (first["output"], first["output_ref"], first["attempt"]) == ({}, None, 0)
    assert first["output_size"] == 2
    assert first["created_at"] <= second["created_at"]
    assert second["output"] == {"message": "no message"}


def test_outputs_are_there_while_it_runs_and_for_nobody_that_is_not(server):
    instance = waiting(server, step("a"), {"type": "wait", "id": "w", "signal": "go"})
    assert [row["block_id"] for row in rows(server, instance)] == ["a"]
    for what in ("outputs", "tree", "audit"):
        assert server.get(f"/instances/{uuid.uuid4()}/{what}").status_code == 404


@pytest.mark.req("SEQ-BLK-7")
def test_a_flat_failure_leaves_its_row_until_a_retry_and_a_tree_failure_none(server):
    flat = server.instance(server.sequence(step("a"), step("b", "fail", params={"message": "m"})))
    server.settle(flat)
    error = rows(server, flat)[-1]
    assert (error["block_id"], error["output_ref"]) == ("b", "__error__")
    assert error["output"] == {"__error__": True, "retryable": False, "message": "m"}
    server.post(f"/instances/{flat}/retry")
    server.settle(flat, "failed")
    assert [row["block_id"] for row in rows(server, flat)] == ["a", "b"]
    tried = {"type": "try_catch", "id": "t", "try_block": [step("x", "fail")], "catch_block": []}
    tree = server.instance(server.sequence(tried, step("y", "fail")))
    assert server.settle(tree) == "failed"
    assert rows(server, tree) == []


@pytest.mark.req("SEQ-BLK-7")
def test_large_payloads_are_returned_inline(server):
    big = "x" * 100_000
    instance = server.instance(
        server.sequence(step("a", "transform", params={"v": "{{data.v}}"})), {"v": big}
    )
    server.settle(instance)
    (row,) = rows(server, instance)
    assert row["output"] == {"v": big}
    assert row["output_size"] == len(big) + len('{"v":""}')


@pytest.mark.req("SEQ-WHK-2")
def test_an_event_that_a_step_emits_is_one_committed_message_and_starts_what_it_names(server):
    slug, name = f"hook-{uuid.uuid4().hex}", f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(step("in"), name=name)
    made = server.post("/triggers", {"slug": slug, "sequence_name": name, "tenant_id": "acme"})
    assert made.status_code == 201, made.text
    emit = step("emit", "emit_event", params={"trigger_slug": slug, "data": {"x": [1]}})
    instance = server.instance(server.sequence(emit))
    assert server.settle(instance) == "completed"
    (receipt,) = server.get(f"/instances/{instance}/effects?tenant_id=acme").json()
    assert (receipt["block_id"], receipt["kind"], receipt["state"]) == (
        "emit",
        "message",
        "committed",
    )
    told = rows(server, instance)[0]["output"]
    assert (told["sequence_name"], told["deduped"]) == (name, False)
    child = server.shown(told["instance_id"])
    assert child["context"]["data"] == {"x": [1]}
    event = child["metadata"]["_trigger_event"]
    assert (event["source"], event["parent_instance_id"]) == ("emit_event", instance)
    lost = server.instance(
        server.sequence(step("emit", "emit_event", params={"trigger_slug": "nobody-here"}))
    )
    assert server.settle(lost) == "failed"


# tree and audit ----------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-7")
def test_a_node_has_every_field_of_the_contract_and_all_end_with_the_instance(server):
    branches = [[step("a")], [step("b"), step("b2")]]
    instance = server.instance(
        server.sequence({"type": "parallel", "id": "p", "branches": branches})
    )
    server.settle(instance)
    tree = server.get(f"/instances/{instance}/tree").json()
    wanted = {
        "id",
        "instance_id",
        "block_id",
        "parent_id",
        "block_type",
        "branch_index",
        "state",
        "started_at",
        "completed_at",
    }
    assert all(wanted <= set(node) for node in tree)
    by_block = {node["block_id"]: node for node in tree}
    assert (by_block["p"]["parent_id"], by_block["p"]["branch_index"]) == (None, None)
    assert [by_block[b]["branch_index"] for b in ("a", "b", "b2")] == [0, 1, 1]
    assert {node["state"] for node in tree} == {"completed"}
    cancelled = waiting(
        server,
        {"type": "parallel", "id": "p", "branches": [[{"type": "wait", "id": "w", "signal": "x"}]]},
        step("z"),
    )
    server.post(f"/instances/{cancelled}/cancel")
    states = {node["state"] for node in server.get(f"/instances/{cancelled}/tree").json()}
    assert states <= {"cancelled", "skipped", "completed", "failed"}


@pytest.mark.req("CORE-AUD-1")
def test_changes_of_state_are_audited_the_newest_first(server):
    instance = server.instance(server.sequence(), next_fire_at="2099-01-01T00:00:00Z")
    for word in ("pause", "resume", "cancel"):
        server.post(f"/instances/{instance}/signals", {"signal_type": word})
    audit = server.get(f"/instances/{instance}/audit").json()
    assert [row["to_state"] for row in audit[:3]] == ["cancelled", "scheduled", "paused"]
    for row in audit:
        assert row["event_type"] == "state_transition"
        assert (row["instance_id"], row["tenant_id"]) == (instance, "acme")
        assert row["created_at"]
    done = server.instance(server.sequence())
    server.settle(done)
    assert len(server.get(f"/instances/{done}/audit").json()) >= 1


# people ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("wrap", [False, True])
def test_a_question_is_asked_before_the_handler_and_only_a_choice_answers_it(server, wrap):
    block = asking(handler="human_review")
    if wrap:
        block = {"type": "parallel", "id": "p", "branches": [[block]]}
    instance = waiting(server, block, step("after"))
    shown = server.shown(instance)
    assert (shown["state"], shown["next_fire_at"]) == ("waiting", None)
    assert rows(server, instance) == []
    for wrong in ("maybe", {"approved": True}, {}, {"value": None}):
        answer(server, instance, wrong)
        assert server.shown(instance)["state"] == "waiting"
    answer(server, instance, "yes")
    assert server.settle(instance) == "completed"
    made = [row["output"] for row in rows(server, instance) if row["block_id"] == "ask"]
    assert made[0] == {"value": "yes", "_human_gate": True}
    assert (made[1]["type"], made[1]["status"]) == ("human_review", "pending")
    assert server.shown(instance)["context"]["data"] == {"ask": "yes"}


@pytest.mark.req("SEQ-BLK-1")
def test_choices_and_the_place_of_the_answer_are_the_authors(server):
    choices = [{"label": "Ship it", "value": "ship"}, {"label": "Hold", "value": "hold"}]
    instance = waiting(server, asking(choices=choices, store_as="verdict", allow_comment=True))
    (item,) = [
        each
        for each in server.get("/approvals?limit=1000").json()["items"]
        if each["instance_id"] == instance
    ]
    assert item["choices"] == choices
    assert (item["store_as"], item["deadline"], item["timeout_seconds"]) == ("verdict", None, None)
    assert item["allow_comment"] is True
    answer(server, instance, "yes")
    assert server.shown(instance)["state"] == "waiting"
    answer(server, instance, "hold")
    assert server.settle(instance) == "completed"
    assert server.shown(instance)["context"]["data"] == {"verdict": "hold"}


@pytest.mark.req("SEQ-BLK-1")
def test_a_question_nobody_answers_fails_or_escalates_and_goes_on(server):
    lost = server.instance(server.sequence(asking(timeout=100)))
    assert server.settle(lost) == "failed"
    escalated = server.instance(
        server.sequence(asking(timeout=100, escalation_handler="noop"), step("after"))
    )
    assert server.settle(escalated) == "completed"
    made = [(row["block_id"], row["output"]) for row in rows(server, escalated)]
    told = made[0][1]
    assert (made[0][0], made[-1]) == ("ask", ("after", {}))
    assert (told["_escalated"], told["_escalation_handler"]) == (True, "noop")
    assert told["_timeout_seconds"] in (0, 0.1)


@pytest.mark.req("SEQ-BLK-1")
def test_a_dry_run_that_approves_takes_the_first_choice_at_once(server):
    fields = {"dry_run": True, "dry_run_auto_approve": True}
    instance = server.instance(server.sequence(asking(), step("after")), **fields)
    assert server.settle(instance) == "completed"
    assert rows(server, instance)[0]["output"]["value"] == "yes"
    held = waiting(server, asking(), dry_run=True)
    assert server.shown(held)["context"]["runtime"]["dry_run"] is True


@pytest.mark.req("SEQ-BLK-1", "SEQ-HND-3")
def test_a_worker_who_is_told_of_an_escalation_is_not_waited_for(tmp_path):
    with house(tmp_path / "s.db", workers=True) as server:
        asks = asking(timeout=100, escalation_handler="boss")
        instance = server.instance(server.sequence(asks, step("after")))
        assert server.settle(instance) == "completed"
        made = server.outputs(instance)
        assert [block for block, _ in made] == ["ask", "after"]
        assert (made[0][1]["_escalated"], made[0][1]["_escalation_handler"]) == (True, "boss")
        poll = {"handler_name": "boss", "worker_id": "w1"}
        (task,) = server.post("/workers/tasks/poll", poll).json()
        assert task["params"]["block_id"] == "ask"
        report = {"worker_id": "w1", "claim_epoch": task["claim_epoch"], "output": {"seen": True}}
        assert server.post(f"/workers/tasks/{task['id']}/complete", report).status_code == 200
        assert server.outputs(instance) == made
        assert server.get(f"/instances/{instance}/replay").json()["identical"] is True
