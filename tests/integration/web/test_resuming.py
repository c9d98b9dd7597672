"""Resuming from a block, forking, and putting blocks in, over HTTP (contract §12 and §31)."""

from __future__ import annotations

import pytest

from tests.integration.web.house import house, step

WAITING = {"type": "wait", "id": "w", "signal": "go"}


@pytest.fixture
def waiting(server):
    instance = server.instance(server.sequence(WAITING, step("after")), {"n": 1})
    server.settle(instance, "waiting")
    return instance


@pytest.fixture
def failed(server):
    sequence = server.sequence(
        step("a", "transform", params={"n": "{{data.n}}"}),
        step("check", "assert", params={"condition": "data.n > 0"}),
        step("b", "transform", params={"twice": "{{data.n}}"}),
    )
    instance = server.instance(sequence, {"n": -1})
    assert server.settle(instance) == "failed"
    return instance


# resume from a block -----------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_a_failed_instance_is_resumed_from_a_block_with_other_data(server, failed):
    told = server.post(f"/instances/{failed}/resume-from/a", {"context": {"n": 5}})
    assert told.status_code == 200, told.text
    assert told.json() == {
        "id": failed,
        "state": told.json()["state"],
        "resumed_from": "a",
        "outputs_deleted": 1,
        "signals_enqueued": 0,
    }
    assert server.settle(failed) == "completed"
    assert server.outputs(failed)[0] == ("a", {"n": 5})
    assert server.outputs(failed)[-1] == ("b", {"twice": 5})


@pytest.mark.req("SEQ-OPS-1")
def test_signals_are_there_when_the_block_is_reached(server):
    instance = server.instance(server.sequence(step("a"), step("bad", "fail"), WAITING))
    assert server.settle(instance) == "failed"
    body = {
        "signals": [
            {"signal_type": {"custom": "go"}, "payload": {"x": 1}},
            {"signal_type": "update_context", "payload": {"data": {"y": 2}}},
        ]
    }
    told = server.post(f"/instances/{instance}/resume-from/w", body)
    assert told.status_code == 200, told.text
    assert told.json()["signals_enqueued"] == 1
    assert server.settle(instance) == "completed"
    assert ("w", {"x": 1}) in server.outputs(instance)
    assert server.shown(instance)["context"]["data"] == {"y": 2}


@pytest.mark.req("SEQ-OPS-1")
def test_only_a_failed_or_paused_instance_is_resumed_from_a_block_of_the_top(server, failed):
    done = server.instance(server.sequence())
    server.settle(done)
    refused = server.post(f"/instances/{done}/resume-from/s1")
    assert refused.status_code == 400
    assert "fork" in refused.json()["error"]
    nested = server.instance(
        server.sequence({"type": "parallel", "id": "p", "branches": [[step("in", "fail")]]})
    )
    assert server.settle(nested) == "failed"
    assert server.post(f"/instances/{nested}/resume-from/in").status_code == 400
    assert server.post(f"/instances/{failed}/resume-from/nobody").status_code == 400
    wrong = {"signals": [{"signal_type": "dance"}]}
    assert server.post(f"/instances/{failed}/resume-from/a", wrong).status_code == 422
    assert server.post(f"/instances/{failed}/resume-from/a", {"context": [1]}).status_code == 422
    assert server.shown(failed)["state"] == "failed"


# forks -------------------------------------------------------------------------------------------


@pytest.mark.req("CORE-RPL-2", "SEQ-OPS-1")
def test_a_fork_copies_what_came_before_and_runs_the_rest_again(server, failed):
    body = {"from_block_id": "check", "context": {"n": 7}, "dry_run": False}
    made = server.post(f"/instances/{failed}/fork", body)
    assert made.status_code == 201, made.text
    told = made.json()
    assert told == {
        "id": told["id"],
        "forked_from": failed,
        "state": told["state"],
        "copied_blocks": 1,
        "rerun_blocks": ["check", "b"],
        "dry_run": False,
    }
    assert server.settle(told["id"]) == "completed"
    shown = server.shown(told["id"])
    assert shown["context"]["data"] == {"n": 7}
    assert ("b", {"twice": 7}) in server.outputs(told["id"])
    assert server.shown(failed)["state"] == "failed"
    assert server.get(f"/instances/{told['id']}/replay").json()["identical"] is True


@pytest.mark.req("CORE-RPL-2", "SEQ-OPS-1")
def test_a_fork_is_a_dry_run_unless_it_is_told_otherwise_and_takes_signals(server):
    instance = server.instance(server.sequence(step("a"), WAITING, step("z")))
    server.settle(instance, "waiting")
    go = {"signal_type": {"custom": "go"}, "payload": {"by": "fork"}}
    made = server.post(f"/instances/{instance}/fork", {"from_block_id": "w", "signals": [go]})
    assert made.status_code == 201, made.text
    assert made.json()["dry_run"] is True
    fork = made.json()["id"]
    assert server.settle(fork) == "completed"
    assert server.shown(fork)["context"]["runtime"]["dry_run"] is True
    assert ("w", {"by": "fork"}) in server.outputs(fork)
    assert server.get(f"/instances/{fork}/replay").json()["identical"] is True
    assert server.shown(instance)["state"] == "waiting"


@pytest.mark.req("CORE-RPL-2", "SEQ-OPS-1")
def test_a_completed_instance_is_forked_and_stays_as_it_is(server):
    done = server.instance(server.sequence(step("a"), step("b")), metadata={"team": "red"})
    server.settle(done)
    made = server.post(f"/instances/{done}/fork", {"from_block_id": "b"})
    assert made.status_code == 201, made.text
    server.settle(made.json()["id"])
    found = server.get("/instances?metadata.team=red").json()["items"]
    assert made.json()["id"] in [row["id"] for row in found]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"from_block_id": "nobody"}, 400),
        ({"from_block_id": ""}, 400),
        ({"from_block_id": "b"}, 400),  # it was never reached
        ({}, 422),
        ({"from_block_id": "a", "dry_run": "yes"}, 422),
        ({"from_block_id": "a", "context": 3}, 422),
        ({"from_block_id": "a", "signals": [{"signal_type": "cancel"}]}, 400),
    ],
)
def test_a_fork_from_nowhere_is_refused_and_makes_nothing(server, failed, body, status):
    before = len(server.get("/instances?limit=1000").json()["items"])
    answer = server.post(f"/instances/{failed}/fork", body)
    assert answer.status_code == status, answer.text
    assert len(server.get("/instances?limit=1000").json()["items"]) == before


# blocks ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-OPS-1")
def test_blocks_are_put_in_after_those_of_the_sequence_and_accumulate(server, waiting):
    path = f"/instances/{waiting}/inject-blocks"
    first = server.post(path, {"blocks": [step("x1"), step("x2")]})
    assert first.status_code == 200, first.text
    assert first.json() == {
        "injected_block_ids": ["x1", "x2"],
        "position": None,
        "total_injected": 2,
    }
    inner = {"type": "parallel", "id": "p", "branches": [[step("y")]]}
    second = server.post(path, {"blocks": [inner], "position": 0})
    assert second.json() == {"injected_block_ids": ["p"], "position": 0, "total_injected": 3}
    server.signal(waiting, "go")
    assert server.settle(waiting) == "completed"
    assert [block for block, _ in server.outputs(waiting)] == ["w", "after", "y", "x1", "x2"]
    tree = server.get(f"/instances/{waiting}/tree").json()
    assert {"p", "y", "x1"} <= {node["block_id"] for node in tree}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"blocks": []}, 400),
        ({"blocks": [{"type": "step", "id": "x"}]}, 400),
        ({"blocks": [{"type": "dance", "id": "x"}]}, 400),
        ({"blocks": [step("after")]}, 400),
        ({"blocks": [step("x"), step("x")]}, 400),
        ({"blocks": [3]}, 400),
        ({"blocks": [step("x")], "position": -1}, 400),
        ({"blocks": [step("x")], "position": "first"}, 422),
        ({"blocks": {"type": "step"}}, 422),
        ({}, 422),
    ],
)
def test_wrong_blocks_are_refused_and_none_is_put_in(server, waiting, body, status):
    answer = server.post(f"/instances/{waiting}/inject-blocks", body)
    assert answer.status_code == status, answer.text
    server.signal(waiting, "go")
    server.settle(waiting)
    assert [block for block, _ in server.outputs(waiting)] == ["w", "after"]


@pytest.mark.req("SEQ-OPS-1", "SEQ-HND-3")
def test_blocks_of_workers_are_put_in_where_workers_are_let_in(server, waiting, tmp_path):
    body = {"blocks": [step("x", "somebody")]}
    refused = server.post(f"/instances/{waiting}/inject-blocks", body)
    assert (refused.status_code, refused.json()["code"]) == (400, "handler.unknown")
    with house(tmp_path / "s.db", workers=True) as other:
        instance = other.instance(other.sequence(WAITING))
        other.settle(instance, "waiting")
        assert other.post(f"/instances/{instance}/inject-blocks", body).status_code == 200
        other.signal(instance, "go")
        poll = {"handler_name": "somebody", "worker_id": "w1"}
        (task,) = other.post("/workers/tasks/poll?wait=5", poll).json()
        assert task["block_id"] == "x"
