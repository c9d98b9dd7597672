"""Built-in handlers that call nobody outside (contract §30)."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from tests.integration.web.house import sequence_body, step

pytestmark = pytest.mark.contract("30")

NOBODY = "00000000-0000-7000-8000-000000000000"
WAIT = {"type": "wait", "id": "w", "signal": "x"}


def run(server, *blocks, data=None, **fields):
    instance = server.instance(server.sequence(*blocks), data, **fields)
    return instance, server.settle(instance)


def output(server, handler, params=None, data=None, **options):
    """What one step gives; its state where it gives nothing."""
    block = (
        step("s", handler, params=params, **options) if params is not None else step("s", handler)
    )
    instance, end = run(server, block, data=data)
    if end != "completed":
        return end
    return server.outputs(instance)[-1][1]


@pytest.mark.parametrize(
    ("handler", "params", "made"),
    [
        ("noop", None, {}),
        ("noop", {"x": 1}, {}),
        ("log", {"message": "hi"}, {"message": "hi"}),
        ("log", {"message": None}, {"message": None}),
        ("log", {"message": {"a": [1]}}, {"message": {"a": [1]}}),
        ("log", {}, {"message": "no message"}),
        ("log", None, {"message": "no message"}),
        ("sleep", {"duration_ms": 20}, {"slept_ms": 20}),
        ("sleep", None, {"slept_ms": 100}),
        ("sleep", {"duration_ms": "{{data.ms}}"}, {"slept_ms": 15}),
        ("transform", {"a": "{{data.ms}}", "b": [None]}, {"a": 15, "b": [None]}),
        ("assert", {"condition": "data.ms == 15"}, {"condition": "data.ms == 15", "passed": True}),
        ("set_state", {"key": "k", "value": [1]}, {"key": "k", "value": [1]}),
        ("get_state", {"key": "nobody"}, {"key": "nobody", "value": None}),
        ("delete_state", {"key": "nobody"}, {"key": "nobody", "deleted": True}),
        ("merge_state", {"values": {"a": 1, "b": 2}}, {"merged_keys": ["a", "b"]}),
    ],
)
def test_what_computes_gives(server, handler, params, made):
    assert output(server, handler, params, {"ms": 15}) == made


@pytest.mark.parametrize(
    ("handler", "params"),
    [
        ("fail", None),
        ("fail", {"message": "x"}),
        ("assert", {"condition": "data.ms == 16"}),
        ("assert", {}),
        ("set_state", {"key": "k"}),
        ("set_state", {"value": 1}),
        ("get_state", {}),
        ("merge_state", {"data": {"a": 1}}),
        ("self_modify", {"blocks": []}),
        ("self_modify", {"blocks": [{"type": "dance", "id": "x"}]}),
        ("self_modify", {}),
        ("send_signal", {"instance_id": NOBODY, "signal_type": "cancel"}),
        ("send_signal", {"signal_type": "cancel"}),
        ("query_instance", {"instance_id": "no-uuid"}),
        ("query_instance", {}),
        ("emit_event", {"trigger_slug": "nobody-here"}),
        ("emit_event", {}),
        ("tool_call", {"tool_name": "x"}),
        ("http_request", {}),
    ],
)
def test_what_cannot_be_done_fails_for_good(server, handler, params):
    retry = {"max_attempts": 3, "initial_backoff": 600_000, "max_backoff": 600_000}
    assert output(server, handler, params, {"ms": 15}, retry=retry) == "failed"


def test_a_failure_says_what_it_was_told_to(server):
    for params, message in (
        ({}, "forced failure"),
        ({"message": "boom"}, "boom"),
        ({"message": {"a": True}}, '{"a":true}'),
    ):
        instance, _ = run(server, step("s", "fail", params=params))
        assert server.outputs(instance)[0][1]["message"] == message
    instance, _ = run(server, step("s", "assert", params={"condition": "false", "message": "no!"}))
    assert server.outputs(instance)[0][1]["message"] == "no!"


def test_state_is_kept_between_steps_and_seen_by_templates(server):
    instance, end = run(
        server,
        step("a", "set_state", params={"key": "n", "value": 5}),
        step("b", "merge_state", params={"values": {"m": {"deep": 1}}}),
        step("c", "get_state", params={"key": "n"}),
        step("d", "transform", params={"n": "{{state.n}}", "deep": "{{state.m.deep}}"}),
        step("e", "delete_state", params={"key": "n"}),
        step("f", "get_state", params={"key": "n"}),
    )
    made = dict(server.outputs(instance))
    assert end == "completed"
    assert made["c"] == {"key": "n", "value": 5}
    assert made["d"] == {"n": 5, "deep": 1}
    assert made["f"] == {"key": "n", "value": None}


# people ------------------------------------------------------------------------------------------


def test_a_review_says_what_is_to_be_looked_at(server):
    params = {"review_data": {"x": 1}, "instructions": "Look", "reviewer": "ada"}
    instance, _ = run(server, step("s", "human_review", params=params))
    made = server.outputs(instance)[0][1]
    assert made == {
        "type": "human_review",
        "status": "pending",
        "reviewer": "ada",
        "instructions": "Look",
        "review_data": {"x": 1},
        "instance_id": instance,
        "block_id": "s",
        "choices": [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}],
        "allow_comment": False,
    }
    assert output(server, "human_review")["reviewer"] == "unassigned"


# other instances ---------------------------------------------------------------------------------


def trigger(server, **fields):
    slug, name = f"hook-{uuid.uuid4().hex}", f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(step("in"), name=name)
    body = {"slug": slug, "sequence_name": name, "tenant_id": "acme", **fields}
    assert server.post("/triggers", body).status_code == 201
    return slug, name


def test_an_event_starts_a_child_with_exactly_its_data(server):
    slug, name = trigger(server)
    params = {"trigger_slug": slug, "data": {"a": [1, None]}, "meta": {"m": 1}}
    instance, end = run(server, step("s", "emit_event", params=params))
    assert end == "completed"
    made = server.outputs(instance)[0][1]
    assert set(made) == {"instance_id", "sequence_name", "deduped"}
    assert (made["sequence_name"], made["deduped"]) == (name, False)
    child = server.shown(made["instance_id"])
    assert child["context"]["data"] == {"a": [1, None]}
    event = child["metadata"]["_trigger_event"]
    assert (event["source"], event["parent_instance_id"]) == ("emit_event", instance)
    bare = output(server, "emit_event", {"trigger_slug": slug})
    assert server.shown(bare["instance_id"])["context"]["data"] == {}


@pytest.mark.parametrize(("scope", "again"), [("parent", False), ("tenant", True), (None, False)])
def test_an_event_is_one_by_its_key_in_its_scope(server, scope, again):
    slug, _ = trigger(server)
    params = {"trigger_slug": slug, "dedupe_key": "k"}
    if scope:
        params["dedupe_scope"] = scope
    twice = [step("a", "emit_event", params=params), step("b", "emit_event", params=params)]
    instance, end = run(server, *twice)
    assert end == "completed"
    first, second = (made for _, made in server.outputs(instance))
    assert (first["deduped"], second["deduped"]) == (False, True)
    assert first["instance_id"] == second["instance_id"]
    other = output(server, "emit_event", params)
    assert other["deduped"] is again
    empty = {"trigger_slug": slug, "dedupe_key": ""}
    assert output(server, "emit_event", empty) == "failed"


def test_a_disabled_trigger_is_a_dead_letter(server):
    slug, _ = trigger(server)
    server.patch(f"/triggers/{slug}", {"enabled": False})
    instance, end = run(server, step("s", "emit_event", params={"trigger_slug": slug}))
    assert end == "failed"
    assert instance in [row["id"] for row in server.get("/instances/dlq?limit=1000").json()]


def test_a_signal_is_sent_to_another_instance(server):
    target = server.instance(server.sequence(WAIT))
    server.settle(target, "waiting")
    params = {"instance_id": target, "signal_type": {"custom": "x"}, "payload": {"n": 1}}
    made = output(server, "send_signal", params)
    assert set(made) == {"signal_id"}
    assert server.settle(target) == "completed"
    assert server.outputs(target) == [("w", {"n": 1})]
    assert output(server, "send_signal", params) == "failed"  # it has ended
    foreign = server.instance(server.sequence(WAIT, tenant="other"), tenant="other")
    server.settle(foreign, "waiting")
    assert output(server, "send_signal", params | {"instance_id": foreign}) == "failed"


def test_another_instance_is_looked_at(server):
    composite = {"type": "parallel", "id": "p", "branches": [[WAIT]]}
    target = server.instance(server.sequence(composite), {"k": 1})
    server.settle(target, "waiting")
    made = output(server, "query_instance", {"instance_id": target})
    assert set(made) == {
        "found",
        "state",
        "context",
        "started_at",
        "completed_at",
        "current_node",
    }
    assert (made["found"], made["state"], made["completed_at"]) == (True, "waiting", None)
    assert made["context"]["data"] == {"k": 1}
    assert made["current_node"] is not None
    assert dt.datetime.fromisoformat(made["started_at"]).tzinfo is not None
    server.signal(target, "x")
    server.settle(target)
    done = output(server, "query_instance", {"instance_id": target})
    assert (done["state"], done["current_node"]) == ("completed", None)
    assert dt.datetime.fromisoformat(done["completed_at"])
    foreign = server.instance(server.sequence(WAIT, tenant="other"), tenant="other")
    for nobody in (NOBODY, foreign):
        assert output(server, "query_instance", {"instance_id": nobody}) == {"found": False}


def test_a_step_adds_blocks_to_its_own_instance(server):
    params = {"blocks": [step("x"), step("y")], "position": 0}
    instance, end = run(server, step("s", "self_modify", params=params), step("own"))
    assert end == "completed"
    made = dict(server.outputs(instance))
    assert made["s"] == {
        "_self_modify": True,
        "blocks": params["blocks"],
        "position": 0,
        "injected_count": 2,
    }
    assert [block for block, _ in server.outputs(instance)] == ["s", "own", "x", "y"]


# what is not served ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "mcp_call",
        "agent",
        "embed",
        "memory_store",
        "memory_search",
        "memory_delete",
        "blob_put",
        "blob_get",
    ],
)
def test_a_handler_outside_the_scope_is_refused_by_name(server, name):
    answer = server.post("/sequences", sequence_body(step("s", name)))
    assert answer.status_code == 400
    assert answer.json()["code"] == "definition.unsupported"
    assert name in answer.json()["error"]


def test_a_compensation_on_a_step_is_refused_and_told_of_the_saga(server):
    answer = server.post("/sequences", sequence_body(step("s", compensation={"handler": "noop"})))
    assert answer.status_code == 400
    assert answer.json()["code"] == "definition.unsupported"
    assert "saga" in answer.json()["error"]
