"""Waits, graphs and gotos, with the questions a graph must answer before it runs.

A node leaves by a goto, or at its end by the first transition whose `when` holds; with none the
graph ends. So an edge is a goto anywhere in the node, or a transition up to the first without
`when`, unless the node's own list has a goto and its end is never reached. A node can end the
graph if its end is reached and all of its transitions have a `when`. Every node must be reachable
from the start, and from every node one that can end must be reachable.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from detent.definition.places import below, did_you_mean, item, quoted
from detent.definition.shapes.expressions import condition
from detent.definition.shapes.fields import listed, shaped, words, wrong_type
from detent.definition.shapes.nesting import block_id, block_shape, blocks
from detent.definition.shapes.times import duration
from detent.definition.shapes.until import UNTIL
from detent.definition.walk import NOTHING, Field, Shape, Walk
from detent.definition.ways import Edges, check_ways
from detent.model.plan import FINISHED

_node_name = words()
_node_body = blocks()


def _nodes(walk: Walk, path: str, value: Any) -> Any:
    if type(value) is not dict:
        return wrong_type(walk, path, "an object of nodes, each a list of blocks", value)
    if not value:
        message = "expected at least one node, found none; add the start"
        return walk.fault(path, "definition.empty", message)
    graph = walk.graphs[-1]
    graph.names = tuple(value)
    out = {}
    for name, body in value.items():
        place = below(path, name)
        _node_name(walk, place, name)
        graph.node = name
        inner = _node_body(walk, place, body)
        out[name] = [] if inner is NOTHING else inner
    return out


def _goto_rule(walk: Walk, path: str, out: dict[str, Any], raw: dict[str, Any]) -> None:
    if raw.get("id") is None:
        out["id"] = block_id(walk, below(path, "id"), _derived_id(path))
    target = out.get("to")
    if not walk.graphs:
        message = "goto is allowed only inside a graph; put the blocks into the nodes of one"
        walk.fault(path, "definition.goto", message)
    elif target is not None:
        graph = walk.graphs[-1]
        if target in graph.names:
            graph.gotos.append((graph.node, target))
        else:
            near = did_you_mean(target, graph.names)
            message = f"expected a node of the enclosing graph, found {quoted(target)}{near}"
            walk.fault(below(path, "to"), "definition.goto", message)


def _derived_id(path: str) -> str:
    return f"goto:{sha256(path.encode()).hexdigest()[:16]}"


def _graph_rule(walk: Walk, path: str, out: dict[str, Any], _raw: dict[str, Any]) -> None:
    nodes = out.get("nodes")
    if nodes is None:
        return
    transitions = [move for move in out.get("transitions", ()) if type(move) is dict]
    named = [(below(path, "start"), out.get("start"))]
    for index, move in enumerate(transitions):
        place = item(below(path, "transitions"), index)
        named += [(below(place, "from"), move.get("from")), (below(place, "to"), move.get("to"))]
    sound = True
    for place, name in named:
        if name is None:
            sound = False
        elif name not in nodes:
            near = did_you_mean(name, nodes)
            message = f"expected the name of a node, found {quoted(name)}{near}"
            walk.fault(place, "definition.node", message)
            sound = False
    if sound:
        edges, ends = _ways(nodes, transitions, walk.graphs[-1].gotos)
        nodes_at = below(path, "nodes")
        check_ways(walk, [out["start"]], edges, ends, lambda name: below(nodes_at, name))


def _ways(
    nodes: dict[str, Any], transitions: list[dict[str, Any]], gotos: list[tuple[str, str]]
) -> tuple[Edges, list[str]]:
    """Give where each node can lead, and the nodes that can end the graph."""
    edges: Edges = {name: [] for name in nodes}
    for origin, target in gotos:
        edges[origin].append(target)
    falls = {
        name: not any(type(part) is dict and part["type"] == "goto" for part in body)
        for name, body in nodes.items()
    }
    always = dict.fromkeys(nodes, False)
    for move in transitions:
        origin = move["from"]
        if falls[origin] and not always[origin]:
            edges[origin].append(move["to"])
            always[origin] = "when" not in move
    return edges, [name for name in nodes if falls[name] and not always[name]]


def _wait_rule(walk: Walk, path: str, _out: dict[str, Any], raw: dict[str, Any]) -> None:
    if all(raw.get(name) is None for name in ("duration", "signal", "until")):
        message = "expected a duration, a signal, a moment or several, found none; add one"
        walk.fault(path, "definition.missing", message)


def _end_rule(walk: Walk, path: str, _out: dict[str, Any], _raw: dict[str, Any]) -> None:
    if walk.face != "plan":
        message = "end is allowed only in a plan; let the last block of the list end it"
        walk.fault(path, "definition.face", message)


_TRANSITION = Shape(
    "transition",
    (
        Field("from", _node_name, required=True),
        Field("to", _node_name, required=True),
        Field("when", condition),
    ),
)

WAIT = block_shape(
    "wait",
    Field("duration", duration),
    Field("signal", words()),
    Field("store_as", words()),
    Field("until", shaped(UNTIL)),
    rule=_wait_rule,
)

GRAPH = block_shape(
    "graph",
    Field("nodes", _nodes, required=True),
    Field("start", _node_name, required=True),
    Field("transitions", listed(shaped(_TRANSITION)), default=[]),
    rule=_graph_rule,
)

GOTO = Shape(
    "goto",
    (
        Field("type", words()),
        Field("id", block_id),
        Field("to", _node_name, required=True),
    ),
    _goto_rule,
)

END = block_shape("end", Field("outcome", words(), default=FINISHED), rule=_end_rule)
