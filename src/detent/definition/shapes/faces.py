"""What the face of a definition asks of it: a plan is one graph of single steps, with its exits."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, item, quoted
from detent.definition.shapes.expressions import condition
from detent.definition.shapes.fields import data, listed, shaped, words, wrong_type
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.model.limits import PLAN_EXITS
from detent.model.plan import GRAPH

_KINDS = ("step", "wait", "end")

EXIT = Shape("exit", (Field("when", condition, required=True), Field("outcome", words())))


def exit_of(walk: Walk, path: str, value: Any) -> Any:
    """Check one exit; without an outcome of its own it has the name `exited`."""
    out = shaped(EXIT)(walk, path, value)
    if out is not NOTHING:
        out.setdefault("outcome", "exited")
    return out


EXITS = listed(exit_of, most=PLAN_EXITS)


def metadata(walk: Walk, path: str, value: Any) -> Any:
    """Check what an author says about a definition: an object of any values."""
    if type(value) is not dict:
        return wrong_type(walk, path, "an object", value)
    return data(walk, path, value)


def check_face(walk: Walk, out: dict[str, Any]) -> None:
    """Refuse a plan that is no plan, and what only plans have elsewhere."""
    if out.get("face") != "plan":
        if out.get("exits"):
            message = "exits belong to a plan; make it one, or leave them out"
            walk.fault("exits", "definition.face", message)
        return
    if out.get("mode") != "strict":
        message = 'expected the mode "strict" in a plan; set it'
        walk.fault("mode", "definition.face", message)
    blocks = [block for block in out.get("blocks", ()) if type(block) is dict]
    if len(blocks) != 1 or blocks[0].get("type") != "graph" or blocks[0].get("id") != GRAPH:
        message = f"expected one graph with the id {quoted(GRAPH)}; write the plan with steps"
        walk.fault("blocks", "definition.face", message)
        return
    nodes = below(item("blocks", 0), "nodes")
    for name, body in blocks[0].get("nodes", {}).items():
        plain = [block for block in body if type(block) is dict]
        single = len(body) <= 1 and len(plain) == len(body)
        if not single or any(
            block.get("id") != name or block.get("type") not in _KINDS for block in plain
        ):
            message = f"expected one {', '.join(_KINDS)} with the id of its node, or nothing"
            walk.fault(below(nodes, name), "definition.face", f"{message}; split the node")
