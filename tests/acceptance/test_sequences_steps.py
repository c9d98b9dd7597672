"""Steps and their options (SEQ-BLK-1), each at the top and deep inside other blocks."""

from __future__ import annotations

import pytest

import detent
from detent import Failed, parallel, router, sequence, step, try_catch, wait
from detent.testing import Calls
from tests.acceptance.stage import (
    HOUR_MS,
    actions,
    finished,
    refused,
    state,
    virtual,
)


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def engine():
    with virtual() as engine:
        yield engine


def flat(*blocks):
    return sequence("flat", *blocks)


def deep(*blocks):
    """The same blocks three composites down."""
    inner = parallel("p", [wait("aside", "1s")], list(blocks))
    return sequence(
        "deep", try_catch("t", do=router("r", default=inner), catch=[step("again", "fail")])
    )


def nodes_of(shown):
    """The path of the step `s`, in either place."""
    return "s" if shown.summary.name == "flat" else "t/r/p/s"


anywhere = pytest.mark.parametrize("place", [flat, deep])


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_params_are_templates_over_context_and_outputs(engine, place):
    definition = place(
        step("one", "transform", params={"n": 7, "items": ["a", "b"]}),
        step(
            "two",
            "transform",
            params={
                "typed": "{{ outputs.one.n }}",
                "text": "n is {{ outputs.one.n }}, second {{ outputs.one.items.1 }}",
                "data": "{{ data.user.name }}",
                "config": "{{ config.rate }}",
                "missing": "{{ data.nowhere }}",
                "in text": "<{{ data.nowhere }}>",
                "fallback": "{{ data.nowhere | config.rate }}",
                "filter": "{{ data.user.name | upper }}",
            },
        ),
    )
    shown = finished(engine, definition, {"user": {"name": "Ada"}}, config={"rate": 5})
    assert shown.outputs["two"] == {
        "typed": 7,
        "text": "n is 7, second b",
        "data": "Ada",
        "config": 5,
        "missing": None,
        "in text": "<null>",
        "fallback": 5,
        "filter": "ADA",
    }


@pytest.mark.req("SEQ-BLK-1")
@anywhere
@pytest.mark.parametrize("template", ["{{ nowhere.x }}", "{{ json(nowhere) }}"])
def test_a_template_that_cannot_be_filled_fails_the_step_for_good(engine, calls, place, template):
    act = calls.handler("act", {})
    engine.register(act)
    definition = place(step("s", act, params={"x": template}, retry=detent.retry(3)))
    shown = finished(engine, definition)
    assert shown.summary.state == "failed"
    assert calls.made == ()


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_delay_is_served_once_before_the_step_and_a_signal_does_not_shorten_it(
    engine, calls, place
):
    act = calls.handler("act", {})
    engine.register(act)
    instance = engine.start(place(step("s", act, delay="1h")))
    engine.advance(HOUR_MS // 2)
    engine.signal(instance, "update_context", {"told": 1})
    engine.signal(instance, "other")
    assert engine.inspect.show(instance).data == {"told": 1}
    engine.advance(HOUR_MS // 2 - 100)
    assert state(engine, instance) == "scheduled"
    assert calls.made == ()
    engine.advance(100)
    assert calls.count("act") == 1
    assert engine.wait_for(instance) == "completed"


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_max_attempts_is_the_number_of_executions(engine, calls, place):
    act = calls.handler("act", Failed("no"))
    engine.register(act)
    shown = finished(engine, place(step("s", act, retry=detent.retry(3, initial_backoff="1s"))))
    assert shown.summary.state == "failed"
    assert [call.attempt for call in calls.made] == [1, 2, 3]


@pytest.mark.req("SEQ-BLK-1", "CORE-EFF-7")
@anywhere
def test_what_is_not_worth_a_retry_is_not_retried(engine, place):
    calls = Calls()
    cases = {
        "final": (Failed("no", retryable=False), {}),
        "code": (Failed("no", code="card_declined"), {"non_retryable_codes": ["card_declined"]}),
        "status": (Failed("no", details={"status": 404}), {"non_retryable_codes": ["404"]}),
        "condition": (Failed("gone away"), {"retry_if": "_error.message != 'gone away'"}),
        "kept": (Failed("busy"), {"retry_if": "_error.message == 'busy'"}),
    }
    for name, (error, options) in cases.items():
        act = calls.handler(name, error)
        engine.register(act)
        retry = detent.retry(3, initial_backoff="1s", **options)
        definition = place(step("s", act, retry=retry))
        finished(engine, sequence(name, *detent.definition.to_wire(definition)["blocks"]))
    assert {name: calls.count(name) for name in cases} == {
        "final": 1,
        "code": 1,
        "status": 1,
        "condition": 1,
        "kept": 3,
    }


@pytest.mark.req("SEQ-BLK-1")
@anywhere
@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("data.n > 3", True),
        ("data.n > 30", False),
        ("", False),
        ("data.nowhere", False),
        ("{{ data.n == 7 }}", True),
        ("'a' in data.list && !false", True),
    ],
)
def test_a_step_whose_guard_is_false_is_skipped_with_an_entry_and_no_output(
    engine, calls, place, when, runs
):
    act = calls.handler("act", {})
    engine.register(act)
    definition = place(step("s", act, when=when), step("after", "noop"))
    shown = finished(engine, definition, {"n": 7, "list": ["a"]})
    assert shown.summary.state == "completed"
    assert (calls.count("act"), "s" in shown.outputs) == (int(runs), runs)
    assert "after" in shown.outputs
    assert actions(engine, shown.summary.id).count("step.skipped") == int(not runs)


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_guard_that_cannot_be_read_fails_the_step(engine, place):
    shown = finished(engine, place(step("s", "noop", when="data.n >")))
    assert shown.summary.state == "failed"
    (failed,) = engine.inspect.audit(
        shown.summary.id, action="error.occurred", node=nodes_of(shown)
    )
    assert failed.detail["kind"] == "expression"


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_the_same_cache_key_runs_the_handler_once_per_instance(engine, calls, place):
    act = calls.handler("act", {"n": 1}, {"n": 2})
    engine.register(act)
    definition = place(
        step("a", act, cache_key="k-{{ data.id }}"),
        step("b", act, cache_key="k-{{ data.id }}"),
        step("c", act, cache_key="other"),
    )
    shown = finished(engine, definition, {"id": 1})
    assert [shown.outputs[id] for id in "abc"] == [{"n": 1}, {"n": 1}, {"n": 2}]
    assert finished(engine, definition, {"id": 1}).outputs["a"] == {"n": 2}


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_step_sees_only_what_it_may_see(engine, place):
    seen = []

    @detent.handler
    def look(text: str, ctx: detent.HandlerContext):
        seen.append((text, ctx.data, ctx.config))

    engine.register(look)
    params = {"text": "{{ data.open }}/{{ data.secret }}/{{ config.key }}"}
    definition = place(
        step("all", look, params=params),
        step("some", look, params=params, context_access={"data": {"fields": ["open"]}}),
        step("none", look, params=params, context_access={"data": False, "config": False}),
    )
    finished(engine, definition, {"open": 1, "secret": 2}, config={"key": 3})
    assert seen == [
        ("1/2/3", {"open": 1, "secret": 2}, {"key": 3}),
        ("1/null/3", {"open": 1}, {"key": 3}),
        ("null/null/null", None, None),
    ]


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_an_output_that_breaks_its_schema_fails_the_step_for_good(engine, calls, place):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    good = calls.handler("good", {"n": 1})
    bad = calls.handler("bad", {"n": "one"})
    engine.register([good, bad])
    retry = detent.retry(3, initial_backoff="1s")
    fine = place(step("s", good, output_schema=schema))
    assert finished(engine, fine).summary.state == "completed"
    wire = detent.definition.to_wire(place(step("s", bad, output_schema=schema, retry=retry)))
    shown = finished(engine, sequence("bad one", *wire["blocks"]))
    assert shown.summary.state == "failed"
    assert calls.count("bad") == 1


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_step_that_is_not_cancellable_finishes_before_the_cancel_takes_effect(engine, place):
    definition = place(
        step("s", "sleep", params={"duration_ms": HOUR_MS}, cancellable=False),
        step("after", "noop"),
    )
    instance = engine.start(definition)
    engine.cancel(instance)
    assert state(engine, instance) == "running"
    assert engine.inspect.show(instance).cancel_requested
    engine.advance(HOUR_MS)
    shown = engine.inspect.show(instance)
    assert shown.summary.state == "cancelled"
    assert shown.outputs["s"] == {"slept_ms": HOUR_MS}
    assert "after" not in shown.outputs


@pytest.mark.req("SEQ-BLK-1")
@anywhere
def test_a_missed_deadline_fails_the_step_and_calls_its_breach_handler_once(engine, calls, place):
    breached = calls.handler("breached", {})
    engine.register(breached)
    breach = {"handler": breached, "params": {"who": "ops"}}
    definition = place(
        step("s", "noop", delay="1d", deadline="2h", on_deadline_breach=breach),
    )
    instance = engine.start(definition)
    engine.advance(2 * HOUR_MS - 100)
    assert state(engine, instance) == "scheduled"
    assert engine.wait_for(instance) == "failed"
    assert calls.count("breached") == 1
    assert calls.made[0].params["who"] == "ops"


@pytest.mark.req("SEQ-BLK-1", "CORE-EFF-4")
def test_a_call_over_its_timeout_is_a_failure_that_may_be_retried(tmp_path):
    import threading

    release, tried = threading.Event(), []

    @detent.handler
    def slow():
        tried.append(1)
        if len(tried) == 1:
            release.wait(10)
        return {"n": len(tried)}

    retry = detent.retry(2, initial_backoff=10)
    with detent.Engine(tmp_path / "s.db", handlers=[slow], resolution_ms=10) as engine:
        retried = engine.start(sequence("s", step("s", slow, timeout=50, retry=retry)))
        assert engine.wait_for(retried) == "completed"
        assert engine.inspect.show(retried).outputs["s"] == {"n": 2}
        release.set()


@pytest.mark.req("SEQ-BLK-1")
@pytest.mark.parametrize(
    "options",
    [
        {"compensation": {"handler": "noop"}},
    ],
    ids=str,
)
def test_an_option_that_nobody_performs_yet_is_refused_and_never_ignored(options):
    with refused("definition.unsupported"):
        sequence("s", step("s", "noop", **options))
