"""Every rule for a whole definition: what is just allowed, and what is just not."""

from __future__ import annotations

import pytest

from detent.definition import normalize, parse
from detent.model.errors import DefinitionError
from tests.unit.definition.samples import a_sequence, a_step, faults_of, message_of

LOOP = {"type": "loop", "id": "l", "condition": "true", "body": [a_step()]}
BUDGET = {"kind": "effect_budget", "params": {"max_effects": 1}}


# options of the whole definition: allowed, not allowed, path, code
SEQUENCE_RULES = {
    "it has a name": ({"name": "n"}, {"name": None}, "name", "missing"),
    "the name is not blank": ({"name": "n"}, {"name": " "}, "name", "blank"),
    "the version is a whole number": ({"version": 0}, {"version": 1.0}, "version", "type"),
    "the version fits 32 bits": (
        {"version": 2**31 - 1},
        {"version": 2**31},
        "version",
        "range",
    ),
    "blocks are a list": ({}, {"blocks": {}}, "blocks", "type"),
    "there is a block": ({}, {"blocks": []}, "blocks", "empty"),
    "blocks are not left out": ({}, {"blocks": None}, "blocks", "missing"),
    "the mode is known": ({"mode": "strict"}, {"mode": "loose"}, "mode", "choice"),
    "the input schema compiles": (
        {"input_schema": {"type": "object"}},
        {"input_schema": {"required": "email"}},
        "input_schema",
        "schema",
    ),
    "the input schema is an object": (
        {"input_schema": {}},
        {"input_schema": []},
        "input_schema",
        "schema",
    ),
    "clean-up is a list of blocks": (
        {"on_failure": []},
        {"on_failure": a_step()},
        "on_failure",
        "type",
    ),
    "clean-up has good blocks": (
        {"on_cancel": [a_step("c")]},
        {"on_cancel": [a_step("c", handler="")]},
        "on_cancel[0].handler",
        "blank",
    ),
    "a policy is of a known kind": (
        {"policies": [BUDGET]},
        {"policies": [{"kind": "efect_budget"}]},
        "policies[0].kind",
        "policy",
    ),
    "a policy is a kind or a handler": (
        {"policies": [{"handler": "mine", "params": 1}]},
        {"policies": [BUDGET | {"handler": "mine"}]},
        "policies[0]",
        "policy",
    ),
    "a policy is not nothing": (
        {"policies": [BUDGET]},
        {"policies": [{}]},
        "policies[0]",
        "policy",
    ),
    "a budget has a number": (
        {"policies": [BUDGET]},
        {"policies": [{"kind": "effect_budget"}]},
        "policies[0].params.max_effects",
        "missing",
    ),
    "a budget allows an effect": (
        {"policies": [BUDGET]},
        {"policies": [{"kind": "effect_budget", "params": {"max_effects": 0}}]},
        "policies[0].params.max_effects",
        "range",
    ),
    "a budget acts in a known way": (
        {
            "policies": [
                {"kind": "effect_budget", "params": {"max_effects": 1, "action": "skip_with_log"}}
            ]
        },
        {"policies": [{"kind": "effect_budget", "params": {"max_effects": 1, "action": "defer"}}]},
        "policies[0].params.action",
        "choice",
    ),
    "the status is known": ({"status": "draft"}, {"status": "ready"}, "status", "choice"),
    "deprecated is true or false": ({"deprecated": True}, {"deprecated": 1}, "deprecated", "type"),
}


@pytest.mark.req("SEQ-1", "WF-DEF-2")
@pytest.mark.parametrize("rule", SEQUENCE_RULES)
def test_the_rule_for_the_whole_that(rule):
    legal, illegal, path, code = SEQUENCE_RULES[rule]

    normalize(a_sequence() | legal)

    assert faults_of(a_sequence() | illegal) == [(path, f"definition.{code}")]


def test_ids_are_unique_over_the_whole_tree():
    inner = {"type": "parallel", "id": "p", "branches": [[a_step("a")], [a_step("b")]]}
    normalize(a_sequence(a_step("c"), inner))

    raw = a_sequence(a_step("a"), inner)

    assert faults_of(raw) == [("blocks[1].branches[0][0].id", "definition.duplicate_id")]
    assert message_of(raw).startswith('duplicate block id "a": it is also at blocks[0].id')


def test_each_clean_up_tree_has_ids_of_its_own():
    trees = {"on_failure": [a_step("a")], "on_cancel": [a_step("a")]}
    normalize(a_sequence(a_step("a"), **trees))

    twice = a_sequence(a_step("a"), on_failure=[a_step("b"), a_step("b")])

    assert faults_of(twice) == [("on_failure[1].id", "definition.duplicate_id")]


def test_blocks_nest_64_deep_and_no_deeper():
    def nested(depth):
        block = a_step()
        for level in range(depth - 1):
            block = {"type": "cancellation_scope", "id": f"c{level}", "blocks": [block]}
        return a_sequence(block)

    normalize(nested(64))

    (fault,) = faults_of(nested(65))
    assert fault == ("blocks[0]" + ".blocks[0]" * 64, "definition.depth")


def test_the_deepest_nesting_of_the_widest_kind_is_within_the_bounds_of_values():
    block = a_step(params=[[[[]]]])
    for level in range(63):
        block = {
            "type": "router",
            "id": f"r{level}",
            "routes": [{"condition": "x", "blocks": [block]}],
        }

    assert normalize(a_sequence(block)).body.blocks[0].id == "r62"


def test_a_definition_has_5000_blocks_and_no_more():
    normalize(a_sequence(*(a_step(f"s{n}") for n in range(5000))))

    over = a_sequence(*(a_step(f"s{n}") for n in range(5002)))

    assert faults_of(over) == [("blocks[5000]", "definition.size")]


def test_params_nest_100_deep_and_no_deeper():
    def nested(depth):
        value = []
        for _ in range(depth - 1):
            value = [value]
        return a_sequence(a_step(params=value))

    normalize(nested(100))

    assert faults_of(nested(101)) == [("blocks[0].params", "definition.depth")]


@pytest.mark.parametrize(
    ("raw", "fragment"),
    [
        (a_sequence(LOOP | {"max_iterations": 0}), "max_iterations must be > 0"),
        (a_sequence() | {"blocks": []}, "sequence has no blocks"),
        (a_sequence(a_step("a"), a_step("a")), "duplicate block id"),
        ({"version": 1, "blocks": [a_step()]}, "missing field `name`"),
    ],
)
def test_the_words_that_clients_look_for_are_in_the_message(raw, fragment):
    assert fragment in message_of(raw)


def test_only_an_object_is_a_definition():
    with pytest.raises(DefinitionError) as caught:
        parse("[1, 2]")

    assert [(f.path, f.code) for f in caught.value.faults] == [("$", "definition.type")]
