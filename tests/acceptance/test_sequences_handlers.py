"""Built-in handlers, and Python functions as handlers (SEQ-HND-1, SEQ-HND-2)."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
from typing import Any, Literal

import pytest

import detent
from detent import for_each, parallel, sequence, step, wait
from detent.handlers.names import RESERVED
from tests.acceptance.stage import HOUR_MS, digest, finished, refused, state, virtual

DOOR = sequence("door", wait("w", signal="go", store_as="got"), step("after", "noop"))


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def output_of(engine, handler, params=None, data=None):
    shown = finished(engine, sequence("one", step("s", handler, params=params)), data)
    return shown.outputs.get("s") if shown.summary.state == "completed" else shown.error


COMPUTED = [
    ("noop", None, {}),
    ("noop", {"anything": 1}, {}),
    ("log", {"message": "hi"}, {"message": "hi"}),
    ("log", {"message": None}, {"message": None}),
    ("log", {"message": {"a": 1}, "level": "warn"}, {"message": {"a": 1}}),
    ("log", None, {"message": "no message"}),
    ("sleep", {"duration_ms": 1500}, {"slept_ms": 1500}),
    ("sleep", None, {"slept_ms": 100}),
    ("transform", {"a": "{{ data.n }}", "b": [1]}, {"a": 7, "b": [1]}),
    ("transform", None, None),
    ("assert", {"condition": "data.n == 7"}, {"condition": "data.n == 7", "passed": True}),
    ("get_state", {"key": "k"}, {"key": "k", "value": None}),
    ("set_state", {"key": "k", "value": [1]}, {"key": "k", "value": [1]}),
    ("delete_state", {"key": "k"}, {"key": "k", "deleted": True}),
    ("merge_state", {"values": {"b": 1, "a": 2}}, {"merged_keys": ["a", "b"]}),
]


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(("handler", "params", "output"), COMPUTED)
def test_a_built_in_handler_gives_what_the_contract_says(engine, handler, params, output):
    assert output_of(engine, handler, params, {"n": 7}) == output


BROKEN = [
    ("sleep", {"duration_ms": -1}),
    ("sleep", {"duration_ms": "long"}),
    ("sleep", {"duration_ms": 10**18}),
    ("sleep", {"duration_ms": True}),
    ("assert", {"condition": "data.n == 8", "message": "not eight"}),
    ("assert", {"condition": "data.n =="}),
    ("assert", {}),
    ("assert", None),
    ("fail", None),
    ("fail", {"message": "mine"}),
    ("set_state", {"value": 1}),
    ("set_state", {"key": 5, "value": 1}),
    ("set_state", {"key": "k"}),
    ("get_state", {}),
    ("merge_state", {"values": [1]}),
    ("delete_state", None),
]


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(("handler", "params"), BROKEN)
def test_a_built_in_handler_with_wrong_params_fails_its_step(engine, handler, params):
    error = output_of(engine, handler, params, {"n": 7})
    assert error["message"]
    assert error["block"] == "s"


@pytest.mark.req("SEQ-HND-1")
def test_fail_is_retried_only_when_it_says_so(engine):
    retry = detent.retry(3, initial_backoff="1s")
    for retryable, attempts in ((True, 3), (False, 1)):
        params = {"message": "x", "retryable": retryable}
        definition = sequence(f"s{retryable}", step("s", "fail", params=params, retry=retry))
        shown = finished(engine, definition)
        entered = engine.inspect.audit(shown.summary.id, action="error.occurred", node="s")
        assert len(entered) == attempts


@pytest.mark.req("SEQ-HND-1")
def test_state_is_the_instance_s_own_and_lives_as_long_as_it(engine):
    definition = sequence(
        "s",
        step("set", "set_state", params={"key": "n", "value": {"deep": [1]}}),
        step("merge", "merge_state", params={"values": {"m": 2, "n": 3}}),
        step("read", "transform", params={"n": "{{ state.n }}", "m": "{{ state.m }}"}),
        step("drop", "delete_state", params={"key": "m"}),
        step("get", "get_state", params={"key": "m"}),
    )
    shown = finished(engine, definition)
    assert shown.outputs["read"] == {"n": 3, "m": 2}
    assert shown.outputs["get"] == {"key": "m", "value": None}
    assert shown.kv == {"n": 3}
    other = finished(engine, sequence("o", step("get", "get_state", params={"key": "n"})))
    assert other.outputs["get"]["value"] is None


@pytest.mark.req("SEQ-HND-1")
def test_human_review_shows_what_is_to_be_reviewed(engine):
    params = {"review_data": {"a": 1}, "instructions": "look", "reviewer": "Ada"}
    output = output_of(engine, "human_review", params)
    assert output["type"] == "human_review"
    assert (output["status"], output["reviewer"]) == ("pending", "Ada")
    assert (output["instructions"], output["review_data"]) == ("look", {"a": 1})
    assert output["block_id"] == "s"
    assert [choice["value"] for choice in output["choices"]] == ["yes", "no"]


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("kind", ["custom:go", {"custom": "go"}])
def test_send_signal_reaches_another_instance_once(engine, kind):
    target = engine.start(DOOR)
    params = {"instance_id": target, "signal_type": kind, "payload": {"n": "{{ data.n }}"}}
    shown = finished(engine, sequence("s", step("s", "send_signal", params=params)), {"n": 7})
    assert shown.summary.state == "completed"
    assert set(shown.outputs["s"]) == {"signal_id"}
    assert state(engine, target) == "completed"
    assert engine.inspect.show(target).data == {"got": {"n": 7}}
    assert len(engine.inspect.audit(target, action="event.received")) == 1


@pytest.mark.req("SEQ-HND-1")
def test_send_signal_steers_another_instance(engine):
    target = engine.start(sequence("t", step("s", "sleep", params={"duration_ms": HOUR_MS})))
    for kind, end in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        params = {"instance_id": target, "signal_type": kind}
        finished_one = engine.start(sequence(f"s-{kind}", step("s", "send_signal", params=params)))
        engine.advance(0)
        assert state(engine, finished_one) == "completed"
        assert state(engine, target) == end


WRONG_TARGETS = {
    "unknown": "019b76da-a800-7dc0-9869-bd9e49907eb8",
    "no id": "not-a-uuid",
    "a number": 5,
    "nothing": None,
}


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("target", WRONG_TARGETS.values(), ids=WRONG_TARGETS.keys())
def test_send_signal_to_nobody_fails_for_good(engine, target):
    params = {"instance_id": target, "signal_type": "cancel"}
    retry = detent.retry(3, initial_backoff="1s")
    definition = sequence("s", step("s", "send_signal", params=params, retry=retry))
    if not isinstance(target, str):
        with refused("request.invalid"):
            engine.start(definition)
        return
    shown = finished(engine, definition)
    assert shown.summary.state == "failed"
    assert shown.error["code"] in ("instance.not_found", "request.invalid")


@pytest.mark.req("SEQ-HND-1")
def test_send_signal_to_an_ended_instance_fails_for_good(engine):
    target = finished(engine, sequence("t", step("s", "noop"))).summary.id
    params = {"instance_id": target, "signal_type": {"custom": "go"}}
    shown = finished(engine, sequence("s", step("s", "send_signal", params=params)))
    assert shown.error["code"] == "instance.terminal"


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("size", [10, 100_000])
def test_query_instance_tells_of_another_one_whole(engine, size):
    """A value over 32 KiB is kept elsewhere, and comes back all the same."""
    text = "x" * size
    target = engine.start(
        sequence("t", parallel("p", wait("w", "1d"), [step("s", "noop")])),
        {"text": text},
        config={"c": text},
    )
    params = {"instance_id": target}
    shown = finished_now(engine, sequence("s", step("s", "query_instance", params=params)))
    output = shown.outputs["s"]
    assert output["found"] is True
    assert output["state"] == "waiting"
    assert output["context"]["data"] == {"text": text}
    assert output["context"]["config"] == {"c": text}
    assert output["current_node"] == "w"
    assert output["completed_at"] is None
    engine.cancel(target)
    ended = finished_now(engine, sequence("e", step("s", "query_instance", params=params)))
    assert ended.outputs["s"]["state"] == "cancelled"
    assert ended.outputs["s"]["completed_at"] is not None


def finished_now(engine, definition):
    """Start and perform one instance without moving time."""
    instance = engine.start(definition)
    engine.advance(0)
    return engine.inspect.show(instance)


@pytest.mark.req("SEQ-HND-1")
def test_query_instance_of_nobody_finds_nothing_and_of_no_id_fails(engine):
    unknown = {"instance_id": WRONG_TARGETS["unknown"]}
    assert output_of(engine, "query_instance", unknown) == {"found": False}
    shown = finished(
        engine, sequence("bad", step("s", "query_instance", params={"instance_id": "x"}))
    )
    assert shown.summary.state == "failed"


# Python functions ---------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@detent.handler
def typed(
    n: int,
    text: str = "t",
    ratio: float = 1.0,
    flag: bool = False,
    items: list[int] | None = None,
    point: Point | None = None,
    colour: Colour = Colour.RED,
    mode: Literal["a", "b"] = "a",
    anything: Any = None,
):
    return {
        "n": n,
        "text": text,
        "ratio": ratio,
        "flag": flag,
        "items": items,
        "point": point and [type(point).__name__, point.x, point.y],
        "colour": colour.name,
        "mode": mode,
        "anything": anything,
    }


@pytest.mark.req("SEQ-HND-2")
def test_parameters_are_converted_to_their_annotations(engine):
    engine.register(typed)
    params = {
        "n": 1,
        "ratio": 2,
        "items": [1, 2],
        "point": {"x": 3},
        "colour": "red",
        "mode": "b",
        "anything": {"k": [None]},
    }
    output = output_of(engine, typed, params)
    assert output == {
        "n": 1,
        "text": "t",
        "ratio": 2.0,
        "flag": False,
        "items": [1, 2],
        "point": ["Point", 3, 0],
        "colour": "RED",
        "mode": "b",
        "anything": {"k": [None]},
    }


WRONG = [
    ({}, "n"),
    ({"n": "1"}, "n"),
    ({"n": 1.5}, "n"),
    ({"n": None}, "n"),
    ({"n": 1, "flag": 1}, "flag"),
    ({"n": 1, "items": ["a"]}, "items"),
    ({"n": 1, "point": {"y": 1}}, "point"),
    ({"n": 1, "colour": "blue"}, "colour"),
    ({"n": 1, "mode": "c"}, "mode"),
    ({"n": 1, "extra": 1}, "extra"),
]


@pytest.mark.req("SEQ-HND-2")
@pytest.mark.parametrize(("params", "named"), WRONG)
def test_parameters_that_do_not_fit_are_refused_at_the_start(tmp_path, params, named):
    path = tmp_path / "s.db"
    with virtual(path, [typed]) as engine:
        before = digest(path)
        with refused("request.invalid") as refusal:
            engine.start(sequence("s", step("s", typed, params=params)))
        assert named in refusal.value.message
        assert digest(path) == before


@pytest.mark.req("SEQ-HND-2")
@pytest.mark.parametrize(("params", "named"), WRONG[1:5])
def test_parameters_that_turn_out_not_to_fit_fail_the_step_uncalled(engine, params, named):
    called = []

    @detent.handler
    def strict(n: int, flag: bool = False, items: list[int] | None = None):
        called.append(n)

    engine.register(strict)
    templated = {key: f"{{{{ data.{key} }}}}" for key in params}
    retry = detent.retry(3, initial_backoff="1s")
    definition = sequence("s", step("s", strict, params=templated, retry=retry))
    shown = finished(engine, definition, params)
    assert shown.summary.state == "failed"
    assert named in shown.error["message"]
    assert called == []


@pytest.mark.req("SEQ-HND-2")
def test_plain_and_async_functions_methods_and_modules_are_handlers(engine):
    class Shop:
        name = "shop"

        @detent.handler
        def sell(self, n: int):
            return {"sold": n, "by": self.name}

    @detent.handler("renamed")
    async def later(n: int):
        await asyncio.sleep(0)
        return {"later": n}

    assert engine.register([[Shop().sell], later]) == ["sell", "renamed"]
    definition = sequence(
        "s",
        step("a", "sell", params={"n": 1}),
        step("b", later, params={"n": 2}),
        for_each("e", "items", step("c", "renamed", params={"n": "{{ data.item }}"})),
    )
    shown = finished(engine, definition, {"items": [7]})
    assert (shown.outputs["a"], shown.outputs["b"]) == ({"sold": 1, "by": "shop"}, {"later": 2})
    assert shown.outputs["c"] == {"later": 7}


@pytest.mark.req("SEQ-HND-2")
@pytest.mark.parametrize("name", sorted(RESERVED)[::4])
def test_a_built_in_name_cannot_be_taken_nor_any_name_twice(engine, name):
    with refused("handler.duplicate"):
        engine.register(detent.handler(name)(lambda: None))

    @detent.handler("mine")
    def first():
        return 1

    @detent.handler("mine")
    def second():
        return 2

    engine.register(first)
    engine.register(first)
    with refused("handler.duplicate"):
        engine.register(second)
    assert output_of(engine, "mine") == 1


@pytest.mark.req("SEQ-HND-2")
def test_what_a_handler_is_told_of_its_call(engine):
    told = []

    @detent.handler
    def look(ctx: detent.HandlerContext):
        told.append(ctx)
        return {"at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "set": {1}, "bytes": b"x"}

    engine.register(look)
    instance = engine.start(
        sequence("s", step("a", look)), {"d": 1}, config={"c": 1}, tenant="acme"
    )
    engine.run_until_idle()
    (ctx,) = told
    assert (ctx.instance_id, ctx.tenant, ctx.node, ctx.attempt) == (instance, "acme", "a", 1)
    assert (ctx.data, ctx.config, ctx.dry_run) == ({"d": 1}, {"c": 1}, False)
    assert len(ctx.key) >= 32
    output = engine.inspect.show(instance).outputs["a"]
    assert output == {"at": "2026-01-01T00:00:00Z", "set": [1], "bytes": "eA=="}
