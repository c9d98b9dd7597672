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


_ROOM = 20  # columns without which wrapped text is no longer read
_WORD = 30  # longer words may be broken in a table
_GAP = 3  # between columns


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
    whole: Sequence[str] = ("id", "instance")  # columns whose values are never broken


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
        """Print one line made of pieces; on a terminal it is wrapped at words."""
        if self.terminal:
            self.console.print(_rich(pieces), overflow="fold")
        else:
            self._write("".join(map(_plain, pieces)))

    def verbatim(self, text: str) -> None:
        """Print one line that is data: it stays one line, also when it is copied."""
        if self.terminal:
            self.console.print(_rich([text]), soft_wrap=True)
        else:
            self._write(_plain(text))

    def hanging(self, head: Sequence[str | Cell], *pieces: str | Cell) -> None:
        """Print a head and what belongs to it; what is wrapped stands below that, not below it."""
        indent = sum(len(_plain(each)) for each in head)
        room = self.console.width - indent if self.terminal else 0
        if room < _ROOM:
            self.line(*head, *pieces)
            return
        for place, part in enumerate(_rich(pieces).wrap(self.console, room, overflow="fold")):
            begins = _rich(head) if place == 0 else _rich([" " * indent])
            self.console.print(begins + part, soft_wrap=True)

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
            self.hanging([Cell(f"{label:<{width}}  ", "bright_black")], value)

    def table(self, table: Table) -> None:
        """Print a table, or what to say when it has no rows."""
        if table.title:
            self.heading(table.title)
        if not table.rows:
            self.line(Cell(table.empty or "none", "bright_black"))
        elif not self.terminal:
            self._plain_table(table)
        elif widths := _widths(table, self.console.width):
            self.console.print(_rich_table(table, widths))
        else:
            self._stacked(table)

    def _stacked(self, table: Table) -> None:
        """A table that is too wide for the terminal: each row as a few lines below its name."""
        for first, *others in table.rows:
            self.line(Cell(_plain(first), "bold"))
            line: list[str | Cell] = []
            for name, cell in zip(table.columns[1:], others, strict=True):
                label = Cell(f"{name} " if name else "", "bright_black")
                item: list[str | Cell] = ["  ", label, cell]
                if line and sum(map(len, map(_plain, line + item))) > self.console.width:
                    self.line(*line)
                    line = []
                line += item if _plain(cell) else []
            self.line(*line)

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


def _rich_table(table: Table, widths: Sequence[int]) -> Any:
    from rich import box
    from rich.table import Table as RichTable

    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for name, width in zip(table.columns, widths, strict=True):
        made.add_column(
            name,
            justify="right" if name in table.right else "left",
            no_wrap=_is_whole(table, name),
            width=width,
            overflow="fold",
        )
    for row in table.rows:
        made.add_row(*(_rich([cell]) for cell in row))
    return made


def _widths(table: Table, room: int) -> list[int]:
    """The width of each column, the widest made narrower first; none if they cannot fit."""
    texts = [list(table.columns), *([_plain(cell) for cell in row] for row in table.rows)]
    columns = list(zip(*texts, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    least = [
        width if _is_whole(table, cells[0]) else max(map(_word, cells))
        for width, cells in zip(widths, columns, strict=True)
    ]
    gaps = _GAP * (len(columns) - 1)
    if sum(least) + gaps > room:
        return []
    while sum(widths) + gaps > room:
        spare = [place for place, width in enumerate(widths) if width > least[place]]
        widths[max(spare, key=lambda place: widths[place])] -= 1
    return widths


def _is_whole(table: Table, name: str) -> bool:
    return name in table.whole or name in table.right


def _word(text: str) -> int:
    """The length of the longest word, if it is one that need not be broken."""
    return min(_WORD, max(map(len, text.split()), default=0))


def _plain(piece: str | Cell) -> str:
    return clean(piece.text if isinstance(piece, Cell) else piece)


def _is_terminal() -> bool:
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
