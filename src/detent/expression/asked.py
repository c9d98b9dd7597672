"""Which steps an expression asks about by name, so that a plan can refuse one it does not have."""

from __future__ import annotations

from collections.abc import Iterator

from detent.expression.nodes import Array, Call, Chain, Choice, Compare, Constant, Node, Unary
from detent.expression.parser import parse

_ANY = "any"
_ASKING = (
    "events.hasReply",
    "events.hasOpen",
    "events.hasClick",
    "events.hasBounce",
    "call.outcome",
)


def asked_steps(text: str) -> tuple[str, ...]:
    """The names in `events.hasReply("name")` and its like, each once, in their order."""
    node = parse(text)
    if node is None:
        return ()
    return tuple(dict.fromkeys(_names(node)))


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, Call) and node.name in _ASKING:
        for argument in node.arguments:
            value = argument.value if isinstance(argument, Constant) else None
            if type(value) is str and value != _ANY:
                yield value
    for inner in _inside(node):
        yield from _names(inner)


def _inside(node: Node) -> tuple[Node, ...]:
    match node:
        case Unary(_, operand):
            return (operand,)
        case Chain(first, rest):
            return (first, *(operand for _, operand in rest))
        case Compare(_, left, right):
            return (left, right)
        case Choice(test, yes, no):
            return (test, yes, no)
        case Array(items):
            return items
        case Call(_, arguments):
            return arguments
        case _:
            return ()
