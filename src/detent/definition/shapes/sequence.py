"""The whole definition: name, version, blocks and what surrounds them."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, did_you_mean, quoted
from detent.definition.shapes.countries import calendars, pin_calendars
from detent.definition.shapes.faces import EXITS, check_face, metadata
from detent.definition.shapes.fields import (
    choice,
    data,
    flag,
    listed,
    members,
    shaped,
    text,
    whole,
    words,
)
from detent.definition.shapes.nesting import blocks, with_own_ids
from detent.definition.shapes.schemas import schema
from detent.definition.shapes.step import CALL, handler, pool
from detent.definition.shapes.times import duration
from detent.definition.walk import NOTHING, Check, Field, Shape, Walk

INT32 = 2**31 - 1
_EFFECTS = 2**63 - 1


def _policy_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    kind = out.get("kind")
    if (raw.get("kind") is None) == (raw.get("handler") is None):
        message = "expected either kind or handler, found both or neither; keep one"
        walk.fault(path, "definition.policy", message)
    elif kind is not None and kind not in POLICIES:
        near = did_you_mean(kind, POLICIES) or f"; use one of {', '.join(POLICIES)}"
        message = f"expected a known kind of policy, found {quoted(kind)}{near}"
        walk.fault(below(path, "kind"), "definition.policy", message)
    elif kind is not None:
        params = members(walk, below(path, "params"), out.get("params", {}), POLICIES[kind])
        if params is not NOTHING:
            out["params"] = params


def _unhashed(check: Check) -> Check:
    """Make the check for a field that belongs to the stored row, not to the definition."""

    def within(walk: Walk, path: str, value: Any) -> Any:
        check(walk, path, value)
        return NOTHING

    return within


def _whole_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    pin_calendars(walk, path, out, raw)
    check_face(walk, out)


POLICIES: dict[str, Shape] = {
    "effect_budget": Shape(
        "effect_budget",
        (
            Field("max_effects", whole(1, _EFFECTS), required=True),
            Field("action", choice("pause", "fail", "skip_with_log"), default="pause"),
        ),
    ),
}

POLICY = Shape(
    "policy",
    (Field("kind", words()), Field("handler", handler), Field("params", data)),
    _policy_rule,
)

SLA = Shape("sla", (Field("max_runtime", duration), Field("max_step_runtime", duration)))

_INTERCEPTORS = Shape(
    "interceptors",
    tuple(
        Field(moment, shaped(CALL))
        for moment in ("before_step", "after_step", "on_signal", "on_complete", "on_failure")
    ),
)

_STATUS = choice("draft", "staging", "production", "unpublished")

SEQUENCE = Shape(
    "sequence",
    (
        Field("name", words(), required=True),
        Field("version", whole(0, INT32), required=True),
        Field("calendars", calendars, default={}),  # before the blocks that name countries
        Field("blocks", blocks(least=1, empty="sequence has no blocks"), required=True),
        Field("input_schema", schema),
        Field("sla", shaped(SLA)),
        Field("interceptors", shaped(_INTERCEPTORS)),
        Field("on_failure", with_own_ids(blocks())),
        Field("on_cancel", with_own_ids(blocks())),
        Field("policies", listed(shaped(POLICY)), default=[]),
        Field("mode", choice("lenient", "strict"), default="lenient"),
        Field("pool", pool),
        Field("sticky", flag, default=True),
        Field("face", choice("sequence", "plan"), default="sequence"),
        Field("exits", EXITS, default=[]),
        Field("metadata", metadata, default={}),
        Field("id", _unhashed(text)),
        Field("tenant_id", _unhashed(text)),
        Field("namespace", _unhashed(text)),
        Field("created_at", _unhashed(text)),
        Field("deprecated", _unhashed(flag)),
        Field("status", _unhashed(_STATUS)),
    ),
    _whole_rule,
)
