"""What commands print: lines, tables, labelled facts and trees; rich on a terminal, else plain.

Commands build values (`Cell`, `Table`, `Branch`) and never know which of the two shows them.
Whatever came from data is printed without control characters, so that no payload can steer a
terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from detent.cli.palette import colour, symbol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree


class Cell(NamedTuple):
    """A piece of text with a style of rich."""

    text: str
    style: str = ""


class Table(Struct, kw_only=True):
    """Rows under named columns; `empty` is said when there are none."""

    columns: Sequence[str]
    rows: list[Sequence[str | Cell]]
    title: str = ""
    empty: str = ""
    right: Sequence[str] = ()  # columns aligned to the right


class Branch(Struct, kw_only=True):
    """A node of a tree and what hangs below it."""

    pieces: list[Cell]
    children: list[Branch] = field(default_factory=list)


class Screen:
    """Prints to standard output as it is when the command starts."""

    def __init__(self, *, terminal: bool | None = None) -> None:
        self._out = sys.stdout
        self.terminal = _is_terminal() if terminal is None else terminal
        self.wide = (getattr(self._out, "encoding", "") or "").lower().startswith("utf")

    @cached_property
    def console(self) -> Console:
        """The console of rich; only loaded on a terminal."""
        from rich.console import Console

        return Console(file=self._out, highlight=False, soft_wrap=False)

    def line(self, *pieces: str | Cell) -> None:
        """Print one line made of pieces."""
        if self.terminal:
            self.console.print(_rich(pieces), soft_wrap=True)
        else:
            self._write("".join(map(_plain, pieces)))

    def flush(self) -> None:
        """Let whoever reads see what was printed, also through a pipe."""
        self._out.flush()

    def heading(self, text: str) -> None:
        """Print the title of what follows."""
        self.line()
        self.line(Cell(text, "bold"))

    def facts(self, pairs: Iterable[tuple[str, str | Cell]]) -> None:
        """Print labels and values, one under the other; empty values are left out."""
        kept = [(label, value) for label, value in pairs if _plain(value)]
        width = max((len(label) for label, _ in kept), default=0)
        for label, value in kept:
            self.line(Cell(f"{label:<{width}}  ", "bright_black"), value)

    def table(self, table: Table) -> None:
        """Print a table, or what to say when it has no rows."""
        if table.title:
            self.heading(table.title)
        if not table.rows:
            self.line(Cell(table.empty or "none", "bright_black"))
        elif self.terminal:
            self.console.print(_rich_table(table))
        else:
            self._plain_table(table)

    def tree(self, branch: Branch) -> None:
        """Print a tree."""
        if self.terminal:
            self.console.print(rich_tree(branch))
            return
        self._write("".join(map(_plain, branch.pieces)))
        self._plain_branches(branch.children, "")

    def state(self, state: str) -> Cell:
        """A state with its symbol and colour."""
        return Cell(f"{symbol(state, wide=self.wide)} {state}", colour(state))

    def _plain_table(self, table: Table) -> None:
        rows = [list(table.columns), *([_plain(cell) for cell in row] for row in table.rows)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
        for row in rows:
            cells = [
                f"{text:>{width}}" if name in table.right else f"{text:<{width}}"
                for text, width, name in zip(row, widths, table.columns, strict=True)
            ]
            self._write("  ".join(cells).rstrip())

    def _plain_branches(self, branches: Sequence[Branch], indent: str) -> None:
        fork, last, through = ("├─ ", "└─ ", "│  ") if self.wide else ("|- ", "`- ", "|  ")
        for place, branch in enumerate(branches):
            ends = place == len(branches) - 1
            text = "".join(map(_plain, branch.pieces))
            self._write(f"{indent}{last if ends else fork}{text}")
            self._plain_branches(branch.children, indent + ("   " if ends else through))

    def _write(self, text: str) -> None:
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def clean(text: str) -> str:
    """Text in which control characters are written out instead of being obeyed."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def rich_text(pieces: Iterable[str | Cell]) -> Text:
    """Pieces as one text of rich."""
    return _rich(pieces)


def rich_tree(branch: Branch) -> Tree:
    """A tree of rich, built without recursion deeper than the branch itself."""
    from rich.tree import Tree

    tree = Tree(_rich(branch.pieces), guide_style="bright_black")
    _grow(tree, branch)
    return tree


def _grow(tree: Tree, branch: Branch) -> None:
    for child in branch.children:
        _grow(tree.add(_rich(child.pieces)), child)


def _rich(pieces: Iterable[str | Cell]) -> Text:
    from rich.text import Text

    made = Text()
    for piece in pieces:
        cell = piece if isinstance(piece, Cell) else Cell(piece)
        made.append(clean(cell.text), style=cell.style or None)
    return made


def _rich_table(table: Table) -> Any:
    from rich import box
    from rich.table import Table as RichTable

    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for name in table.columns:
        right = name in table.right
        made.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in table.rows:
        made.add_row(*(_rich([cell]) for cell in row))
    return made


def _plain(piece: str | Cell) -> str:
    return clean(piece.text if isinstance(piece, Cell) else piece)


def _is_terminal() -> bool:
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
