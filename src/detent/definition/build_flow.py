"""Builders for blocks that hold other blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from detent.definition.durations import to_whole_seconds
from detent.definition.options import Block, ForEachOptions, LoopOptions, refuse_unknown

Body = Block | Sequence[Block]
"""One block or several."""


def parallel(block_id: str, /, *branches: Body) -> Block:
    """Make branches that run at the same time and must all complete."""
    return {"type": "parallel", "id": block_id, "branches": [_body(each) for each in branches]}


def race(
    block_id: str,
    /,
    *branches: Body,
    semantics: Literal["first_to_resolve", "first_to_succeed"] = "first_to_resolve",
) -> Block:
    """Make branches of which the first decides."""
    bodies = [_body(branch) for branch in branches]
    return {"type": "race", "id": block_id, "branches": bodies, "semantics": semantics}


def loop(block_id: str, condition: str, /, *body: Block, **options: Unpack[LoopOptions]) -> Block:
    """Make a body that is repeated while a condition holds."""
    refuse_unknown("loop", options, LoopOptions)
    block: Block = {**options, "type": "loop", "id": block_id, "condition": condition}
    block["poll_interval"] = to_whole_seconds(block.get("poll_interval"))
    return {**block, "body": list(body)}


def for_each(
    block_id: str, collection: str, /, *body: Block, **options: Unpack[ForEachOptions]
) -> Block:
    """Make a body that runs once per element of a list."""
    refuse_unknown("for_each", options, ForEachOptions)
    block = {"type": "for_each", "id": block_id, "collection": collection}
    return {**options, **block, "body": list(body)}


def router(block_id: str, /, *routes: Mapping[str, Any], default: Body | None = None) -> Block:
    """Make a choice: the first route whose condition holds is taken, else the default."""
    block: Block = {"type": "router", "id": block_id, "routes": list(routes)}
    return block if default is None else {**block, "default": _body(default)}


def route(condition: str, /, *blocks: Block) -> dict[str, Any]:
    """Make one route of a router."""
    return {"condition": condition, "blocks": list(blocks)}


def try_catch(
    block_id: str, /, *, do: Body, catch: Body = (), finally_: Body | None = None
) -> Block:
    """Make blocks whose failure is caught, and others that always run at the end."""
    block: Block = {"type": "try_catch", "id": block_id}
    block |= {"try_block": _body(do), "catch_block": _body(catch)}
    return block if finally_ is None else {**block, "finally_block": _body(finally_)}


def sub_sequence(
    block_id: str,
    sequence_name: str,
    /,
    *,
    version: int | None = None,
    input: Any = None,
) -> Block:
    """Make a child instance of another sequence; without a version the latest is taken."""
    block = {"type": "sub_sequence", "id": block_id, "sequence_name": sequence_name}
    return {**block, "version": version, "input": input}


def a_b_split(block_id: str, /, *variants: Mapping[str, Any]) -> Block:
    """Make a split by weight that is the same for an instance each time."""
    return {"type": "a_b_split", "id": block_id, "variants": list(variants)}


def variant(name: str, weight: int, /, *blocks: Block) -> dict[str, Any]:
    """Make one arm of a split."""
    return {"name": name, "weight": weight, "blocks": list(blocks)}


def scope(block_id: str, /, *blocks: Block) -> Block:
    """Make a body that a cancel waits for."""
    return {"type": "cancellation_scope", "id": block_id, "blocks": list(blocks)}


def saga(block_id: str, /, *steps: Mapping[str, Any]) -> Block:
    """Make actions that are undone in reverse order when one fails."""
    return {"type": "saga", "id": block_id, "steps": list(steps)}


def saga_step(name: str, action: Block, compensation: Block | None = None, /) -> dict[str, Any]:
    """Make one action of a saga and what undoes it."""
    return {"id": name, "action": action, "compensation": compensation}


def graph(
    block_id: str,
    /,
    *,
    start: str,
    nodes: Mapping[str, Body],
    transitions: Sequence[tuple[str, str] | tuple[str, str, str | None]] = (),
) -> Block:
    """Make named nodes with transitions `(from, to)` or `(from, to, when)`."""
    bodies = {name: _body(body) for name, body in nodes.items()}
    moves = [dict(zip(("from", "to", "when"), move, strict=False)) for move in transitions]
    block = {"type": "graph", "id": block_id, "start": start}
    return {**block, "nodes": bodies, "transitions": moves}


def goto(block_id: str | None, to: str, /) -> Block:
    """Make a move to another node of the enclosing graph; without an id one is derived."""
    return {"type": "goto", "id": block_id, "to": to}


def _body(body: Body) -> list[Any]:
    return [body] if isinstance(body, Mapping) else list(body)
