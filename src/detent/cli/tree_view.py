"""The execution tree of an instance: each node with the symbol of its state."""

from __future__ import annotations

from collections.abc import Mapping

from detent.cli.palette import colour, symbol
from detent.cli.screen import Branch, Cell
from detent.cli.times import span
from detent.kernel.tree import NodeView, Tree


def tree_branch(
    title: list[Cell],
    tree: Tree,
    *,
    wide: bool,
    resolution_ms: int,
    held: Mapping[str, str] | None = None,
) -> Branch:
    """The nodes under a title, with what holds them; parents come before their children."""
    why = held or {}
    root = Branch(pieces=title)
    branches: dict[str | None, Branch] = {None: root}
    for node in tree.nodes:
        pieces = _pieces(node, wide=wide, resolution_ms=resolution_ms)
        if node.id in why:
            pieces.append(Cell(f"  {why[node.id]}", "bright_black"))
        branch = Branch(pieces=pieces)
        branches[node.id] = branch
        branches.get(node.parent, root).children.append(branch)
    if tree.note:
        root.children.append(Branch(pieces=[Cell(tree.note, "bright_black italic")]))
    return root


def _pieces(node: NodeView, *, wide: bool, resolution_ms: int) -> list[Cell]:
    style = colour(node.state)
    quiet = node.state in ("pending", "skipped", "cancelled")
    name = node.id.rpartition("/")[2] or node.block
    pieces = [
        Cell(f"{symbol(node.state, wide=wide)} ", style),
        Cell(name, "bright_black" if quiet else "bold" if node.state == "running" else ""),
    ]
    if node.type != "step":
        pieces.append(Cell(f"  {node.type}", "bright_black"))
    if node.state not in ("completed", "pending"):
        pieces.append(Cell(f"  {node.state}", style))
    if node.attempt > 1:
        pieces.append(Cell(f"  attempt {node.attempt}", "yellow"))
    if node.started is not None and node.completed is not None:
        took = (node.completed - node.started) * resolution_ms
        if took:
            pieces.append(Cell(f"  {span(took)}", "bright_black"))
    if node.note:
        pieces.append(Cell(f"  {node.note}", "bright_black"))
    return pieces
