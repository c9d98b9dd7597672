"""Blocks that hold other blocks, except graphs."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, item
from detent.definition.shapes.expressions import collection, condition, guard, templated
from detent.definition.shapes.fields import choice, flag, listed, shaped, unique, whole, words
from detent.definition.shapes.nesting import block, block_shape, blocks
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.limits import BRANCHES, DURATION_MS, LOOP_ITERATIONS

_INT32 = 2**31 - 1
_BRANCHES = listed(blocks(), least=1, most=BRANCHES, empty="expected at least one branch")
_BODY = blocks(least=1, empty="expected a body of at least one block")
_ITERATIONS = whole(1, LOOP_ITERATIONS)
_RETAINED = whole(0, LOOP_ITERATIONS)


def _router_rule(walk: Walk, path: str, _out: dict[str, Any], raw: dict[str, Any]) -> None:
    if raw.get("default") is None and raw.get("routes") in (None, []):
        code = "definition.empty" if "routes" in raw else "definition.missing"
        message = "expected at least one route or a default, found neither; add one"
        walk.fault(below(path, "routes"), code, message)


def _variants(walk: Walk, path: str, value: Any) -> Any:
    out = _variant_list(walk, path, value)
    if out is NOTHING:
        return NOTHING
    whole_ones = [
        (item(path, index), variant)
        for index, variant in enumerate(out)
        if type(variant) is dict and "name" in variant and "weight" in variant
    ]
    names = [(below(place, "name"), variant["name"]) for place, variant in whole_ones]
    unique(walk, names, "name of a variant")
    weights = [variant["weight"] for _, variant in whole_ones]
    if len(weights) == len(out) and sum(weights) == 0:
        message = "total weight must be > 0, found 0; give a variant a weight"
        return walk.fault(path, "definition.range", message)
    return out


def _saga_steps(walk: Walk, path: str, value: Any) -> Any:
    out = _saga_list(walk, path, value)
    if out is NOTHING:
        return NOTHING
    ids = [
        (below(item(path, index), "id"), member["id"])
        for index, member in enumerate(out)
        if type(member) is dict and "id" in member
    ]
    unique(walk, ids, "id of a saga step")
    return out


PARALLEL = block_shape("parallel", Field("branches", _BRANCHES, required=True))

RACE = block_shape(
    "race",
    Field("branches", _BRANCHES, required=True),
    Field("semantics", choice("first_to_resolve", "first_to_succeed"), default="first_to_resolve"),
)

LOOP = block_shape(
    "loop",
    Field("condition", condition, required=True),
    Field("body", _BODY, required=True),
    Field("max_iterations", _ITERATIONS, default=1000),
    Field("break_on", guard),
    Field("continue_on_error", flag, default=False),
    Field("poll_interval", whole(0, DURATION_MS // 1000)),
    Field("retain_iterations", _RETAINED),
)

FOR_EACH = block_shape(
    "for_each",
    Field("collection", collection, required=True),
    Field("body", _BODY, required=True),
    Field("item_var", words(), default="item"),
    Field("max_iterations", _ITERATIONS, default=1000),
    Field("retain_iterations", _RETAINED),
)

_ROUTE = Shape(
    "route",
    (Field("condition", condition, required=True), Field("blocks", blocks(), required=True)),
)

ROUTER = block_shape(
    "router",
    Field("routes", listed(shaped(_ROUTE)), default=[]),
    Field("default", blocks()),
    rule=_router_rule,
)

TRY_CATCH = block_shape(
    "try_catch",
    Field("try_block", blocks(least=1), required=True),
    Field("catch_block", blocks(), required=True),
    Field("finally_block", blocks()),
)

SUB_SEQUENCE = block_shape(
    "sub_sequence",
    Field("sequence_name", words(), required=True),
    Field("version", whole(0, _INT32)),
    Field("input", templated),
)

_VARIANT = Shape(
    "variant",
    (
        Field("name", words(), required=True),
        Field("weight", whole(0, _INT32), required=True),
        Field("blocks", blocks(), required=True),
    ),
)
_variant_list = listed(shaped(_VARIANT), least=2, empty="expected at least two variants")

A_B_SPLIT = block_shape("a_b_split", Field("variants", _variants, required=True))

CANCELLATION_SCOPE = block_shape(
    "cancellation_scope", Field("blocks", blocks(least=1), required=True)
)

_SAGA_STEP = Shape(
    "saga step",
    (
        Field("id", words(), required=True),
        Field("action", block, required=True),
        Field("compensation", block),
    ),
)
_saga_list = listed(shaped(_SAGA_STEP))

SAGA = block_shape("saga", Field("steps", _saga_steps, default=[]))
