"""Expressions at definition time, warnings, and fields that nobody reads."""

from __future__ import annotations

import pytest

from detent.definition import normalize, unknown_fields, warnings
from tests.unit.definition.samples import EVERY_KIND, a_sequence, a_step, faults_of

BROKEN = "data.x =="
RETRY = {"max_attempts": 1, "initial_backoff": 1, "max_backoff": 1}
LOOP = {"type": "loop", "id": "l", "condition": "true", "body": [a_step()]}
EACH = {"type": "for_each", "id": "e", "collection": "x", "body": [a_step()]}

# a sound block, a broken one, the place of what is broken
EXPRESSIONS = {
    "a guard": (a_step(when="data.x"), a_step(when=BROKEN), "when"),
    "a condition of a loop": (LOOP, LOOP | {"condition": BROKEN}, "condition"),
    "a break": (LOOP | {"break_on": "data.x"}, LOOP | {"break_on": BROKEN}, "break_on"),
    "a condition of a retry": (
        a_step(retry=RETRY | {"retry_if": "data.x"}),
        a_step(retry=RETRY | {"retry_if": BROKEN}),
        "retry.retry_if",
    ),
    "a route": (
        {"type": "router", "id": "r", "routes": [{"condition": "data.x", "blocks": []}]},
        {"type": "router", "id": "r", "routes": [{"condition": BROKEN, "blocks": []}]},
        "routes[0].condition",
    ),
    "a transition": (
        {
            "type": "graph",
            "id": "g",
            "start": "a",
            "nodes": {"a": []},
            "transitions": [{"from": "a", "to": "a", "when": "data.x"}],
        },
        {
            "type": "graph",
            "id": "g",
            "start": "a",
            "nodes": {"a": []},
            "transitions": [{"from": "a", "to": "a", "when": BROKEN}],
        },
        "transitions[0].when",
    ),
    "params": (
        a_step(params={"a": ["{{ data.x }}"]}),
        a_step(params={"a": ["{{ nowhere.x }}"]}),
        "params.a[0]",
    ),
    "a cache key": (
        a_step(cache_key="{{ data.x }}"),
        a_step(cache_key="{{ nowhere.x }}"),
        "cache_key",
    ),
    "a collection": (
        EACH | {"collection": "{{ data.x }}"},
        EACH | {"collection": "{{ nowhere.x }}"},
        "collection",
    ),
    "the input of a child": (
        {"type": "sub_sequence", "id": "c", "sequence_name": "x", "input": "{{ data.x }}"},
        {"type": "sub_sequence", "id": "c", "sequence_name": "x", "input": "{{ nowhere.x }}"},
        "input",
    ),
}


@pytest.mark.req("WF-EXP-1", "WF-DEF-2")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_does_not_compile_is_a_fault_when_strict_and_a_warning_when_lenient(name):
    sound, broken, place = EXPRESSIONS[name]
    path = f"blocks[0].{place}"

    for mode in ("lenient", "strict"):
        assert warnings(normalize(a_sequence(sound, mode=mode)), ["noop"]) == []
    assert faults_of(a_sequence(broken, mode="strict")) == [(path, "definition.expression")]
    (warning,) = warnings(normalize(a_sequence(broken)), ["noop"])
    assert warning.startswith(f"{path}: ")


def test_an_unknown_root_or_function_is_a_fault_when_strict():
    for text in ("nowhere.x", "nosuch(data.x)"):
        found = faults_of(a_sequence(a_step(when=text), mode="strict"))
        assert found == [("blocks[0].when", "definition.expression")]
        normalize(a_sequence(a_step(when=text)))


def test_only_the_condition_of_a_retry_sees_the_error():
    text = "_error.message != 'gone'"

    normalize(a_sequence(a_step(retry=RETRY | {"retry_if": text}), mode="strict"))

    found = faults_of(a_sequence(a_step(when=text), mode="strict"))
    assert found == [("blocks[0].when", "definition.expression")]


def test_an_empty_guard_is_allowed_in_both_modes():
    for mode in ("lenient", "strict"):
        assert warnings(normalize(a_sequence(a_step(when=""), mode=mode)), ["noop"]) == []


def test_expressions_are_not_looked_at_beside_values_that_are_no_data():
    raw = a_sequence(a_step(params={"a": "{{ nowhere }}", "b": float("nan")}), mode="strict")

    assert faults_of(raw) == [("blocks[0].params.b", "definition.number")]


def test_an_unknown_handler_is_a_warning_wherever_it_is_named():
    made = normalize(
        a_sequence(
            a_step("a", handler="nop"),
            a_step("b", handler="charge", wait_for_input={"escalation_handler": "call"}),
            policies=[{"handler": "mine"}],
        )
    )

    advice = "register it or start a worker for it"
    assert warnings(made, ["noop", "log"]) == [
        'blocks[0].handler: no handler "nop" is registered; did you mean "noop"?',
        f'blocks[1].handler: no handler "charge" is registered; {advice}',
        f'blocks[1].wait_for_input.escalation_handler: no handler "call" is registered; {advice}',
        f'policies[0].handler: no handler "mine" is registered; {advice}',
    ]
    assert warnings(made, ["nop", "charge", "call", "mine"]) == []


def test_an_unknown_field_is_named_with_what_was_perhaps_meant():
    raw = a_sequence(
        a_step(timeot=5, retry=RETRY | {"max_attempt": 3}),
        {"type": "wait", "id": "w", "duration": 1, "colour": "red"},
        blcks=[],
    )

    ignored, hint = "it is ignored", '; did you mean "max_attempts"?'
    assert unknown_fields(raw) == [
        f'blcks: unknown field of a sequence, {ignored}; did you mean "blocks"?',
        f"blocks[0].retry.max_attempt: unknown field of a retry, {ignored}{hint}",
        f'blocks[0].timeot: unknown field of a step, {ignored}; did you mean "timeout"?',
        f"blocks[1].colour: unknown field of a wait, {ignored}; remove it",
    ]
    normalize(raw)


def test_every_field_of_the_contract_is_known():
    row = {"id": "x", "tenant_id": "t", "namespace": "n", "created_at": "", "status": "draft"}

    assert unknown_fields(EVERY_KIND | row | {"deprecated": False}) == []


def test_keys_of_user_data_are_never_unknown_fields():
    assert unknown_fields(a_sequence(a_step(params={"colour": 1}, output_schema={"x": 1}))) == []


def test_unknown_fields_are_found_in_a_definition_with_faults_and_are_bounded():
    raw = a_sequence(a_step(handler="", **{f"x{n}": n for n in range(500)}))

    assert len(unknown_fields(raw)) == 200


def test_every_broken_text_in_user_data_is_named_and_the_order_is_that_of_the_paths():
    broken = {
        "b": ["{{ nowhere }}", "{{ data.x }}"],
        "a": "x {{ nope.y }} {{ data.z | nofilter(1) }}",
    }
    raw = a_sequence(a_step(params=broken, when=BROKEN))

    paths = [line.partition(": ")[0] for line in warnings(normalize(raw), ["noop"])]

    assert list(dict.fromkeys(paths)) == [
        "blocks[0].params.a",
        "blocks[0].params.b[0]",
        "blocks[0].when",
    ]
    assert [path for path, _ in faults_of(raw | {"mode": "strict"})] == list(dict.fromkeys(paths))
