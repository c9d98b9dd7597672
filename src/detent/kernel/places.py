"""Places: what a node path means, by the structure of its program.

Block ids are any text, so a path is never cut at a character alone: each part must be the id of a
block that stands below the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from detent.kernel.program import ON_CANCEL, ON_FAILURE, Node, Program
from detent.model.snapshot import Frame, Snapshot

_ROUND = re.compile(r"\[(\d+)\]/")
_VISIT = re.compile(r"\[(\d+):")
# calls that are not the step's own: a policy, an escalation, a breached deadline
_SUFFIX = re.compile(r"\?(policy:\d+:\d+|escalation|breach)$")
_REPEATING = ("loop", "for_each")
_BRANCHING = ("parallel", "race", "router", "a_b_split", "try_catch", "saga", "graph")


class Place(NamedTuple):
    """A node of an instance: its block, the path above it, and the rounds it lies in."""

    node: Node
    parent: str
    rounds: tuple[tuple[str, int], ...]  # (path of the loop, iteration), outermost first


class Places:
    """The places of one program, each looked up once."""

    __slots__ = ("_branches", "_found", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[str, Place | None] = {}
        self._branches: dict[str, int] = {}
        for node in program.nodes.values():
            for index, nodes in enumerate(node.lists):
                for child in nodes:
                    self._branches[child.key] = index

    def find(self, path: str) -> Place | None:
        """The place of a path; None when the program has no such node."""
        if path not in self._found:
            self._found[path] = self._search(path)
        return self._found[path]

    def block_of(self, path: str) -> str:
        """The block id of a path, as well as it can be told."""
        place = self.find(path)
        return place.node.id if place is not None else path.rpartition("/")[2]

    def branch_of(self, node: Node) -> int | None:
        """The contract's branch_index: which list of its parent a block stands in."""
        parent = self.program.nodes.get(node.parent)
        if parent is None or parent.kind not in _BRANCHING:
            return None
        return self._branches[node.key]

    def _search(self, path: str) -> Place | None:
        for space in (ON_FAILURE, ON_CANCEL):
            if path.startswith(f"{space}/"):
                found = self._below(path, len(space) + 1, f"{space}/", Above("", "", ()))
                if found is not None:
                    return found
        return self._below(path, 0, "", Above("", "", ()))

    def _below(self, path: str, at: int, space: str, above: Above) -> Place | None:
        for cut in _cuts(path, at):
            node = self.program.nodes.get(space + path[at:cut])
            if node is None or node.parent != above.key:
                continue
            if above.list is not None and self._branches.get(node.key) != above.list:
                continue
            if cut == len(path):
                return Place(node, above.path, above.rounds)
            found = self._into(path, cut, space, node, above)
            if found is not None:
                return found
        return None

    def _into(self, path: str, cut: int, space: str, node: Node, above: Above) -> Place | None:
        """Go on below a composite; how its path continues depends on its kind."""
        own = path[:cut]
        if node.kind in _REPEATING:
            found = _ROUND.match(path, cut)
            if found is None:
                return None
            rounds = (*above.rounds, (own, int(found[1])))
            return self._below(path, found.end(), space, Above(node.key, own, rounds))
        if node.kind == "graph":
            return self._into_graph(path, cut, space, node, above)
        if path[cut] != "/":
            return None
        return self._below(path, cut + 1, space, Above(node.key, own, above.rounds))

    def _into_graph(
        self, path: str, cut: int, space: str, node: Node, above: Above
    ) -> Place | None:
        visit = _VISIT.match(path, cut)
        if visit is None:
            return None
        for name, index in node.names.items():
            if path.startswith(f"{name}]/", visit.end()):
                at = visit.end() + len(name) + 2
                here = Above(node.key, path[:cut], above.rounds, index)
                below = self._below(path, at, space, here)
                if below is not None:
                    return below
        return None


class Above(NamedTuple):
    """Where a search goes on below."""

    key: str
    path: str
    rounds: tuple[tuple[str, int], ...]
    list: int | None = None


def _cuts(path: str, at: int) -> Iterator[int]:
    for index in range(at + 1, len(path)):
        if path[index] in "/[":
            yield index
    yield len(path)


def own_path(path: str) -> str:
    """The node's own path, without the suffix of a call that is not the step's own."""
    return _SUFFIX.sub("", path)


def frontier(snapshot: Snapshot, program: Program) -> Iterator[tuple[str, Frame, Node]]:
    """Every open node of an instance with its path, in tree order."""
    root = snapshot.root
    if root is None:
        return
    for index, lane in enumerate(root.lanes):
        if lane.open is not None and not lane.end:
            prefix = "" if index == 0 else f"{root.phase}/"
            yield from _open(lane.open, prefix, program)


def _open(frame: Frame, prefix: str, program: Program) -> Iterator[tuple[str, Frame, Node]]:
    node = program.nodes.get(frame.b)
    if node is None:
        return
    path = prefix + node.id
    yield path, frame, node
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            yield from _open(lane.open, path + inner(node, frame), program)


def inner(node: Node, frame: Frame) -> str:
    """What stands between a composite's path and that of a block in it."""
    if node.kind in _REPEATING:
        return f"[{frame.n}]/"
    return f"[{frame.n}:{frame.phase}]/" if node.kind == "graph" else "/"
