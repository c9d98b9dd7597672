"""Every rule for blocks that hold others or wait: what is just allowed, and what is just not."""

from __future__ import annotations

import pytest

from tests.unit.definition.samples import a_step, check_rule

LOOP = {"type": "loop", "id": "l", "condition": "true", "body": [a_step()]}
EACH = {"type": "for_each", "id": "e", "collection": "items", "body": [a_step()]}
VARIANTS = [{"name": "a", "weight": 0, "blocks": []}, {"name": "b", "weight": 1, "blocks": []}]


def split(**second):
    return {"type": "a_b_split", "id": "x", "variants": [VARIANTS[0], {**VARIANTS[1], **second}]}


def router(**options):
    return {"type": "router", "id": "r", **options}


# a block that is allowed, one that is not, the fault's place below it, its code, its HTTP status
RULES = {
    "a parallel has a branch": (
        {"type": "parallel", "id": "p", "branches": [[]]},
        {"type": "parallel", "id": "p", "branches": []},
        "branches",
        "empty",
        400,
    ),
    "a parallel has at most 256 branches": (
        {"type": "parallel", "id": "p", "branches": [[]] * 256},
        {"type": "parallel", "id": "p", "branches": [[]] * 257},
        "branches",
        "size",
        400,
    ),
    "a branch is a list": (
        {"type": "race", "id": "r", "branches": [[], []]},
        {"type": "race", "id": "r", "branches": [[], {}]},
        "branches[1]",
        "type",
        422,
    ),
    "a race has a branch": (
        {"type": "race", "id": "r", "branches": [[]]},
        {"type": "race", "id": "r", "branches": []},
        "branches",
        "empty",
        400,
    ),
    "a race decides in a known way": (
        {"type": "race", "id": "r", "branches": [[]], "semantics": "first_to_succeed"},
        {"type": "race", "id": "r", "branches": [[]], "semantics": "first_to_succed"},
        "semantics",
        "choice",
        422,
    ),
    "a loop has a condition": (LOOP, LOOP | {"condition": " "}, "condition", "blank", 400),
    "a loop has a body": (LOOP, LOOP | {"body": []}, "body", "empty", 400),
    "a loop runs at least once": (
        LOOP | {"max_iterations": 1},
        LOOP | {"max_iterations": 0},
        "max_iterations",
        "range",
        400,
    ),
    "a loop runs at most 100000 times": (
        LOOP | {"max_iterations": 100_000},
        LOOP | {"max_iterations": 100_001},
        "max_iterations",
        "range",
        400,
    ),
    "a poll interval is in whole seconds": (
        LOOP | {"poll_interval": 30},
        LOOP | {"poll_interval": 0.5},
        "poll_interval",
        "type",
        422,
    ),
    "a for_each has a collection": (EACH, EACH | {"collection": ""}, "collection", "blank", 400),
    "a for_each has an item": (
        EACH | {"item_var": "x"},
        EACH | {"item_var": " "},
        "item_var",
        "blank",
        400,
    ),
    "a for_each has a body": (EACH, EACH | {"body": []}, "body", "empty", 400),
    "a for_each is bounded": (
        EACH | {"max_iterations": 100_000},
        EACH | {"max_iterations": -1},
        "max_iterations",
        "range",
        400,
    ),
    "a router has a route or a default": (
        router(routes=[], default=[]),
        router(routes=[]),
        "routes",
        "empty",
        400,
    ),
    "a router is not nothing": (router(default=[]), router(), "routes", "missing", 422),
    "a route has a condition": (
        router(routes=[{"condition": "a", "blocks": []}]),
        router(routes=[{"condition": "", "blocks": []}]),
        "routes[0].condition",
        "blank",
        400,
    ),
    "a route has blocks": (
        router(routes=[{"condition": "a", "blocks": []}]),
        router(routes=[{"condition": "a"}]),
        "routes[0].blocks",
        "missing",
        422,
    ),
    "a try has a block": (
        {"type": "try_catch", "id": "t", "try_block": [a_step()], "catch_block": []},
        {"type": "try_catch", "id": "t", "try_block": [], "catch_block": []},
        "try_block",
        "empty",
        400,
    ),
    "a try has a catch": (
        {"type": "try_catch", "id": "t", "try_block": [a_step()], "catch_block": []},
        {"type": "try_catch", "id": "t", "try_block": [a_step()]},
        "catch_block",
        "missing",
        422,
    ),
    "a sub_sequence is named": (
        {"type": "sub_sequence", "id": "c", "sequence_name": "x"},
        {"type": "sub_sequence", "id": "c", "sequence_name": " "},
        "sequence_name",
        "blank",
        400,
    ),
    "a split has two variants": (
        split(),
        {"type": "a_b_split", "id": "x", "variants": VARIANTS[1:]},
        "variants",
        "empty",
        400,
    ),
    "the weights are not all zero": (split(), split(weight=0), "variants", "range", 400),
    "no weight is negative": (split(), split(weight=-1), "variants[1].weight", "range", 400),
    "variants differ in name": (
        split(),
        split(name="a"),
        "variants[1].name",
        "duplicate_name",
        400,
    ),
    "a variant has a name": (split(), split(name=""), "variants[1].name", "blank", 400),
    "a scope has a block": (
        {"type": "cancellation_scope", "id": "c", "blocks": [a_step()]},
        {"type": "cancellation_scope", "id": "c", "blocks": []},
        "blocks",
        "empty",
        400,
    ),
    "a saga may be empty but is a list": (
        {"type": "saga", "id": "g", "steps": []},
        {"type": "saga", "id": "g", "steps": {}},
        "steps",
        "type",
        422,
    ),
    "a saga step has an action": (
        {"type": "saga", "id": "g", "steps": [{"id": "a", "action": a_step()}]},
        {"type": "saga", "id": "g", "steps": [{"id": "a"}]},
        "steps[0].action",
        "missing",
        422,
    ),
    "saga steps differ in id": (
        {
            "type": "saga",
            "id": "g",
            "steps": [{"id": "a", "action": a_step("x")}, {"id": "b", "action": a_step("y")}],
        },
        {
            "type": "saga",
            "id": "g",
            "steps": [{"id": "a", "action": a_step("x")}, {"id": "a", "action": a_step("y")}],
        },
        "steps[1].id",
        "duplicate_name",
        400,
    ),
    "a wait waits for something": (
        {"type": "wait", "id": "w", "duration": 0},
        {"type": "wait", "id": "w"},
        "",
        "missing",
        422,
    ),
    "a signal has a name": (
        {"type": "wait", "id": "w", "signal": "go"},
        {"type": "wait", "id": "w", "signal": ""},
        "signal",
        "blank",
        400,
    ),
}


@pytest.mark.req("SEQ-BLK-4", "SEQ-BLK-5", "WF-DEF-2")
@pytest.mark.parametrize("rule", RULES)
def test_for_blocks_the_rule_holds_that(rule):
    check_rule(RULES[rule])
