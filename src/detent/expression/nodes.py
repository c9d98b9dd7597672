"""The tree of a parsed expression: eight kinds of node, plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted path, split at its dots."""

    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`!` or `-` before an operand."""

    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands joined by operators of one level, left to right.

    A chain is flat, so a long sum is a long list, not a deep tree.
    """

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison; comparisons do not chain."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """`test ? yes : no`."""

    test: Node
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True)
class Array:
    """An array literal."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a registered function, by its dotted name."""

    name: str
    arguments: tuple[Node, ...]


Node: TypeAlias = "Constant | Path | Unary | Chain | Compare | Choice | Array | Call"
