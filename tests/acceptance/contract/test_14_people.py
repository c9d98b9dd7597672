"""Waiting for people (contract §14).

`tests/integration/web/test_contract_outputs.py` tells how a question is asked and answered.
"""

from __future__ import annotations

import datetime as dt

import pytest

from tests.integration.web.house import house, step

pytestmark = pytest.mark.contract("14")

FIELDS = {
    "instance_id",
    "tenant_id",
    "namespace",
    "sequence_id",
    "sequence_name",
    "block_id",
    "prompt",
    "choices",
    "store_as",
    "timeout_seconds",
    "escalation_handler",
    "waiting_since",
    "deadline",
    "metadata",
    "allow_comment",
}


def asking(id="ask", handler="noop", **options):
    return step(id, handler, wait_for_input=options)


def waiting(server, *blocks, tenant="acme", **fields):
    instance = server.instance(server.sequence(*blocks, tenant=tenant), tenant=tenant, **fields)
    server.settle(instance, "waiting")
    return instance


def questions(server, tenant, query=""):
    answer = server.get(f"/approvals{query}", tenant=tenant)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"items", "total"}
    assert answer.json()["total"] == len(answer.json()["items"])
    return answer.json()["items"]


def test_a_question_has_every_field(server, tenant):
    instance = waiting(server, asking(prompt="Go?"), tenant=tenant, metadata={"team": "red"})
    (item,) = questions(server, tenant)
    assert set(item) == FIELDS
    assert (item["instance_id"], item["block_id"], item["prompt"]) == (instance, "ask", "Go?")
    assert item["choices"] == [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}]
    assert (item["timeout_seconds"], item["deadline"], item["escalation_handler"]) == (None,) * 3
    assert item["metadata"] == {"team": "red"}
    assert item["allow_comment"] is False


def test_a_question_with_a_time_out_has_a_deadline(server, tenant):
    waiting(server, asking(timeout=3_600_000, escalation_handler="noop"), tenant=tenant)
    (item,) = questions(server, tenant)
    assert (item["timeout_seconds"], item["escalation_handler"]) == (3600, "noop")
    assert isinstance(item["timeout_seconds"], int)
    since, until = (dt.datetime.fromisoformat(item[k]) for k in ("waiting_since", "deadline"))
    assert abs((until - since).total_seconds() - 3600) < 1


def test_questions_are_filtered_paged_and_gone_once_answered(server, tenant):
    made = [waiting(server, asking(), tenant=tenant) for _ in range(3)]
    waiting(server, asking(), tenant=tenant, namespace="nights")
    assert len(questions(server, tenant)) == 4
    assert len(questions(server, tenant, "?namespace=nights")) == 1
    pages = [questions(server, tenant, f"?offset={n}&limit=2") for n in (0, 2)]
    assert len({item["instance_id"] for page in pages for item in page}) == 4
    body = {"signal_type": {"custom": "human_input:ask"}, "payload": {"value": "no"}}
    assert server.post(f"/instances/{made[0]}/signals", body, tenant=tenant).status_code == 201
    server.settle(made[0])
    assert made[0] not in [item["instance_id"] for item in questions(server, tenant)]
    assert questions(server, f"{tenant}-other") == []


def test_two_questions_of_one_instance_are_two_items(server, tenant):
    parallel = {"type": "parallel", "id": "p", "branches": [[asking("a")], [asking("b")]]}
    instance = waiting(server, parallel, tenant=tenant)
    assert {item["block_id"] for item in questions(server, tenant)} == {"a", "b"}
    for block in "ab":
        body = {"signal_type": {"custom": f"human_input:{block}"}, "payload": {"value": "yes"}}
        server.post(f"/instances/{instance}/signals", body, tenant=tenant)
    assert server.settle(instance) == "completed"


def test_an_answer_may_come_before_the_question(server):
    block = step("ask", wait_for_input={}, delay={"duration": 200})
    instance = server.instance(server.sequence(block))
    server.signal(instance, "human_input:ask", {"value": "yes"})
    assert server.settle(instance) == "completed"
    assert server.outputs(instance)[0] == ("ask", {"value": "yes", "_human_gate": True})


def test_an_answer_is_kept_under_the_block_or_where_the_author_says(server):
    for options, key in (({}, "ask"), ({"store_as": "verdict"}, "verdict")):
        instance = waiting(server, asking(**options), step("after"))
        server.signal(instance, "human_input:ask", {"value": "no", "comment": "because"})
        assert server.settle(instance) == "completed"
        assert server.shown(instance)["context"]["data"][key] == "no"


@pytest.mark.parametrize("wrap", [False, True])
def test_the_handler_runs_after_the_answer(server, wrap):
    block = step("ask", "transform", params={"got": "{{data.ask}}"}, wait_for_input={})
    blocks = [{"type": "parallel", "id": "p", "branches": [[block]]}] if wrap else [block]
    instance = waiting(server, *blocks)
    assert server.outputs(instance) == []
    server.signal(instance, "human_input:ask", {"value": "yes"})
    assert server.settle(instance) == "completed"
    assert server.outputs(instance)[-1] == ("ask", {"got": "yes"})


def test_an_escalation_handler_really_runs(tmp_path):
    from detent import handler

    told = []

    @handler("boss", on_doubt="repeatable")
    def boss(**params):
        told.append(params)
        return {"seen": True}

    with house(tmp_path / "s.db", handlers=[boss]) as server:
        block = asking(timeout=50, escalation_handler="boss", prompt="Go?")
        instance = server.instance(server.sequence(block, step("after")))
        assert server.settle(instance) == "completed"
        (row,) = [output for block, output in server.outputs(instance) if block == "ask"]
        assert (row["_escalated"], row["_escalation_handler"]) == (True, "boss")
        assert "_timeout_seconds" in row
        assert len(told) == 1


def test_a_time_out_without_escalation_fails(server):
    instance = server.instance(server.sequence(asking(timeout=50), step("after")))
    assert server.settle(instance) == "failed"
    assert "after" not in dict(server.outputs(instance))


def test_a_dry_run_that_approves_takes_the_first_choice(server):
    choices = [{"label": "B", "value": "b"}, {"label": "A", "value": "a"}]
    fields = {"dry_run": True, "dry_run_auto_approve": True}
    for options, value in (({}, "yes"), ({"choices": choices}, "b")):
        instance = server.instance(server.sequence(asking(**options)), **fields)
        assert server.settle(instance) == "completed"
        assert server.outputs(instance)[0][1]["value"] == value
