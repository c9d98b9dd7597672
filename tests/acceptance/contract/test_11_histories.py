"""Outputs, tree, audit, logs, timeline and effects (contract §11).

`tests/integration/web/test_contract_outputs.py` tells the rows of outputs and trees.
"""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("11")

NOBODY = "00000000-0000-7000-8000-000000000000"
RETRY = {"max_attempts": 2, "initial_backoff": 600_000, "max_backoff": 600_000}


def run(server, *blocks, data=None, **fields):
    instance = server.instance(server.sequence(*blocks), data, **fields)
    return instance, server.settle(instance)


def get(server, instance, what):
    answer = server.get(f"/instances/{instance}/{what}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "what",
    ["outputs", "tree", "audit", "logs", "timeline", "effects", "children", "checkpoints"],
)
def test_of_an_unknown_instance_there_is_nothing(server, what):
    assert server.get(f"/instances/{NOBODY}/{what}").status_code == 404


# outputs -----------------------------------------------------------------------------------------


def test_a_noop_has_a_row_and_rows_are_in_the_order_of_creation(server):
    instance, _ = run(server, step("b"), step("a"), step("c", "log", params={"message": None}))
    rows = get(server, instance, "outputs")
    assert [(row["block_id"], row["output"]) for row in rows] == [
        ("b", {}),
        ("a", {}),
        ("c", {"message": None}),
    ]
    assert len({row["id"] for row in rows}) == 3
    assert all(uuid.UUID(row["id"]) for row in rows)


def test_while_a_retry_is_to_come_there_is_no_row_or_an_internal_one(server):
    failing = step("f", "fail", params={"retryable": True}, retry=RETRY)
    instance = server.instance(server.sequence(step("a"), failing))
    while server.shown(instance)["context"]["runtime"]["current_step"] != "f":
        pass
    server.settle(instance, "scheduled")
    rows = [row for row in get(server, instance, "outputs") if row["block_id"] == "f"]
    assert all(row["output_ref"] in ("__retry__", "__in_progress__") for row in rows)


def test_a_failed_flat_step_leaves_its_error(server):
    instance, end = run(server, step("a"), step("f", "fail", params={"message": "boom"}))
    row = get(server, instance, "outputs")[-1]
    assert (end, row["block_id"], row["output_ref"]) == ("failed", "f", "__error__")
    assert row["output"] == {"__error__": True, "retryable": False, "message": "boom"}


def test_a_composite_keeps_its_books_under_its_own_id(server):
    loop = {
        "type": "loop",
        "id": "l",
        "condition": "true",
        "body": [step("s")],
        "max_iterations": 2,
    }
    variants = [{"name": n, "weight": 1, "blocks": [step(f"in-{n}")]} for n in "ab"]
    split = {"type": "a_b_split", "id": "x", "variants": variants}
    instance, _ = run(server, loop, split)
    blocks = [row["block_id"] for row in get(server, instance, "outputs")]
    assert "l" in blocks
    assert blocks.count("x") == 1


# tree --------------------------------------------------------------------------------------------


def test_branches_are_numbered_as_the_contract_says(server):
    tried = {
        "type": "try_catch",
        "id": "t",
        "try_block": [step("try", "fail")],
        "catch_block": [step("catch")],
        "finally_block": [step("finally")],
    }
    saga = {
        "type": "saga",
        "id": "s",
        "steps": [
            {"id": f"x{n}", "action": step(f"do{n}"), "compensation": step(f"undo{n}")}
            for n in range(2)
        ],
    }
    router = {
        "type": "router",
        "id": "r",
        "routes": [{"condition": "false", "blocks": [step(f"route{n}")]} for n in range(2)],
        "default": [step("default")],
    }
    race = {"type": "race", "id": "c", "branches": [[step("lane0")], [step("lane1")]]}
    instance, _ = run(server, tried, saga, router, race)
    index = {node["block_id"]: node["branch_index"] for node in get(server, instance, "tree")}
    assert (index["try"], index["catch"], index["finally"]) == (0, 1, 2)
    assert [index[name] for name in ("do0", "undo0", "do1", "undo1")] == [0, 1, 2, 3]
    assert (index["route0"], index["route1"], index["default"]) == (0, 1, 2)
    assert (index["lane0"], index["lane1"]) == (0, 1)
    assert index["t"] is None


# audit -------------------------------------------------------------------------------------------


def test_an_audit_row_has_every_field(server):
    instance, _ = run(server, step("a"))
    rows = get(server, instance, "audit")
    assert rows
    for row in rows:
        assert {"id", "instance_id", "tenant_id", "event_type", "details", "created_at"} <= set(row)
        assert row["event_type"] == "state_transition"
        assert row["to_state"]
    assert rows[0]["to_state"] == "completed"


def test_a_pause_and_a_resume_are_two_changes(server):
    wait = {"type": "wait", "id": "w", "duration": 600_000}
    instance = server.instance(server.sequence(step("a", delay={"duration": 600_000}), wait))
    server.settle(instance, "scheduled")
    for word in ("pause", "resume"):
        server.post(f"/instances/{instance}/signals", {"signal_type": word})
    changes = [row.get("to_state") for row in get(server, instance, "audit")]
    assert "paused" in changes
    assert len(changes) >= 2


def test_an_audit_has_at_most_two_hundred_rows(server):
    instance = server.instance(server.sequence(), next_fire_at="2099-01-01T00:00:00Z")
    for _ in range(101):
        for word in ("pause", "resume"):
            server.post(f"/instances/{instance}/signals", {"signal_type": word})
    assert len(get(server, instance, "audit")) == 200


# logs --------------------------------------------------------------------------------------------


def test_logs_are_told_the_oldest_first(server):
    instance, _ = run(
        server,
        step("a", "log", params={"message": "one"}),
        step("b", "log", params={"message": {"two": 2}, "level": "warn"}),
        step("c", "log"),
    )
    rows = get(server, instance, "logs")
    assert [set(row) for row in rows] == [{"block_id", "ts", "level", "message"}] * 3
    assert [(row["block_id"], row["level"]) for row in rows] == [
        ("a", "info"),
        ("b", "warn"),
        ("c", "info"),
    ]
    assert rows[0]["message"] == "one"


# timeline ----------------------------------------------------------------------------------------


def test_a_timeline_has_the_instance_its_changes_and_its_outputs(server):
    instance, _ = run(server, *[step(f"s{n}") for n in range(3)])
    found = get(server, instance, "timeline")
    assert set(found) == {
        "instance",
        "state_transitions",
        "entries",
        "offset",
        "limit",
        "has_more",
    }
    assert found["instance"]["id"] == instance
    assert found["state_transitions"][-1]["to_state"] == "completed"
    assert set(found["state_transitions"][0]) == {"from_state", "to_state", "at"}
    assert [each["block_id"] for each in found["entries"]] == ["s0", "s1", "s2"]
    assert {"block_id", "attempt", "completed_at", "is_sentinel"} <= set(found["entries"][0])
    assert found["entries"][0]["is_sentinel"] is False
    page = get(server, instance, "timeline?offset=1&limit=1")
    assert [each["block_id"] for each in page["entries"]] == ["s1"]
    assert (page["offset"], page["limit"], page["has_more"]) == (1, 1, True)


# effects -----------------------------------------------------------------------------------------


def test_an_emitted_event_is_one_committed_message(server):
    slug, name = f"hook-{uuid.uuid4().hex}", f"kid-{uuid.uuid4().hex[:8]}"
    server.sequence(step("in"), name=name)
    server.post("/triggers", {"slug": slug, "sequence_name": name, "tenant_id": "acme"})
    instance, end = run(server, step("emit", "emit_event", params={"trigger_slug": slug}))
    assert end == "completed"
    (receipt,) = get(server, instance, "effects?tenant_id=acme")
    wanted = {"block_id": "emit", "kind": "message", "state": "committed"}
    assert wanted.items() <= receipt.items()
    assert get(server, run(server, step("a"))[0], "effects") == []
