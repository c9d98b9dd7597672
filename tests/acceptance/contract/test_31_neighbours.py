"""Neighbours (contract §31): what `test_contract_neighbours.py` and others leave open."""

from __future__ import annotations

import pytest

from tests.integration.web.following import following
from tests.integration.web.house import house, step

pytestmark = pytest.mark.contract("31")

NOBODY = "00000000-0000-7000-8000-000000000000"
LATER = "2099-01-01T00:00:00Z"
WAIT = {"type": "wait", "id": "w", "signal": "x"}


def names(server, instance):
    return [block for block, _ in server.outputs(instance)]


def run(server, *blocks, data=None, start=None, **fields):
    instance = server.instance(server.sequence(*blocks, **fields), data, **(start or {}))
    return instance, server.settle(instance)


# injected blocks ---------------------------------------------------------------------------------


def inject(server, instance, *blocks, **more):
    return server.post(f"/instances/{instance}/inject-blocks", {"blocks": list(blocks), **more})


def test_injected_blocks_come_after_the_sequences_own_and_accumulate(server):
    instance = server.instance(server.sequence(WAIT, step("own")))
    server.settle(instance, "waiting")
    first = inject(server, instance, step("a"), step("b"))
    assert first.status_code == 200, first.text
    assert first.json() == {
        "injected_block_ids": ["a", "b"],
        "position": None,
        "total_injected": 2,
    }
    second = inject(server, instance, step("c"), position=0)
    assert second.json() == {"injected_block_ids": ["c"], "position": 0, "total_injected": 3}
    server.signal(instance, "x")
    assert server.settle(instance) == "completed"
    assert names(server, instance) == ["w", "own", "c", "a", "b"]


def test_a_composite_can_be_injected(server):
    instance = server.instance(server.sequence(WAIT))
    server.settle(instance, "waiting")
    parallel = {"type": "parallel", "id": "p", "branches": [[step("a")], [step("b")]]}
    assert inject(server, instance, parallel).status_code == 200
    server.signal(instance, "x")
    assert server.settle(instance) == "completed"
    tree = server.get(f"/instances/{instance}/tree").json()
    assert {"p", "a", "b"} <= {node["block_id"] for node in tree}


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        ({"blocks": []}, (400,)),
        ({"blocks": [{"type": "dance", "id": "a"}]}, (400, 422)),
        ({"blocks": [{"type": "step", "id": ""}]}, (400, 422)),
        ({"blocks": [5]}, (400, 422)),
        ({}, (422,)),
    ],
)
def test_what_is_no_list_of_blocks_is_refused(server, body, statuses):
    instance = server.instance(server.sequence(WAIT))
    answer = server.post(f"/instances/{instance}/inject-blocks", body)
    assert answer.status_code in statuses, answer.text
    assert server.post(f"/instances/{NOBODY}/inject-blocks", body).status_code in (404, *statuses)


@pytest.mark.parametrize("state", ["scheduled", "waiting", "paused", "completed", "failed"])
def test_any_state_takes_blocks(server, state):
    block = {"completed": step("z"), "failed": step("z", "fail")}.get(state, WAIT)
    later = {"next_fire_at": LATER} if state in ("scheduled", "paused") else {}
    instance = server.instance(server.sequence(block), **later)
    if state == "paused":
        server.post(f"/instances/{instance}/signals", {"signal_type": "pause"})
    server.settle(instance, state)
    answer = inject(server, instance, step("new"))
    assert answer.status_code == 200, answer.text


# deadlines and interceptors ----------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [False, True])
def test_a_breached_deadline_leaves_its_row_and_fails(server, wrap):
    slow = step("s", "sleep", params={"duration_ms": 600_000}, deadline=60)
    block = {"type": "parallel", "id": "p", "branches": [[slow]]} if wrap else slow
    instance, end = run(server, block, step("never"))
    assert end == "failed"
    (made,) = [output for block_id, output in server.outputs(instance) if block_id == "s"]
    assert (made["_error"], made["_deadline_ms"]) == ("sla_deadline_breached", 60)
    assert made["_elapsed_ms"] >= 60
    assert "never" not in names(server, instance)


def test_a_breach_calls_its_handler_once_with_what_happened(tmp_path):
    from detent import handler

    told = []

    @handler("boss", on_doubt="repeatable")
    def boss(**params):
        told.append(params)

    with house(tmp_path / "s.db", handlers=[boss]) as server:
        slow = step(
            "s",
            "sleep",
            params={"duration_ms": 600_000},
            deadline=50,
            on_deadline_breach={"handler": "boss", "params": {"team": "red"}},
        )
        instance, end = run(server, slow)
        assert end == "failed"
        while not told:
            pass
        assert server.get(f"/instances/{instance}/replay").json()["identical"] is True
    (params,) = told
    assert params["team"] == "red"
    assert any(name.startswith("_breach_") for name in params)


def test_interceptors_leave_rows_around_what_happens(server):
    marks = {
        name: {"handler": "log", "params": {"message": name}}
        for name in ("before_step", "after_step", "on_signal", "on_complete", "on_failure")
    }
    instance = server.instance(server.sequence(WAIT, step("a"), interceptors=marks))
    server.settle(instance, "waiting")
    server.signal(instance, "x", {"n": 1})
    assert server.settle(instance) == "completed"
    made = names(server, instance)
    assert (
        made.index("_interceptor:before:a") < made.index("a") < made.index("_interceptor:after:a")
    )
    assert made[-1] == "_interceptor:on_complete"
    rows = dict(server.outputs(instance))
    assert rows["_interceptor:on_signal"]["_signal"] is not None
    assert "_interceptor:on_failure" not in made
    failed, _ = run(server, step("f", "fail"), interceptors=marks)
    assert "_interceptor:on_failure" in names(server, failed)


# clean-up ----------------------------------------------------------------------------------------


def test_clean_up_runs_each_step_once_and_swallows_its_errors(server):
    after = [step("one", "fail"), step("two"), step("three", "fail"), step("four")]
    instance, end = run(server, step("f", "fail", params={"message": "m"}), on_failure=after)
    assert end == "failed"
    made = names(server, instance)
    assert [block for block in made if block in ("two", "four")] == ["two", "four"]
    assert server.shown(instance)["error"]["message"] == "m"


# the change feed ---------------------------------------------------------------------------------


def changes(server, tenant, query=""):
    answer = server.get(f"/changes{query}", tenant=tenant)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_changes_are_paged_by_a_cursor_and_none_is_missed(server, tenant):
    assert changes(server, tenant)["changes"] == []
    sequence = server.sequence(tenant=tenant)
    made = [server.instance(sequence, tenant=tenant) for _ in range(3)]
    for each in made:
        server.settle(each)
    seen, query = [], "?limit=2"
    while True:
        page = changes(server, tenant, query)
        assert set(page) <= {"changes", "next_cursor", "has_more"}
        seen += page["changes"]
        if page["changes"]:
            assert page["next_cursor"]
        if not page["has_more"]:
            break
        query = f"?limit=2&cursor={page['next_cursor']}"
    assert len({row["id"] for row in seen}) == len(seen)
    assert {row["instance_id"] for row in seen} == set(made)
    ends = [row for row in seen if row.get("to_state") == "completed"]
    assert len(ends) == 3
    for row in seen:
        assert {"id", "instance_id", "tenant_id", "event_type", "details", "created_at"} <= set(row)
    assert server.get("/changes?cursor=rubbish", tenant=tenant).status_code == 400
    assert len(changes(server, tenant, "?limit=9999")["changes"]) == len(seen)


def test_changes_are_streamed_with_their_cursor_and_go_on_after_it(server, tenant):
    sequence = server.sequence(tenant=tenant)
    server.settle(server.instance(sequence, tenant=tenant))
    with following(server, "/changes/stream", tenant=tenant) as stream:
        name, data, cursor = next(stream.seen)
    assert (name, bool(cursor), data["tenant_id"]) == ("change", True, tenant)
    with following(server, "/changes/stream", tenant=tenant, last=cursor) as stream:
        _, following_one, _ = next(stream.seen)
    assert following_one["id"] != data["id"]


# cluster, usage, budget --------------------------------------------------------------------------


def test_there_is_at_least_one_node_and_draining_nobody_is_200(server):
    nodes = server.get("/cluster/nodes", tenant=None).json()
    assert len(nodes) >= 1
    assert set(nodes[0]) >= {
        "id",
        "name",
        "status",
        "registered_at",
        "last_heartbeat_at",
        "drain",
    }
    assert nodes[0]["status"] == "active"
    assert server.post("/cluster/nodes/nobody/drain", tenant=None).status_code == 200


def test_usage_counts_what_a_tenant_did(server, tenant):
    server.settle(
        server.instance(server.sequence(step("a"), step("b"), tenant=tenant), tenant=tenant)
    )
    answer = server.get("/usage", tenant=tenant)
    assert answer.status_code == 200
    assert tenant in str(answer.json())


def test_a_budget_pauses_before_it_is_exceeded_and_says_so(server):
    steps = [step(f"s{n}") for n in range(5)]
    instance = server.instance(server.sequence(*steps), budget={"max_steps": 2})
    server.settle(instance, "paused")
    shown = server.shown(instance)
    assert shown["metadata"]["paused_reason"] == "budget_exceeded"
    assert shown["metadata"]["budget_breach"]
    assert names(server, instance) == ["s0", "s1"]


@pytest.mark.parametrize(
    "path", ["/routing-rules", "/queues/dispatch", "/workers/version-pins", "/workers/commands"]
)
def test_the_fleets_records_are_listed(server, tenant, path):
    assert server.get(path, tenant=tenant).json() == []


# dry runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "params"),
    [
        ("http_request", {"url": "http://192.0.2.1/", "method": "POST"}),
        ("tool_call", {"url": "http://192.0.2.1/", "tool_name": "t"}),
        ("llm_call", {"messages": [], "api_key": "k", "model": "m"}),
        ("emit_event", {"trigger_slug": "any"}),
        ("send_signal", {"instance_id": NOBODY, "signal_type": "cancel"}),
        ("job-of-a-dry-run", {"a": 1}),
    ],
)
def test_a_dry_run_touches_nothing_outside(server, handler, params):
    instance, end = run(server, step("s", handler, params=params), start={"dry_run": True})
    assert end == "completed"
    made = dict(server.outputs(instance))["s"]
    assert (made["dry_run"], made["handler"]) == (True, handler)
    if handler == "tool_call":
        assert (made["tool_name"], made["result"]) == ("t", None)
        assert made["would"]["method"] == "POST"
