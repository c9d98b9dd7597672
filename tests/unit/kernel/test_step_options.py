"""The options of a step: guard, delay, templates, cache, what it sees, schema, deadline, limits."""

from __future__ import annotations

import msgspec
import pytest

from detent.model import limits
from tests.unit.kernel.blocks import (
    attempt,
    call,
    loop,
    noop,
    parallel,
    put,
    sleep,
    wait,
)
from tests.unit.kernel.driver import World, run


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("when", ["false", "", " ", "data.missing", "n > 5", "null", "0"])
def test_a_false_guard_skips_the_step_without_output_and_with_an_entry(when):
    world = run(call("a", when=when), noop("after"), data={"n": 5})
    assert world.executed == ["after"]
    assert world.nodes("step.skipped") == ["a"]
    assert "a" not in world.outputs


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("when", ["true", "n == 5", "{{ n == 5 }}", "outputs.first.ok"])
def test_a_true_guard_lets_the_step_run(when):
    world = run(put("first", {"ok": True}), call("a", when=when), data={"n": 5})
    assert world.has("a")


@pytest.mark.req("SEQ-BLK-1", "CORE-STM-2")
@pytest.mark.parametrize("when", ["n ==", "(", "'open"])
def test_a_guard_that_cannot_be_read_fails_the_step(when):
    world = run(call("a", when=when))
    assert (world.state, world.error["kind"]) == ("failed", "expression")
    assert world.history == []


@pytest.mark.req("SEQ-BLK-1", "CORE-CLK-3", "CORE-STM-1")
def test_a_delay_is_served_once_before_the_step_at_any_depth():
    world = run(loop(call("a", delay={"duration": 250}, retry=_retry(2)), max_iterations=1))
    assert world.state == "scheduled"
    assert world.decision.due == world.tick + 3
    world.after(200)
    assert not world.has("a")
    world.after(100)
    assert world.state == "running"
    world.fail("a")
    world.due()
    assert world.has("a"), "a retry waits for its backoff alone"


@pytest.mark.req("SEQ-SIG-1")
def test_a_signal_during_a_delay_is_taken_at_once_and_never_shortens_it():
    world = run(call("a", delay={"duration": 1000}, params="{{data.n}}"), data={"n": 1})
    due = world.decision.due
    world.signal("update_context", {"n": 2})
    world.signal("custom:x")
    assert (world.state, world.decision.due) == ("scheduled", due)
    world.at(due)
    assert world.request("a") == 2


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("params", ["{{foo.bar}}", {"x": ["{{nope}}"]}])
def test_a_template_that_fails_is_permanent(params):
    world = run(call("a", params=params, retry=_retry(5)))
    assert (world.state, world.error["kind"]) == ("failed", "expression")
    assert world.history == []


@pytest.mark.req("SEQ-BLK-1")
def test_params_are_rendered_when_the_step_runs_with_types_kept():
    world = run(
        put("first", {"n": 3}),
        call(
            "a",
            params={"n": "{{outputs.first.n}}", "t": "n={{outputs.first.n}}", "m": "{{data.no}}"},
        ),
    )
    assert world.request() == {"n": 3, "t": "n=3", "m": None}


@pytest.mark.req("SEQ-BLK-1")
def test_a_cached_output_skips_the_handler_under_the_same_key():
    world = run(
        loop(call("a", cache_key="k-{{data.k}}", params="{{data.k}}"), noop("b"), max_iterations=3),
        data={"k": 1},
    )
    world.apply("a", {"v": 1})
    assert world.state == "completed"
    assert world.nodes("step.cached") == ["l[1]/a", "l[2]/a"]
    assert len(world.history) == 1


@pytest.mark.req("SEQ-BLK-1")
def test_another_cache_key_calls_again_and_a_failure_is_not_cached():
    world = run(loop(attempt([call("a", cache_key="{{data.k}}")]), max_iterations=4), data={"k": 1})
    world.fail("a", retryable=False)
    world.apply("a", {"k": 2})
    world.apply("a", {"k": 2})
    assert world.state == "completed"
    assert [node for node, _ in world.planned()] == [f"l[{n}]/t/a" for n in range(3)]


@pytest.mark.req("SEQ-BLK-1")
def test_a_sleep_is_cached_like_any_other_step():
    world = run(loop(sleep("s", 500, cache_key="once"), max_iterations=3))
    world.after(500)
    assert world.state == "completed"
    assert world.nodes("step.cached") == ["l[1]/s", "l[2]/s"]


@pytest.mark.req("SEQ-BLK-1")
def test_the_cache_is_bounded():
    world = run(
        loop(put("a", 1, cache_key="{{runtime.total_steps_executed}}"), max_iterations=1100)
    )
    world.finish()
    assert len(world.snap().cache) == limits.CACHE_ENTRIES


CONTEXT = {"a": 1, "b": 2}
SEEN = {"d": "{{data}}", "b": "{{data.b}}", "c": "{{config.z}}", "r": "{{runtime.current_step}}"}


@pytest.mark.req("SEQ-BLK-1", "SEQ-CTX-1")
@pytest.mark.parametrize(
    ("access", "seen"),
    [
        (None, {"d": CONTEXT, "b": 2, "c": 9, "r": "s"}),
        ({"data": False}, {"d": None, "b": None, "c": 9, "r": None}),
        ({"data": "none", "config": False}, {"d": None, "b": None, "c": None, "r": None}),
        ({"data": {"fields": ["a", "zz"]}}, {"d": {"a": 1}, "b": None, "c": 9, "r": None}),
        ({"data": "all", "runtime": True}, {"d": CONTEXT, "b": 2, "c": 9, "r": "s"}),
    ],
)
def test_context_access_filters_what_templates_see(access, seen):
    more = {} if access is None else {"context_access": access}
    world = World(put("s", SEEN, **more)).start(dict(CONTEXT), config={"z": 9})
    assert world.outputs["s"] == seen


@pytest.mark.req("SEQ-BLK-1", "SEQ-CTX-1")
@pytest.mark.parametrize(
    ("access", "data", "config"),
    [
        (None, CONTEXT, {"z": 9}),
        ({"data": {"fields": ["b"]}, "config": False}, {"b": 2}, None),
        ({"data": False}, None, {"z": 9}),
    ],
)
def test_context_access_filters_what_the_handler_sees(access, data, config):
    more = {} if access is None else {"context_access": access}
    world = World(call("a", **more), handlers={"a": {"ctx": True}}).start(
        dict(CONTEXT), config={"z": 9}
    )
    order = world.order("a")
    assert msgspec.json.decode(order.data) == data
    assert msgspec.json.decode(order.config) == config


def test_a_handler_that_does_not_ask_for_the_context_gets_none():
    assert bytes(run(call("a"), data=CONTEXT).order("a").data) == b"null"


@pytest.mark.req("SEQ-CTX-1")
def test_an_object_result_of_a_handler_is_merged_into_data_and_nowhere_else():
    world = World(call("a")).start({"x": 1}, config={"c": 1})
    world.apply("a", {"x": 2, "config": {"c": 9}, "runtime": {"attempt": 7}, "audit": []})
    snap = world.snap()
    assert snap.data == {"x": 2, "config": {"c": 9}, "runtime": {"attempt": 7}, "audit": []}
    assert snap.config == {"c": 1}
    assert snap.runtime["attempt"] == 0


@pytest.mark.req("SEQ-CTX-1")
@pytest.mark.parametrize("result", [None, 5, "text", [1]])
def test_a_result_that_is_no_object_is_an_output_only(result):
    world = run(call("a"), data={"x": 1})
    world.apply("a", result)
    assert (world.data, world.outputs["a"]) == ({"x": 1}, result)


@pytest.mark.req("SEQ-CTX-1")
def test_a_handler_may_keep_its_result_out_of_data_and_a_dry_run_always_does():
    world = run(call("a"), handlers={"a": {"merge": False}})
    world.apply("a", {"x": 1})
    assert (world.data, world.outputs["a"]) == (None, {"x": 1})
    world = World(call("a")).start(dry_run=True)
    assert world.order("a").dry_run
    world.apply("a", {"x": 1})
    assert (world.data, world.outputs["a"]) == (None, {"x": 1})


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.req("SEQ-BLK-1")
def test_an_output_that_matches_the_schema_is_taken():
    world = run(call("a", output_schema=SCHEMA))
    world.apply("a", {"n": 1})
    assert world.state == "completed"


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize("result", [{"n": "x"}, {}, None, [1]])
def test_an_output_against_the_schema_is_a_permanent_failure(result):
    world = run(call("a", output_schema=SCHEMA, retry=_retry(5)))
    world.apply("a", result)
    assert (world.state, world.error["code"]) == ("failed", "payload.schema")
    assert world.data is None
    assert "a" not in world.outputs


@pytest.mark.req("CORE-STM-1", "SEQ-BLK-1")
def test_a_deadline_fails_the_step_and_calls_the_breach_handler_once():
    breach = {"handler": "alarm", "params": {"to": "me"}}
    world = run(call("a", deadline=1000, on_deadline_breach=breach, retry=_retry(5)))
    world.after(900)
    assert world.state == "running"
    world.after(100)
    assert world.state == "failed"
    assert world.error["details"] == {
        "_error": "sla_deadline_breached",
        "_deadline_ms": 1000,
        "_elapsed_ms": 1000,
    }
    request = world.request("alarm")
    assert request["to"] == "me"
    assert (request["_breach_block_id"], request["_breach_deadline_ms"]) == ("a", 1000)
    world.fail("alarm")
    assert world.state == "failed"
    assert [order.handler for order in world.history] == ["a", "alarm"]


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize(
    "standing",
    [
        {"delay": {"duration": 60_000}},
        {"wait_for_input": {}},
        {"retry": {"max_attempts": 9, "initial_backoff": 60_000, "max_backoff": 60_000}},
    ],
    ids=["delay", "person", "retry"],
)
def test_a_deadline_counts_whatever_the_step_waits_for(standing):
    world = run(call("a", deadline=1000, **standing))
    if world.orders:
        world.fail("a")
    world.after(1000)
    assert (world.state, world.error["code"]) == ("failed", "step.deadline")


@pytest.mark.req("SEQ-BLK-1")
def test_a_step_done_in_time_has_no_deadline_left():
    world = run(call("a", deadline=1000), wait(duration=5000))
    world.after(900)
    world.apply("a")
    world.after(200)
    assert world.state == "waiting"


@pytest.mark.req("CORE-EFF-3")
def test_a_call_disowned_by_a_deadline_is_settled_unwanted_and_blocks_a_retry_till_then():
    world = run(call("a", deadline=1000), handlers={"a": {"doubt": "once"}})
    world.mark("a")
    world.after(1000)
    assert world.state == "failed"
    assert world.command("retry").code == "effect.unsettled"
    world.doubt("a")
    assert world.command("retry").code == "effect.unsettled", "nobody knows whether it happened"
    (effect,) = world.snap().effects
    assert world.resolve(effect.key, "failed").ok
    assert world.command("retry").ok
    assert world.order("a").key != effect.key


@pytest.mark.req("SEQ-BLK-1")
def test_a_request_over_the_payload_limit_is_a_permanent_failure():
    room = limits.PAYLOAD_BYTES - len('{"x":""}')
    for size, end in ((room, "running"), (room + 1, "failed")):
        world = run(call("a"), call("b", params={"x": "{{outputs.a}}"}))
        world.apply("a", "x" * size)
        assert world.state == end
    assert world.error["code"] == "payload.too_large"


@pytest.mark.req("SEQ-CTX-1")
def test_a_result_that_would_make_data_too_large_fails_the_step_and_changes_nothing():
    room = limits.CONTEXT_BYTES - len('{"x":"","y":""}')
    world = run(call("a"), data={"x": "a" * 1000})
    world.apply("a", {"y": "b" * (room - 1000)})
    assert world.state == "completed"
    world = run(call("a"), data={"x": "a" * 1000})
    world.apply("a", {"y": "b" * (room - 999)})
    assert (world.state, world.error["code"]) == ("failed", "payload.too_large")
    assert list(world.data) == ["x"]


@pytest.mark.req("SEQ-CTX-1")
def test_the_limit_counts_what_was_spilled_to_blobs_too():
    world = run(call("a"), call("b"), data={"x": "a" * 200_000})
    assert world.spilled()
    world.apply("a", {"small": 1})
    world.apply("b", {"y": "b" * 100_000})
    assert (world.state, world.error["code"]) == ("failed", "payload.too_large")


@pytest.mark.req("CORE-REC-3")
def test_a_value_nested_deeper_every_round_fails_the_step_and_not_the_engine():
    world = run(loop(put("p", {"in": "{{outputs.p}}"}), max_iterations=2000))
    world.finish()
    assert (world.state, world.error["code"]) == ("failed", "expression.limit")
    assert len(world.executed) == limits.PAYLOAD_DEPTH


@pytest.mark.req("CORE-REC-3")
def test_a_value_that_doubles_every_round_fails_the_step_and_not_the_engine():
    twice = {"l": "{{outputs.p}}", "r": "{{outputs.p}}", "text": "{{data.text}}"}
    world = run(loop(put("p", twice), max_iterations=2000), data={"text": "x" * 100_000})
    world.finish()
    assert (world.state, world.error["code"]) == ("failed", "expression.limit")


@pytest.mark.req("SEQ-SIG-1")
def test_a_step_that_is_not_cancellable_survives_a_cancel_with_its_retries():
    world = run(
        parallel([call("a", cancellable=False, retry=_retry(2))], [wait(signal="x")]), noop()
    )
    world.signal("cancel")
    world.fail("a")
    assert world.state == "scheduled"
    world.due()
    world.apply("a")
    assert world.state == "cancelled"
    assert world.executed == ["p/a"]


def _retry(most):
    return {"max_attempts": most, "initial_backoff": 100, "max_backoff": 1000}


@pytest.mark.req("SEQ-BLK-1")
def test_a_built_in_that_is_told_of_a_breach_is_told_once_and_cannot_make_it_worse():
    for handler, told in (("log", {"result": {"message": "late"}}), ("fail", {"message": "late"})):
        breach = {"handler": handler, "params": {"message": "late"}}
        world = run(call("a", deadline=1000, on_deadline_breach=breach))
        world.after(1000)
        assert (world.state, world.error["code"]) == ("failed", "step.deadline")
        assert [entry[2] for entry in world.entries("deadline.told")] == [
            {"handler": handler, **told}
        ]
        assert [order.handler for order in world.history] == ["a"]
