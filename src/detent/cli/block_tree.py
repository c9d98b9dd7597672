"""The blocks of a definition as a tree for people."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from detent.cli.screen import Branch, Cell
from detent.cli.times import span
from detent.model import definition as model
from detent.model.definition import Definition


def definition_tree(definition: Definition) -> Branch:
    """The whole definition, clean-up lists included."""
    body = definition.body
    title = [
        Cell(definition.name, "bold"),
        Cell(f"  version {definition.version}  {definition.hash[:12]}", "bright_black"),
    ]
    children = _branches(body.blocks)
    for name, blocks in (("on failure", body.on_failure), ("on cancel", body.on_cancel)):
        if blocks:
            children.append(_part(name, blocks))
    return Branch(pieces=title, children=children)


def _branches(blocks: Iterable[Any] | None) -> list[Branch]:
    return [_branch(block) for block in blocks or ()]


def _branch(block: Any) -> Branch:
    kind = type(block).__struct_config__.tag
    about, children = _inside(block)
    pieces = [Cell(block.id), Cell(f"  {kind}", "cyan")]
    if about:
        pieces.append(Cell(f"  {about}", "bright_black"))
    return Branch(pieces=pieces, children=children)


def _part(name: str, blocks: Iterable[Any] | None) -> Branch:
    return Branch(pieces=[Cell(name, "italic")], children=_branches(blocks))


@singledispatch
def _inside(block: Any) -> tuple[str, list[Branch]]:
    """What is said beside a block, and what hangs below it."""
    return "", _branches(getattr(block, "blocks", None) or getattr(block, "body", None))


@_inside.register
def _(block: model.Step) -> tuple[str, list[Branch]]:
    said = [block.handler]
    if block.delay is not None:
        said.append(f"after {span(block.delay.duration)}")
    if block.retry is not None:
        said.append(f"up to {block.retry.max_attempts} attempts")
    if block.wait_for_input is not None:
        said.append("asks a person")
    if block.when:
        said.append(f"when {block.when}")
    if block.queue_name:
        said.append(f"queue {block.queue_name}")
    return ", ".join(said), []


@_inside.register
def _(block: model.Wait) -> tuple[str, list[Branch]]:
    said = []
    if block.signal:
        said.append(f"signal {block.signal}")
    if block.duration is not None:
        said.append(span(block.duration))
    return " or ".join(said), []


@_inside.register(model.Parallel)
@_inside.register(model.Race)
def _(block: Any) -> tuple[str, list[Branch]]:
    about = getattr(block, "semantics", "").replace("_", " ")
    return about, [_part(f"branch {n}", each) for n, each in enumerate(block.branches, 1)]


@_inside.register
def _(block: model.Loop) -> tuple[str, list[Branch]]:
    return f"while {block.condition}", _branches(block.body)


@_inside.register
def _(block: model.ForEach) -> tuple[str, list[Branch]]:
    return f"{block.item_var} of {block.collection}", _branches(block.body)


@_inside.register
def _(block: model.Router) -> tuple[str, list[Branch]]:
    routes = [_part(f"if {each.condition}", each.blocks) for each in block.routes]
    if block.default is not None:
        routes.append(_part("else", block.default))
    return "", routes


@_inside.register
def _(block: model.TryCatch) -> tuple[str, list[Branch]]:
    parts = [_part("try", block.try_block), _part("catch", block.catch_block)]
    if block.finally_block:
        parts.append(_part("finally", block.finally_block))
    return "", parts


@_inside.register
def _(block: model.SubSequence) -> tuple[str, list[Branch]]:
    version = "" if block.version is None else f" version {block.version}"
    return f"{block.sequence_name}{version}", []


@_inside.register
def _(block: model.ABSplit) -> tuple[str, list[Branch]]:
    return "", [
        _part(f"{each.name} (weight {each.weight})", each.blocks) for each in block.variants
    ]


@_inside.register
def _(block: model.Saga) -> tuple[str, list[Branch]]:
    parts = []
    for each in block.steps:
        part = Branch(pieces=[Cell(each.id, "italic")], children=[_branch(each.action)])
        if each.compensation is not None:
            undo = [Cell("undone by", "italic")]
            part.children.append(Branch(pieces=undo, children=[_branch(each.compensation)]))
        parts.append(part)
    return "", parts


@_inside.register
def _(block: model.Graph) -> tuple[str, list[Branch]]:
    parts = []
    for name, blocks in block.nodes.items():
        part = _part(name, blocks)
        for move in block.transitions:
            if move.origin == name:
                when = f" when {move.when}" if move.when else ""
                part.children.append(Branch(pieces=[Cell(f"→ {move.to}{when}", "bright_black")]))
        parts.append(part)
    return f"starts at {block.start}", parts


@_inside.register
def _(block: model.Goto) -> tuple[str, list[Branch]]:
    return f"→ {block.to}", []
