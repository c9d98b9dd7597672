"""Builders, JSON and YAML: three ways to write one definition."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
import yaml

from detent.definition import (
    a_b_split,
    for_each,
    goto,
    graph,
    loop,
    normalize,
    parallel,
    parse,
    race,
    retry,
    route,
    router,
    saga,
    saga_step,
    scope,
    sequence,
    step,
    sub_sequence,
    try_catch,
    variant,
    wait,
)
from detent.model.errors import DefinitionError
from tests.unit.definition.samples import EVERY_KIND, a_sequence, a_step


def log(message: str) -> None:
    """Stand for a decorated handler."""


log.detent_name = "log"


def noop(name):
    return step(name, "noop")


def every_kind():
    first = step(
        "first",
        "send",
        params={"to": "{{ data.email }}", "count": 1, "rate": 1.0, "none": None},
        delay=1.5,
        retry=retry(
            3,
            initial_backoff="100ms",
            max_backoff=timedelta(seconds=5),
            backoff_multiplier=3,
            jitter=10,
            retry_if="_error.message != 'x'",
            non_retryable_codes=["404"],
        ),
        timeout="200ms",
        context_access={"data": {"fields": ["email"]}, "audit": True},
        cancellable=False,
        wait_for_input={
            "prompt": "Send it?",
            "timeout": "1m",
            "escalation_handler": log,
            "choices": [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}],
            "store_as": "answer",
            "allow_comment": True,
        },
        deadline="1m30s",
        on_deadline_breach={"handler": log, "params": {"message": "late"}},
        cache_key="mail-{{ data.email }}",
        output_schema={"type": "object"},
        when="data.email != null",
    )
    return sequence(
        "every kind",
        first,
        parallel("both", [noop("p1")], []),
        race("quick", noop("r1"), [noop("r2")], semantics="first_to_succeed"),
        loop(
            "again",
            "data.more",
            noop("l1"),
            max_iterations=5,
            break_on="data.stop",
            continue_on_error=True,
            poll_interval="30s",
            retain_iterations=2,
        ),
        for_each(
            "each", "people", noop("f1"), item_var="person", max_iterations=7, retain_iterations=0
        ),
        router("choose", route("data.vip", noop("o1")), default=[]),
        try_catch("careful", do=[noop("t1")], catch=[], finally_=noop("t2")),
        sub_sequence("child", "other", version=2, input={"a": "{{ data.a }}"}),
        a_b_split("split", variant("a", 1, noop("a1")), variant("b", 3)),
        scope("whole", noop("c1")),
        saga("trip", saga_step("fly", noop("book"), noop("unbook"))),
        wait("pause", "5s", signal="go", store_as="went"),
        graph(
            "map",
            start="in",
            nodes={"in": noop("g1"), "out": [noop("g2")], "back": goto(None, "in")},
            transitions=[("in", "back", "data.again"), ("in", "out")],
        ),
        version=3,
        input_schema={"type": "object", "required": ["email"]},
        policies=[{"kind": "effect_budget", "params": {"max_effects": 9, "action": "fail"}}],
        on_failure=[step("first", log)],
        on_cancel=[step("first", log)],
    )


@pytest.mark.req("PLAN-6", "WF-DEF-1")
def test_builder_json_and_yaml_give_the_same_bytes():
    written = json.dumps(EVERY_KIND)
    expected = normalize(EVERY_KIND).canonical

    assert every_kind().canonical == expected
    assert parse(written).canonical == expected
    assert parse(written, format="yaml").canonical == expected
    assert parse(yaml.safe_dump(EVERY_KIND)).canonical == expected


DURATIONS = [
    (1500, 1500),
    (1.5, 1500),
    ("1500ms", 1500),
    ("3d", 259_200_000),
    ("2h30m", 9_000_000),
    ("1w2d3h4m5s6ms", 788_645_006),
    (" 10s ", 10_000),
    ("0s", 0),
    (timedelta(minutes=2), 120_000),
    (timedelta(microseconds=1500), 2),
    (timedelta(microseconds=1499), 1),
]


@pytest.mark.parametrize(("written", "ms"), DURATIONS)
def test_a_duration_can_be_written_as_people_do(written, ms):
    blocks = (
        step("s", "noop", delay=written, timeout=written),
        wait("w", written),
        step("t", "noop", delay={"duration": written}, retry=retry(2, initial_backoff=written)),
    )
    first, second, third = sequence("x", *blocks).body.blocks

    assert (first.delay.duration, first.timeout, second.duration) == (ms, ms, ms)
    assert (third.delay.duration, third.retry.initial_backoff) == (ms, ms)


@pytest.mark.parametrize("written", ["", "3", "3 days", "30m2h", "-1s", "1.5h", "d", "٣d", "1d1d"])
def test_a_text_that_is_no_duration_is_a_fault_with_its_place(written):
    with pytest.raises(DefinitionError) as caught:
        sequence("x", step("s", "noop", timeout=written), noop("t"))

    assert [(f.path, f.code) for f in caught.value.faults] == [
        ("blocks[0].timeout", "definition.type")
    ]


@pytest.mark.parametrize("written", [timedelta(seconds=-1), -5, -0.5])
def test_a_negative_duration_is_a_fault(written):
    with pytest.raises(DefinitionError) as caught:
        sequence("x", wait("w", written))

    assert caught.value.faults[0].code == "definition.duration"


def test_a_builder_lets_one_report_name_every_fault():
    with pytest.raises(DefinitionError) as caught:
        sequence("", step("a", "", timeout="soon"), step("a", print))

    assert [(f.path, f.code) for f in caught.value.faults] == [
        ("blocks[0].handler", "definition.blank"),
        ("blocks[0].timeout", "definition.type"),
        ("blocks[1].handler", "definition.value"),
        ("blocks[1].id", "definition.duplicate_id"),
        ("name", "definition.blank"),
    ]


def test_a_decorated_function_stands_for_its_name():
    made = sequence("x", step("s", log), policies=[{"handler": log}])

    assert made.body.blocks[0].handler == "log"
    assert made.body.policies[0].handler == "log"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: step("s", "noop", timeot=5), 'timeot\'; did you mean "timeout"'),
        (lambda: retry(3, attempts=5), "retry\\(\\) got an unexpected keyword argument 'attempts'"),
        (lambda: loop("l", "x", noop("s"), max_iteration=5), "max_iterations"),
        (lambda: for_each("e", "x", noop("s"), item="y"), "unexpected"),
        (lambda: sequence("x", noop("s"), versoin=2), "version"),
    ],
)
def test_an_option_that_does_not_exist_is_a_type_error(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_the_defaults_of_a_retry_never_contradict_each_other():
    made = sequence("x", step("s", "noop", retry=retry(2, initial_backoff="5m")))

    assert made.body.blocks[0].retry.max_backoff == 300_000
    usual = sequence("x", step("s", "noop", retry=retry(2))).body.blocks[0].retry
    assert (usual.initial_backoff, usual.max_backoff) == (1_000, 60_000)


def test_a_poll_interval_is_in_seconds_as_on_the_wire():
    def interval(value):
        return sequence("x", loop("l", "x", noop("s"), poll_interval=value)).body.blocks[0]

    assert [interval(value).poll_interval for value in (30, "2m", timedelta(hours=1))] == [
        30,
        120,
        3600,
    ]
    with pytest.raises(DefinitionError, match="whole number"):
        interval("1500ms")


def test_the_version_is_one_unless_it_is_given():
    assert sequence("x", noop("s")).version == 1
    assert sequence("x", noop("s"), version=7).version == 7


def test_building_changes_nothing_that_was_handed_in():
    options = {"delay": {"duration": "1s"}, "retry": retry(2)}
    before = json.dumps(options)
    step("s", "noop", **options)

    assert json.dumps(options) == before


def test_a_definition_built_by_hand_equals_the_wire():
    assert sequence("greet", noop("s")) == normalize(a_sequence(a_step()))
