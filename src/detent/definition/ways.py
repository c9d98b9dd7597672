"""The ways through named nodes: which are reachable, and from which there is a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from detent.definition.places import quoted

if TYPE_CHECKING:
    from detent.definition.walk import Walk

Edges = dict[str, list[str]]
"""Where each node can lead."""

_SHOWN_NODES = 5


def check_ways(
    walk: Walk, starts: list[str], edges: Edges, ends: list[str], place: Callable[[str], str]
) -> None:
    """Note every node that cannot be reached, and those from which no way leads to an end."""
    reached = spread(starts, edges)
    for name in edges:
        if name not in reached:
            message = (
                f"no transition or goto leads from {quoted(starts[0])} here; add one or remove it"
            )
            walk.fault(place(name), "definition.unreachable", message)
    back: Edges = {name: [] for name in edges}
    for origin, targets in edges.items():
        for target in targets:
            back[target].append(origin)
    leaving = spread(ends, back)
    stuck = [name for name in edges if name in reached and name not in leaving]
    if stuck:
        shown = ", ".join(quoted(name) for name in stuck[:_SHOWN_NODES])
        more = f" and {len(stuck) - _SHOWN_NODES} more" if len(stuck) > _SHOWN_NODES else ""
        message = (
            f"from {shown}{more} no way leads to the end of the graph; give one node a way out"
        )
        walk.fault(place(_round_again(stuck, edges)), "definition.cycle", message)


def _round_again(stuck: list[str], edges: Edges) -> str:
    """The first node that is come to twice when the first way is taken each time."""
    order = {name: place for place, name in enumerate(edges)}
    passed: dict[str, bool] = {}
    name = stuck[0]
    while name not in passed and edges[name]:
        passed[name] = True
        name = edges[name][0]
    names = list(passed)
    return min(names[names.index(name) :], key=order.__getitem__) if name in passed else name


def spread(starts: list[str], edges: Edges) -> dict[str, bool]:
    """Everything that can be reached from the starts, these included."""
    seen = dict.fromkeys(starts, True)
    todo = list(starts)
    while todo:
        for target in edges[todo.pop()]:
            if target not in seen:
                seen[target] = True
                todo.append(target)
    return seen
