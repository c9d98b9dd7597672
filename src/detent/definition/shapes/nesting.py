"""Blocks within blocks: kind, id, depth and number."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, did_you_mean, quoted
from detent.definition.shapes.fields import listed, members, text, words, wrong_type
from detent.definition.walk import NOTHING, Check, Field, OpenGraph, Shape, Walk
from detent.model.limits import BLOCK_DEPTH, BLOCKS_TOTAL

_name = words()


def block(walk: Walk, path: str, raw: Any) -> Any:
    """Check one block of any kind."""
    walk.blocks += 1
    if walk.blocks > BLOCKS_TOTAL:
        return _one_too_many(walk, path)
    if walk.depth >= BLOCK_DEPTH:
        message = f"expected at most {BLOCK_DEPTH} blocks within one another; use a sub_sequence"
        return walk.fault(path, "definition.depth", message)
    if type(raw) is not dict:
        return wrong_type(walk, path, "a block (an object with type and id)", raw)
    shape = _shape_of(walk, path, raw.get("type"))
    if shape is None:
        return NOTHING
    walk.depth += 1
    if shape.name == "graph":
        walk.graphs.append(OpenGraph())
    out = members(walk, path, raw, shape)
    if shape.name == "graph":
        walk.graphs.pop()
    walk.depth -= 1
    return out


def blocks(*, least: int = 0, empty: str = "expected at least one block") -> Check:
    """Make the check for a list of blocks."""
    return listed(block, least=least, empty=empty)


def block_shape(kind: str, *fields: Field, **rest: Any) -> Shape:
    """Make the shape of a block kind: `type` and `id` come first in each."""
    return Shape(kind, (Field("type", text), Field("id", block_id, required=True), *fields), **rest)


# Two nodes of one path would share an effect key.
PATH_MARKS = ("/", "[", "]", "?")
RESERVED_IDS = ("on_failure", "on_cancel")


def block_id(walk: Walk, path: str, value: Any) -> Any:
    """Check an id: words, and not used before in this tree."""
    if _name(walk, path, value) is NOTHING:
        return NOTHING
    if value in RESERVED_IDS or any(mark in value for mark in PATH_MARKS):
        message = (
            f"expected an id without {' '.join(PATH_MARKS)} that is none of "
            f"{', '.join(RESERVED_IDS)}, found {quoted(value)}: node paths are written with these"
        )
        return walk.fault(path, "definition.block_id", message)
    first = walk.ids.get(value)
    if first is not None:
        message = f"duplicate block id {quoted(value)}: it is also at {first}; rename one of them"
        return walk.fault(path, "definition.duplicate_id", message)
    walk.ids[value] = path
    return value


def with_own_ids(check: Check) -> Check:
    """Make the check for a tree whose ids may repeat those of another tree."""

    def within(walk: Walk, path: str, value: Any) -> Any:
        outer, walk.ids = walk.ids, {}
        out = check(walk, path, value)
        walk.ids = outer
        return out

    return within


def _shape_of(walk: Walk, path: str, kind: Any) -> Shape | None:
    if type(kind) is str:
        shape = walk.kinds.get(kind)
        if shape is None:
            near = did_you_mean(kind, walk.kinds) or f"; use one of {', '.join(walk.kinds)}"
            message = f"expected a known block type, found {quoted(kind)}{near}"
            walk.fault(below(path, "type"), "definition.unknown_type", message)
        return shape
    if kind is None:
        message = "missing field `type`: a block must say its kind; add it"
        walk.fault(below(path, "type"), "definition.missing", message)
    else:
        wrong_type(walk, below(path, "type"), "the kind of the block as text", kind)
    return None


def _one_too_many(walk: Walk, path: str) -> Any:
    if walk.blocks == BLOCKS_TOTAL + 1:  # said once, at the first block over the limit
        message = f"expected at most {BLOCKS_TOTAL} blocks in one sequence; use sub_sequences"
        return walk.fault(path, "definition.size", message)
    return NOTHING
