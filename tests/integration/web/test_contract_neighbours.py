"""Deadlines, interceptors, clean-up, sagas and dry runs, by the served API (contract §31)."""

from __future__ import annotations

import pytest

from tests.integration.web.house import step


def bad(id):
    return step(id, "fail", params={"message": "boom"})


def sleeping(id, ms=60_000, **options):
    return step(id, "sleep", params={"duration_ms": ms}, **options)


def run(server, *blocks, data=None, start=None, **fields):
    instance = server.instance(server.sequence(*blocks, **fields), data, **(start or {}))
    return instance, server.settle(instance)


def named(server, instance, block):
    return [output for name, output in server.outputs(instance) if name == block]


def entries(server, instance):
    return server.get(f"/instances/{instance}/audit?all=true").json()


# deadlines and service levels --------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("wrap", [False, True])
def test_a_breached_deadline_fails_the_instance_and_leaves_its_row(server, wrap):
    late = sleeping("s", deadline=150)
    block = {"type": "parallel", "id": "p", "branches": [[late]]} if wrap else late
    instance, end = run(server, block)
    assert end == "failed"
    row = named(server, instance, "s")[0]
    assert row["_error"] == "sla_deadline_breached"
    assert row["_deadline_ms"] == 150
    assert row["_elapsed_ms"] >= 150
    assert len(named(server, instance, "s")) == 1


@pytest.mark.req("SEQ-BLK-1")
def test_a_waiting_step_is_caught_by_its_deadline_too(server):
    asking = step("ask", wait_for_input={"prompt": "?"}, deadline=150)
    instance, end = run(server, asking)
    assert end == "failed"
    assert named(server, instance, "ask")[0]["_error"] == "sla_deadline_breached"
    assert run(server, step("quick", deadline=60_000))[1] == "completed"


@pytest.mark.req("SEQ-BLK-1")
def test_who_is_named_for_a_breach_is_called_once(server):
    breach = {"handler": "log", "params": {"message": "late"}}
    instance, end = run(server, sleeping("s", deadline=150, on_deadline_breach=breach))
    assert end == "failed"
    actions = [
        row["event_type"] for row in server.get(f"/instances/{instance}/audit?all=true").json()
    ]
    assert sum(1 for action in actions if "breach" in action or "deadline" in action) >= 1


def test_a_service_level_alerts_and_stops_nothing(server):
    instance, end = run(server, sleeping("s", 400), sla={"max_runtime": 100})
    assert end == "completed"
    actions = {
        row["event_type"] for row in server.get(f"/instances/{instance}/audit?all=true").json()
    }
    assert any("sla" in action for action in actions), actions


# interceptors ------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-1")
def test_interceptors_leave_rows_of_the_contracts_ids(server):
    def mark(name):
        return {"handler": "log", "params": {"at": name}}

    moments = ("before_step", "after_step", "on_signal", "on_complete", "on_failure")
    interceptors = {moment: mark(moment) for moment in moments}
    waits = {"type": "wait", "id": "w", "signal": "go"}
    instance = server.instance(server.sequence(step("a"), waits, interceptors=interceptors))
    server.settle(instance, "waiting")
    server.signal(instance, "go")
    assert server.settle(instance) == "completed"
    made = server.outputs(instance)
    assert [block for block, _ in made] == [
        "_interceptor:before:a",
        "a",
        "_interceptor:after:a",
        "_interceptor:on_signal",
        "w",
        "_interceptor:on_complete",
    ]
    told = dict(made)
    assert told["_interceptor:before:a"] == {"at": "before_step"}
    assert told["_interceptor:on_signal"]["at"] == "on_signal"
    assert "_signal" in told["_interceptor:on_signal"]
    failed, end = run(server, bad("b"), interceptors=interceptors)
    assert end == "failed"
    assert named(server, failed, "_interceptor:on_failure") == [{"at": "on_failure"}]
    assert named(server, failed, "_interceptor:on_complete") == []


# clean-up ----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-5")
def test_what_cleans_up_runs_once_its_errors_are_swallowed_and_its_outputs_kept(server):
    after = [bad("x"), step("undo", "transform", params={"done": True})]
    instance, end = run(server, bad("b"), on_failure=after, on_cancel=[step("never")])
    assert end == "failed"
    assert named(server, instance, "undo") == [{"done": True}]
    assert named(server, instance, "never") == []
    held = server.instance(
        server.sequence({"type": "wait", "id": "w", "signal": "x"}, on_cancel=[step("bye")])
    )
    server.settle(held, "waiting")
    server.post(f"/instances/{held}/cancel")
    assert server.settle(held) == "cancelled"
    assert named(server, held, "bye") == [{}]


# sagas -------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-5")
def test_a_saga_undoes_what_was_done_in_reverse_and_fails(server):
    def part(name, action):
        undo = step(f"undo_{name}", "transform", params={"why": "{{data._error.failed_step}}"})
        return {"id": name, "action": action, "compensation": undo}

    saga = {
        "type": "saga",
        "id": "s",
        "steps": [part("one", step("a1")), part("two", step("a2")), part("three", bad("a3"))],
    }
    instance, end = run(server, saga)
    assert end == "failed"
    assert [block for block, _ in server.outputs(instance)] == ["a1", "a2", "undo_two", "undo_one"]
    error = server.shown(instance)["context"]["data"]["_error"]
    assert (error["source"], error["block_id"]) == ("saga", "s")
    assert error["failed_step"] == "three"
    tree = {node["block_id"]: node for node in server.get(f"/instances/{instance}/tree").json()}
    assert [tree[block]["branch_index"] for block in ("a1", "undo_one", "a2")] == [0, 1, 2]
    empty, end = run(server, {"type": "saga", "id": "s", "steps": []})
    assert (end, server.outputs(empty)) == ("completed", [])


# dry runs ----------------------------------------------------------------------------------------

DRY = {"dry_run": True}


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_says_what_it_would_call_and_calls_nothing(server):
    get = step("get", "http_request", params={"url": "http://192.0.2.1/x", "method": "POST"})
    tool = step("tool", "tool_call", params={"url": "http://192.0.2.1/t", "tool_name": "find"})
    instance, end = run(server, get, tool, step("plain", "transform", params={"v": 1}), start=DRY)
    assert end == "completed"
    (asked,) = named(server, instance, "get")
    assert (asked["dry_run"], asked["handler"]) == (True, "http_request")
    assert asked["would"]["method"] == "POST"
    assert asked["would"]["url"] == "http://192.0.2.1/x"
    (told,) = named(server, instance, "tool")
    assert (told["dry_run"], told["handler"], told["tool_name"]) == (True, "tool_call", "find")
    assert told["result"] is None
    assert told["would"]["method"] == "POST"
    assert named(server, instance, "plain") == [{"v": 1}]  # what only computes runs as ever


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_sends_no_signal(server):
    waits = server.instance(server.sequence({"type": "wait", "id": "w", "signal": "go"}))
    server.settle(waits, "waiting")
    send = step(
        "send", "send_signal", params={"instance_id": waits, "signal_type": {"custom": "go"}}
    )
    instance, end = run(server, send, start=DRY)
    assert end == "completed"
    (told,) = named(server, instance, "send")
    assert (told["dry_run"], told["handler"]) == (True, "send_signal")
    assert server.shown(waits)["state"] == "waiting"


# blocks that a step puts in ----------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_a_step_puts_blocks_into_its_own_instance(server):
    more = step("me", "self_modify", params={"blocks": [step("new")]})
    instance, end = run(server, more, step("own"))
    assert end == "completed"
    assert [block for block, _ in server.outputs(instance)] == ["me", "own", "new"]
    (told,) = named(server, instance, "me")
    assert (told["_self_modify"], told["injected_count"]) == (True, 1)
    wrong = step("me", "self_modify", params={"blocks": [{"type": "dance", "id": "x"}]})
    assert run(server, wrong)[1] == "failed"
