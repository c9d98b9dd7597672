"""Built-in handlers that are moves of the kernel: values at once, no ledger entry."""

from __future__ import annotations

import pytest

from detent.model import limits
from tests.unit.kernel.blocks import call, loop, put, sleep
from tests.unit.kernel.driver import World, run, ticks


def move(handler, id="m", **params):
    return {"type": "step", "id": id, "handler": handler, "params": params}


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    ("block", "output"),
    [
        ({"type": "step", "id": "m", "handler": "noop"}, {}),
        ({"type": "step", "id": "m", "handler": "log"}, {"message": "no message"}),
        (move("log", message=None), {"message": None}),
        (move("log", message={"a": 1}, level="warn"), {"message": {"a": 1}}),
        (move("transform", a="{{data.n}}", b=[1]), {"a": 5, "b": [1]}),
        (move("assert", condition="data.n == 5"), {"condition": "data.n == 5", "passed": True}),
        (move("assert", condition=True), {"condition": True, "passed": True}),
        (move("get_state", key="k"), {"key": "k", "value": None}),
        (move("set_state", key="k", value=None), {"key": "k", "value": None}),
        (move("get_state", key="k" * limits.KEY_CHARS), {"key": "k" * 512, "value": None}),
        (move("delete_state", key="k"), {"key": "k", "deleted": True}),
        (move("merge_state", values={"b": 1, "a": 2}), {"merged_keys": ["a", "b"]}),
    ],
)
def test_a_built_in_gives_its_output_at_once_and_merges_nothing(block, output):
    world = run(block, data={"n": 5})
    assert (world.state, world.outputs["m"], world.data) == ("completed", output, {"n": 5})
    assert world.history == []


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(
    "block",
    [
        move("assert", condition="data.n == 6"),
        move("assert", condition="data.n =="),
        move("assert", condition=1),
        move("assert"),
        move("set_state", key="k"),
        move("set_state", value=1),
        move("set_state", key="", value=1),
        move("set_state", key="k" * (limits.KEY_CHARS + 1), value=1),
        move("set_state", key=5, value=1),
        move("get_state"),
        move("delete_state", key=None),
        move("merge_state", values=[1]),
        move("merge_state"),
        move("sleep", duration_ms=-1),
        move("sleep", duration_ms="1000"),
        move("sleep", duration_ms=True),
        move("sleep", duration_ms=limits.DURATION_MS + 1),
        {"type": "step", "id": "m", "handler": "set_state"},
    ],
)
def test_wrong_params_fail_the_step_for_good(block):
    world = run(
        {**block, "retry": {"max_attempts": 3, "initial_backoff": 0, "max_backoff": 0}},
        data={"n": 5},
    )
    assert world.state == "failed"
    assert world.snap().kv == {}
    assert world.entries("error.retried") == []


@pytest.mark.req("SEQ-HND-1")
def test_an_assertion_may_name_its_own_message():
    assert run(move("assert", condition="false", message="too low")).error["message"] == "too low"


@pytest.mark.req("SEQ-HND-1")
def test_fail_fails_with_its_message_once_or_again():
    assert run(move("fail")).error["message"] == "forced failure"
    world = run(move("fail", message="no", details={"code": "E"}))
    assert (world.error["message"], world.error["details"]) == ("no", {"code": "E"})


@pytest.mark.req("SEQ-HND-1", "CORE-STM-1")
def test_sleep_is_a_wait_with_a_due_tick_and_says_how_long_it_slept():
    world = run(sleep("s", 12_345))
    assert (world.state, world.decision.due) == ("running", world.tick + 124)
    world.due()
    assert world.outputs["s"] == {"slept_ms": 12_345}
    world = run({"type": "step", "id": "s", "handler": "sleep"})
    assert world.decision.due == world.tick + 1


@pytest.mark.req("SEQ-HND-1")
def test_state_is_kept_apart_from_data_and_seen_by_templates():
    world = run(
        move("set_state", "a", key="n", value=1),
        move("merge_state", "b", values={"m": 2}),
        move("get_state", "c", key="n"),
        put("d", {"n": "{{state.n}}", "m": "{{state.m}}"}),
        move("delete_state", "e", key="n"),
        call("end"),
    )
    assert world.outputs["c"] == {"key": "n", "value": 1}
    assert world.outputs["d"] == {"n": 1, "m": 2}
    assert (world.snap().kv, world.data) == ({"m": 2}, None)


@pytest.mark.req("SEQ-HND-1")
def test_state_has_a_limit_and_stays_as_it_was_when_it_is_reached():
    grow = move("set_state", "g", key="k{{runtime.total_steps_executed}}", value="{{data.text}}")
    world = run(loop(grow, max_iterations=20), data={"text": "x" * 30_000})
    assert (world.state, world.error["code"]) == ("failed", "payload.too_large")
    assert len(world.snap().kv) == 8
    assert len(world.executed) == 8


@pytest.mark.req("SEQ-HND-1")
def test_an_assertion_sees_the_context_and_not_the_guard_of_another():
    world = run(put("first", {"ok": True}), move("assert", condition="outputs.first.ok"))
    assert world.state == "completed"


# what is called all the same ---------------------------------------------------------------------


REVIEW = {
    "review_data": {"x": 1},
    "notify_url": "https://example.org/r",
    "notify_headers": {"a": "b"},
}


@pytest.mark.req("SEQ-HND-1")
def test_a_review_that_names_whom_to_tell_is_a_call_and_its_result_the_output():
    world = run(move("human_review", **REVIEW), handlers={"human_review": {"merge": False}})
    assert world.state == "running"
    asked = world.request("human_review")
    assert (asked["notify_url"], asked["notify_headers"]) == ("https://example.org/r", {"a": "b"})
    assert asked["review"]["review_data"] == {"x": 1}
    world.apply("human_review", {**asked["review"], "notified": True})
    assert (world.state, world.outputs["m"]["notified"], world.data) == ("completed", True, None)


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("wrong", [{"notify_url": 5}, {"notify_headers": "x"}])
def test_a_review_with_a_wrong_address_fails_and_calls_nobody(wrong):
    world = run(move("human_review", **{**REVIEW, **wrong}))
    assert (world.state, world.history) == ("failed", [])


@pytest.mark.req("SEQ-HND-1")
def test_a_dry_run_of_a_review_says_whom_it_would_tell():
    world = World(move("human_review", **REVIEW)).start(dry_run=True)
    assert (world.state, world.history) == ("completed", [])
    assert world.outputs["m"]["would"] == {"method": "POST", "url": "https://example.org/r"}


# a sleep that takes too long ---------------------------------------------------------------------


@pytest.mark.req("SEQ-BLK-1")
def test_a_sleep_beyond_the_steps_timeout_fails_at_the_timeout_and_may_be_retried():
    world = run(sleep("s", 10_000, timeout=1000))
    world.due()
    assert (world.state, world.tick) == ("failed", 1 + ticks(1000))
    assert world.error["kind"] == "timeout"
    retry = {"max_attempts": 2, "initial_backoff": 100, "max_backoff": 100}
    world = run(sleep("s", 10_000, timeout=1000, retry=retry))
    world.due()
    assert world.state == "scheduled"
    world.due()
    assert world.state == "running"
    world.due()
    assert world.state == "failed"


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("timeout", [1000, 5000])
def test_a_sleep_within_the_steps_timeout_gives_its_output(timeout):
    world = run(sleep("s", 1000, timeout=timeout))
    world.due()
    assert (world.state, world.outputs["s"]) == ("completed", {"slept_ms": 1000})
