"""Raw data to a definition: every fault at once, or canonical bytes and their hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.definition.canonical import seal
from detent.definition.plain import plain
from detent.definition.plans import compiled, is_plan
from detent.definition.shapes import BLOCKS
from detent.definition.shapes.fields import members
from detent.definition.shapes.sequence import SEQUENCE
from detent.definition.walk import Walk
from detent.model.plan import ROOTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from detent.model.definition import Definition


def normalize(raw: Mapping[str, Any]) -> Definition:
    """Check raw data and make its definition; raises `DefinitionError` with all faults."""
    walk, checked = examine(raw)
    walk.faults.raise_if_any()
    return seal(checked)


def examine(raw: Mapping[str, Any], *, lint: bool = False) -> tuple[Walk, Any]:
    """Walk through raw data; gives what was noted, and the members without defaults."""
    walk = Walk(BLOCKS, lint=lint)
    body = plain(raw, walk.faults)
    walk.clean = not walk.faults
    if type(body) is not dict:
        return walk, members(walk, "", body, SEQUENCE)
    if is_plan(body):
        made = compiled(walk, body)
        return walk, None if walk.faults else examine(made)[1]
    walk.strict = body.get("mode") == "strict"
    if body.get("face") == "plan":
        walk.face, walk.roots = "plan", ROOTS
    return walk, members(walk, "", body, SEQUENCE)
