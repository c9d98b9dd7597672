"""Retry, dead letters, resume-from and fork (contract §12)."""

from __future__ import annotations

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("12")

NOBODY = "00000000-0000-7000-8000-000000000000"
LATER = "2099-01-01T00:00:00Z"
WAIT = {"type": "wait", "id": "w", "signal": "x"}


def picky(id="b"):
    """A step that fails until the data say that all is well."""
    return step(id, "assert", params={"condition": "data.well"})


def failed(server, *blocks, data=None):
    instance = server.instance(server.sequence(*blocks), {} if data is None else data)
    assert server.settle(instance) == "failed"
    return instance


def mend(server, instance):
    body = {"context": {"data": {"well": True, "kept": 1}}}
    assert server.patch(f"/instances/{instance}/context", body).status_code == 200


def names(server, instance):
    return [block for block, _ in server.outputs(instance)]


# retry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [False, True])
def test_a_retry_goes_on_from_what_failed_and_repeats_nothing(server, wrap):
    blocks = [step("a"), picky(), step("c")]
    if wrap:
        blocks = [{"type": "cancellation_scope", "id": "s", "blocks": blocks}]
    instance = failed(server, *blocks)
    mend(server, instance)
    before = server.shown(instance)["context"]["runtime"]["run_id"]
    answer = server.post(f"/instances/{instance}/retry")
    assert (answer.status_code, answer.json()) == (200, {"id": instance, "state": "scheduled"})
    assert server.settle(instance) == "completed"
    assert [names(server, instance).count(block) for block in "abc"] == [1, 1, 1]
    shown = server.shown(instance)
    assert shown["context"]["data"]["kept"] == 1
    assert shown["context"]["runtime"]["run_id"] != before
    assert all(row["output_ref"] is None for row in rows(server, instance))


def rows(server, instance):
    return server.get(f"/instances/{instance}/outputs").json()


def test_the_error_row_is_gone_with_the_retry(server):
    instance = failed(server, step("a"), picky())
    assert rows(server, instance)[-1]["output_ref"] == "__error__"
    mend(server, instance)
    server.post(f"/instances/{instance}/retry")
    server.settle(instance, "completed")
    assert [row["output_ref"] for row in rows(server, instance)] == [None, None]


@pytest.mark.parametrize("state", ["scheduled", "waiting", "paused", "completed", "cancelled"])
def test_only_what_failed_is_retried(server, state):
    instance = held(server, state)
    answer = server.post(f"/instances/{instance}/retry")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("invalid argument: ")
    assert server.shown(instance)["state"] == state


def held(server, state):
    if state in ("scheduled", "paused"):
        instance = server.instance(server.sequence(), next_fire_at=LATER)
    else:
        block = {"completed": step("a"), "failed": step("f", "fail")}.get(state, WAIT)
        instance = server.instance(server.sequence(block))
    if state == "cancelled":
        server.settle(instance, "waiting")
    word = {"paused": "pause", "cancelled": "cancel"}.get(state)
    if word:
        server.post(f"/instances/{instance}/signals", {"signal_type": word})
    server.settle(instance, state)
    return instance


def test_nobody_is_retried_resumed_or_forked(server):
    assert server.post(f"/instances/{NOBODY}/retry").status_code == 404
    assert server.post(f"/instances/{NOBODY}/resume-from/a").status_code == 404
    assert server.post(f"/instances/{NOBODY}/fork", {"from_block_id": "a"}).status_code == 404


# resume-from -------------------------------------------------------------------------------------


def test_a_block_and_all_after_it_run_again(server):
    instance = failed(server, step("a"), step("b"), picky("c"), step("d"))
    body = {"context": {"well": True}, "signals": []}
    answer = server.post(f"/instances/{instance}/resume-from/b", body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert set(told) == {"id", "state", "resumed_from", "outputs_deleted", "signals_enqueued"}
    assert (told["id"], told["resumed_from"], told["signals_enqueued"]) == (instance, "b", 0)
    assert told["outputs_deleted"] >= 1
    assert server.settle(instance) == "completed"
    assert [row["block_id"] for row in rows(server, instance) if row["output_ref"] is None][
        -3:
    ] == [
        "b",
        "c",
        "d",
    ]
    assert names(server, instance).count("a") == 1


def test_signals_are_found_where_it_goes_on(server):
    instance = server.instance(server.sequence(step("a"), WAIT, picky()), {})
    server.settle(instance, "waiting")
    server.signal(instance, "x", {"n": 1})
    assert server.settle(instance) == "failed"
    body = {
        "context": {"well": True},
        "signals": [{"signal_type": {"custom": "x"}, "payload": {"n": 2}}],
    }
    answer = server.post(f"/instances/{instance}/resume-from/w", body)
    assert (answer.status_code, answer.json()["signals_enqueued"]) == (200, 1)
    assert server.settle(instance) == "completed"
    assert dict(server.outputs(instance))["w"] == {"n": 2}


def test_only_failed_or_paused_ones_resume_and_ended_ones_are_told_of_fork(server):
    for state in ("scheduled", "waiting"):
        instance = held(server, state)
        assert server.post(f"/instances/{instance}/resume-from/s1").status_code == 400
    for state in ("completed", "cancelled"):
        instance = held(server, state)
        answer = server.post(f"/instances/{instance}/resume-from/a")
        assert answer.status_code == 400
        assert "fork" in answer.json()["error"]
    paused = held(server, "paused")
    assert server.post(f"/instances/{paused}/resume-from/s1").status_code == 200


def test_the_block_must_be_of_the_top_level(server):
    scope = {"type": "cancellation_scope", "id": "s", "blocks": [picky()]}
    instance = failed(server, step("a"), scope)
    for block in ("b", "nobody"):
        assert server.post(f"/instances/{instance}/resume-from/{block}").status_code == 400


# fork --------------------------------------------------------------------------------------------


def test_a_fork_is_another_instance_and_a_dry_run_unless_it_says_otherwise(server):
    origin = server.instance(server.sequence(step("a"), step("b"), step("c")), {"n": 1})
    server.settle(origin)
    answer = server.post(f"/instances/{origin}/fork", {"from_block_id": "b"})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert set(told) == {
        "id",
        "forked_from",
        "state",
        "copied_blocks",
        "rerun_blocks",
        "dry_run",
    }
    assert (told["forked_from"], told["dry_run"]) == (origin, True)
    assert told["id"] != origin
    assert server.settle(told["id"]) == "completed"
    assert server.shown(told["id"])["context"]["runtime"]["dry_run"] is True
    assert names(server, told["id"]) == ["a", "b", "c"]
    assert server.shown(origin)["state"] == "completed"
    real = server.post(
        f"/instances/{origin}/fork",
        {"from_block_id": "b", "dry_run": False, "context": {"n": 2, "m": 3}},
    ).json()
    assert server.settle(real["id"]) == "completed"
    shown = server.shown(real["id"])["context"]
    assert (shown["runtime"]["dry_run"], shown["data"]["m"]) == (False, 3)
    assert server.post(f"/instances/{origin}/fork", {}).status_code == 422
    missing = server.post(f"/instances/{origin}/fork", {"from_block_id": "nobody"})
    assert missing.status_code in (400, 404)
