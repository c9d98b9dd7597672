"""The execution tree: the definition's blocks, what the journal says of each, and the frontier.

A node that was not reached is pending; a loop adds nodes for each further iteration and a graph for
each visit. Once a parent has ended, what is left below it has ended too: skipped where the parent
completed without it, else cancelled. So all nodes are terminal when the instance is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from detent.kernel.lifecycle import TERMINAL
from detent.kernel.places import Places, frontier, own_path
from detent.kernel.program import ON_CANCEL, ON_FAILURE, Node, Program
from detent.kernel.recording import Row
from detent.kernel.views import Noted, noted, retained_by
from detent.model import limits
from detent.model.snapshot import Snapshot

ENDED = ("completed", "failed", "cancelled", "skipped")
_STATES = {
    "step.entered": "running",
    "block.entered": "running",
    "step.executed": "completed",
    "block.completed": "completed",
    "block.failed": "failed",
    "step.skipped": "skipped",
    "step.cancelled": "cancelled",
    "block.cancelled": "cancelled",
    "effect.planned": "running",
    "effect.escalated": "waiting",
    "human.answered": "running",
    "wait.completed": "running",
}
_BUSY_WAITS = ("sleep", "effect")


class NodeView(Struct, frozen=True, kw_only=True):
    """One node; `id` is its path. Ticks are None until it started or ended."""

    id: str
    block: str
    type: str
    parent: str | None
    branch_index: int | None
    iteration: int | None
    state: str
    started: int | None = None
    completed: int | None = None
    attempt: int = 0
    note: str = ""


class Tree(Struct, frozen=True, kw_only=True):
    """The nodes, parents before children; `note` says what was left out."""

    nodes: tuple[NodeView, ...]
    note: str = ""


class _Mark:
    __slots__ = ("attempt", "completed", "started", "state")

    def __init__(self) -> None:
        self.state = "pending"
        self.started: int | None = None
        self.completed: int | None = None
        self.attempt = 0


def tree(
    program: Program, rows: Iterable[Row], snapshot: Snapshot, blobs: Mapping[str, bytes]
) -> Tree:
    """The tree of an instance as it stands."""
    builder = _Builder(program, snapshot)
    for entry in noted(rows, blobs):
        builder.read(entry)
    builder.overlay()
    return builder.build()


class _Builder:
    def __init__(self, program: Program, snapshot: Snapshot) -> None:
        self.program = program
        self.snapshot = snapshot
        self.places = Places(program)
        self.marks: dict[str, _Mark] = {}
        self.chosen: dict[str, int] = {}  # router or split -> the list it took
        self.visits: dict[str, list[tuple[int, str]]] = {}
        self.rounds: dict[str, int] = {}  # loop -> its last iteration
        self.nodes: list[NodeView] = []
        self.left_out = 0

    def read(self, entry: Noted) -> None:
        """Take one entry in."""
        path = own_path(entry.node)
        detail = entry.detail if isinstance(entry.detail, dict) else {}
        if entry.action == "blocks.reset":
            self._reset(detail["block"])
        if not path:
            return
        mark = self._mark(path)
        state = _STATES.get(entry.action, "")
        if entry.action == "wait.started":
            state = "running" if detail.get("kind") in _BUSY_WAITS else "waiting"
        elif entry.action == "error.occurred" and detail.get("final"):
            state = "failed"
        elif entry.action == "step.evaluated":
            self._evaluated(path, detail)
        if path != entry.node and state:
            state = mark.state  # a call beside the step's own tells nothing of the step
        if state:
            _set(mark, state, entry)
        if "attempt" in detail and path == entry.node:
            mark.attempt = detail["attempt"]

    def _reset(self, block: str) -> None:
        """A block and all that follow it were made ready to be entered again."""
        ids = [node.id for node in self.program.main]
        gone = frozenset(ids[ids.index(block) :] if block in ids else ())
        for told in (self.marks, self.chosen, self.visits, self.rounds):
            for path in [path for path in told if _top(path) in gone]:
                del told[path]

    def _mark(self, path: str) -> _Mark:
        mark = self.marks.get(path)
        if mark is None:
            mark = self.marks[path] = _Mark()
            place = self.places.find(path)
            for loop, n in place.rounds if place is not None else ():
                self.rounds[loop] = max(self.rounds.get(loop, 0), n)
        return mark

    def _evaluated(self, path: str, detail: dict[str, Any]) -> None:
        if "route" in detail:
            self.chosen[path] = detail["route"]
        elif "visit" in detail:
            seen = self.visits.setdefault(path, [])
            if (detail["visit"], detail["node"]) not in seen[-1:]:
                seen.append((detail["visit"], detail["node"]))
        elif isinstance(detail.get("output"), dict) and "variant_index" in detail["output"]:
            self.chosen[path] = detail["output"]["variant_index"]

    def overlay(self) -> None:
        """What stands open now is open, whatever was said of it before a retry."""
        if self.snapshot.state in TERMINAL:
            return
        for path, frame, _ in frontier(self.snapshot, self.program):
            mark = self._mark(path)
            wait = frame.wait
            mark.state = "running" if wait is None or wait.kind in _BUSY_WAITS else "waiting"
            mark.started = frame.since if mark.started is None else mark.started
            mark.completed = None
            mark.attempt = frame.attempt or mark.attempt

    def build(self) -> Tree:
        """Lay the nodes out in the order of the definition."""
        self._list(self.program.main, "", None, None)
        for space, nodes in ((ON_FAILURE, self.program.failure), (ON_CANCEL, self.program.cancel)):
            if any(path.startswith(f"{space}/") for path in self.marks):
                self._list(nodes, f"{space}/", None, None)
        note = f"{self.left_out} further nodes are not shown" if self.left_out else ""
        return Tree(nodes=tuple(self.nodes), note=note)

    def _list(
        self,
        nodes: list[Node],
        prefix: str,
        parent: NodeView | None,
        iteration: int | None,
        *,
        passed: bool = False,
    ) -> None:
        for node in nodes:
            view = self._view(node, prefix, parent, iteration, passed=passed)
            if len(self.nodes) >= limits.TREE_NODES:
                self.left_out += 1
                continue
            at = len(self.nodes)
            self.nodes.append(view)
            if node.kind in ("loop", "for_each"):
                self._rounds(node, view, at)
            elif node.kind == "graph":
                self._graph(node, view)
            else:
                chosen = self.chosen.get(view.id)
                for index, below in enumerate(node.lists):
                    passed_by = chosen is not None and chosen != index
                    self._list(below, f"{view.id}/", view, None, passed=passed_by)

    def _rounds(self, node: Node, view: NodeView, at: int) -> None:
        last = self.rounds.get(view.id, 0)
        most = retained_by(self.places, view.id)
        most = limits.ITERATIONS_SHOWN if most is None else max(most, 1)
        first = max(0, last + 1 - most)
        if first:
            note = f"{first} earlier iterations are not shown"
            self.nodes[at] = view = replace(view, note=note)
        for n in range(first, last + 1):
            self._list(node.lists[0], f"{view.id}[{n}]/", view, n)

    def _graph(self, node: Node, view: NodeView) -> None:
        seen = self.visits.get(view.id, [])
        for visit, name in seen[-limits.ITERATIONS_SHOWN :]:
            self._list(node.lists[node.names[name]], f"{view.id}[{visit}:{name}]/", view, visit)
        visited = {name: None for _, name in seen}
        for name, index in node.names.items():
            if name not in visited:
                self._list(node.lists[index], f"{view.id}[{name}]/", view, None)

    def _view(
        self,
        node: Node,
        prefix: str,
        parent: NodeView | None,
        iteration: int | None,
        *,
        passed: bool,
    ) -> NodeView:
        path = prefix + node.id
        mark = self.marks.get(path) or _Mark()
        above = self.snapshot.state if parent is None else parent.state
        if parent is None and above not in TERMINAL:
            above = "running"
        state = mark.state
        if passed and state == "pending":
            state = "skipped"
        elif above in ENDED and state not in ENDED:
            unused = state == "pending" and above in ("completed", "skipped")
            state = "skipped" if unused else "cancelled"
        return NodeView(
            id=path,
            block=node.id,
            type=node.kind,
            parent=None if parent is None else parent.id,
            branch_index=self.places.branch_of(node),
            iteration=iteration,
            state=state,
            started=mark.started,
            completed=mark.completed,
            attempt=mark.attempt,
        )


def _top(path: str) -> str:
    """The block of the top level that a path begins with."""
    return path.partition("/")[0].partition("[")[0]


def _set(mark: _Mark, state: str, entry: Noted) -> None:
    if entry.action in ("step.entered", "block.entered"):
        mark.started, mark.completed, mark.attempt = entry.row.tick, None, 0
    mark.state = state
    if state in ENDED:
        mark.completed = entry.row.tick
