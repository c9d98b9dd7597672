"""Context (contract §7)."""

from __future__ import annotations

import json

import pytest

from tests.integration.web.house import instance_body, step

pytestmark = pytest.mark.contract("7")

LATER = "2099-01-01T00:00:00Z"
WAIT = {"type": "wait", "id": "w", "signal": "go"}


def made(server, *blocks, context=None, **fields):
    body = instance_body(server.sequence(*blocks), **fields)
    if context is None:
        del body["context"]
    else:
        body["context"] = context
    answer = server.post("/instances", body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def test_every_section_has_its_default(server):
    instance = made(server, next_fire_at=LATER)
    context = server.shown(instance)["context"]
    assert set(context) == {"data", "config", "audit", "runtime"}
    assert (context["data"], context["config"]) == (None, None)
    assert isinstance(context["audit"], list)


def test_runtime_has_every_field(server):
    instance = made(server, WAIT)
    server.settle(instance, "waiting")
    runtime = server.shown(instance)["context"]["runtime"]
    assert set(runtime) >= {
        "current_step",
        "attempt",
        "started_at",
        "current_step_started_at",
        "resource_key",
        "instance_id",
        "total_steps_executed",
        "run_id",
        "dry_run",
        "dry_run_auto_approve",
    }
    assert (runtime["attempt"], runtime["instance_id"]) == (0, instance)
    assert (runtime["dry_run"], runtime["dry_run_auto_approve"]) == (False, False)
    assert runtime["started_at"] is not None
    assert runtime["resource_key"] is None


def test_steps_are_counted_and_the_one_under_way_is_named(server):
    slow = step("slow", "sleep", params={"duration_ms": 600_000})
    instance = made(server, step("a"), step("b"), slow)
    while (runtime := server.shown(instance)["context"]["runtime"])["current_step"] != "slow":
        pass
    assert runtime["total_steps_executed"] == 2
    assert runtime["current_step_started_at"] is not None


def test_an_audit_entry_says_when_what_and_about_what(server):
    instance = made(server, step("a"))
    server.settle(instance)
    audit = server.shown(instance)["context"]["audit"]
    assert audit
    assert all(set(entry) == {"timestamp", "event", "details"} for entry in audit)


def test_sections_that_are_the_engines_are_ignored_at_the_start(server):
    context = {"data": {"a": 1}, "config": {"b": 2}, "audit": [1], "runtime": {"attempt": 9}}
    instance = made(server, context=context, next_fire_at=LATER)
    shown = server.shown(instance)["context"]
    assert (shown["data"], shown["config"]) == ({"a": 1}, {"b": 2})
    assert shown["runtime"]["attempt"] == 0
    assert 1 not in shown["audit"]


@pytest.mark.parametrize("data", [None, 5, "text", [1, 2], {"a": {"b": [None]}}, {}])
def test_data_may_be_anything(server, data):
    instance = made(
        server, step("s", "transform", params={"d": "{{context.data}}"}), context={"data": data}
    )
    assert server.settle(instance) == "completed"
    assert server.outputs(instance) == [("s", {"d": data})]
    assert server.shown(instance)["context"]["data"] == data


def test_a_context_of_150_kilobytes_comes_back_and_one_beyond_the_cap_is_413(server):
    data = {"text": "ü" * 75_000, "n": [1.5, None, True]}
    instance = made(server, context={"data": data}, next_fire_at=LATER)
    assert server.shown(instance)["context"]["data"] == data
    sequence = server.sequence()
    for context in ({"data": "x" * 262_144}, {"config": "x" * 262_144}):
        answer = server.post("/instances", instance_body(sequence) | {"context": context})
        assert answer.status_code == 413, context.keys()
        assert answer.json()["error"].startswith("payload too large: ")
    split = {"data": "x" * 140_000, "config": "y" * 140_000}
    assert len(json.dumps(split)) > 262_144
    answer = server.post("/instances", instance_body(sequence) | {"context": split})
    assert answer.status_code == 413
    big = {"context": {"data": "x" * 262_144}}
    assert server.patch(f"/instances/{instance}/context", big).status_code == 413


def test_outputs_are_seen_by_block_the_newest_of_each(server):
    loop = {
        "type": "for_each",
        "id": "f",
        "collection": "items",
        "body": [step("s", "transform", params={"v": "{{data.item}}"})],
    }
    last = step("t", "transform", params={"s": "{{outputs.s.v}}", "again": "{{steps.s.v}}"})
    instance = made(server, loop, last, context={"data": {"items": [1, 2, 3]}})
    assert server.settle(instance) == "completed"
    assert server.outputs(instance)[-1] == ("t", {"s": 3, "again": 3})


def test_internal_rows_are_not_seen_by_templates(server):
    failing = {
        "type": "try_catch",
        "id": "t",
        "try_block": [step("bad", "fail")],
        "catch_block": [step("c", "transform", params={"bad": "{{outputs.bad}}"})],
    }
    instance = made(server, failing)
    assert server.settle(instance) == "completed"
    assert server.outputs(instance) == [("c", {"bad": None})]


def test_what_a_built_in_step_gives_is_not_merged_into_the_data(server):
    instance = made(server, step("s", "transform", params={"x": 1}), context={"data": {"y": 2}})
    server.settle(instance)
    assert server.shown(instance)["context"]["data"] == {"y": 2}


def test_config_cannot_be_written_later(server):
    instance = made(server, WAIT, context={"data": {}, "config": {"a": 1}})
    server.settle(instance, "waiting")
    body = {"context": {"data": {"n": 1}, "config": {"a": 2}, "runtime": {"attempt": 5}}}
    assert server.patch(f"/instances/{instance}/context", body).status_code == 200
    told = {"signal_type": "update_context", "payload": {"data": {"m": 2}, "config": {"a": 3}}}
    assert server.post(f"/instances/{instance}/signals", told).status_code == 201
    shown = server.shown(instance)["context"]
    assert (shown["data"], shown["config"]) == ({"n": 1, "m": 2}, {"a": 1})
    assert shown["runtime"]["attempt"] == 0
