"""The steps of a plan in the order in which a run can come to them."""

from __future__ import annotations

from typing import Any, NamedTuple

from detent.model.definition import Definition, Graph, Step, Wait
from detent.model.errors import invariant
from detent.model.plan import SENDS, End

_KINDS = {handler: kind for kind, handler in SENDS.items()}


class PlanStep(NamedTuple):
    """A step as its author knows it; `ways` are (condition or empty, target)."""

    id: str
    kind: str  # send_email | send_voice | wait | branch | end | step
    block: Any
    ways: tuple[tuple[str, str], ...]


def plan_steps(definition: Definition) -> list[PlanStep]:
    """Every step, those first that are fewer steps away from the start."""
    graph = graph_of(definition)
    ways = _ways(graph)
    order = _spread(graph.start, ways)
    return [
        PlanStep(name, _kind(graph.nodes[name]), (*graph.nodes[name], None)[0], tuple(ways[name]))
        for name in order
    ]


def steps_after(definition: Definition, step: str | None) -> tuple[str, ...]:
    """The steps that a run can still come to; all of them while it is at none."""
    graph = graph_of(definition)
    ways = _ways(graph)
    if step is None:
        return tuple(_spread(graph.start, ways))
    return tuple(name for name in _spread(step, ways) if name != step)


def graph_of(definition: Definition) -> Graph:
    """The one graph that a plan is."""
    block = definition.body.blocks[0]
    invariant(isinstance(block, Graph), "a plan is one graph")
    return block  # type: ignore[return-value]


def _ways(graph: Graph) -> dict[str, list[tuple[str, str]]]:
    ways: dict[str, list[tuple[str, str]]] = {name: [] for name in graph.nodes}
    for move in graph.transitions:
        ways[move.origin].append((move.when or "", move.to))
    return ways


def _spread(start: str, ways: dict[str, list[tuple[str, str]]]) -> list[str]:
    seen = [start]
    for name in seen:  # grows while it is walked
        seen += [to for _, to in dict.fromkeys(ways[name]) if to not in seen]
    return list(dict.fromkeys(seen))


def _kind(body: tuple[Any, ...]) -> str:
    match body:
        case ():
            return "branch"
        case (Step(handler=handler),) if handler in _KINDS:
            return _KINDS[handler]
        case (Wait(),):
            return "wait"
        case (End(),):
            return "end"
        case _:
            return "step"
