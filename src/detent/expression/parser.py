"""From tokens to the tree, by precedence climbing, bounded in depth.

Low to high: `? :` · `||` · `&&` · one comparison · `+ -` · `* /` · unary `! -` · primary.
"""

from __future__ import annotations

import math

from detent.expression.nodes import Array, Call, Chain, Choice, Compare, Constant, Node, Path, Unary
from detent.expression.numeric import exact
from detent.expression.tokens import Token, syntax_error, tokenize
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_DEPTH, INTEGER_BITS

_COMPARISON = 3
_LEVELS = {
    "||": 1,
    "&&": 2,
    "==": _COMPARISON,
    "!=": _COMPARISON,
    ">": _COMPARISON,
    ">=": _COMPARISON,
    "<": _COMPARISON,
    "<=": _COMPARISON,
    "in": _COMPARISON,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}
_WORDS = {"true": True, "false": False, "null": None}
_LARGEST = 2 ** (INTEGER_BITS - 1) - 1


def parse(text: str) -> Node | None:
    """Parse an expression; a pair of braces around it is dropped, a blank one gives None."""
    text = text.strip()
    if text.startswith("{{") and text.endswith("}}"):
        text = text[2:-2].strip()
    tokens = tokenize(text)
    return None if tokens[0].kind == "end" else _Parser(text, tokens).whole()


class _Parser:
    """One pass over the tokens of one text."""

    __slots__ = ("_at", "_depth", "_text", "_tokens")

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self._depth = -1  # the outermost expression is level 0

    def whole(self) -> Node:
        node = self._expression()
        if self._next.kind != "end":
            raise self._error("an operator or the end")
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _error(self, expected: str, hint: str = "") -> ExpressionError:
        return syntax_error(self._text, self._next.at, expected, hint)

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _taken(self, sign: str) -> bool:
        if self._next.kind == "sign" and self._next.text == sign:
            self._at += 1
            return True
        return False

    def _require(self, sign: str) -> None:
        if not self._taken(sign):
            raise self._error(f"`{sign}`")

    def _level(self) -> int:
        token = self._next
        return _LEVELS.get(token.text, 0) if token.kind == "sign" else 0

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > EXPRESSION_DEPTH:
            raise ExpressionError(
                "expression.limit",
                f"The expression is nested deeper than {EXPRESSION_DEPTH} levels; split it.",
                limit=EXPRESSION_DEPTH,
                position=self._next.at,
            )

    def _expression(self) -> Node:
        self._descend()
        node = self._binary(1)
        if self._taken("?"):
            yes = self._expression()
            self._require(":")
            node = Choice(node, yes, self._expression())
        self._depth -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        node = self._unary()
        while (level := self._level()) >= lowest:
            if level == _COMPARISON:
                sign = self._take().text
                node = Compare(sign, node, self._binary(level + 1))
                if self._level() == _COMPARISON:
                    raise self._error("no second comparison", "join two with `&&`")
                continue
            rest: list[tuple[str, Node]] = []
            while self._level() == level:
                sign = self._take().text
                rest.append((sign, self._binary(level + 1)))
            node = Chain(node, tuple(rest))
        return node

    def _unary(self) -> Node:
        for sign in ("!", "-"):
            if self._taken(sign):
                self._descend()
                operand = self._unary()
                self._depth -= 1
                if sign == "-" and isinstance(operand, Constant) and exact(operand.value):
                    return Constant(-operand.value)
                return Unary(sign, operand)
        return self._primary()

    def _primary(self) -> Node:
        token = self._next
        match token.kind:
            case "number":
                return Constant(self._number())
            case "text":
                return Constant(self._take().text[1:-1])
            case "name":
                return self._name()
        if self._taken("("):
            node = self._expression()
            self._require(")")
            return node
        if self._taken("["):
            return Array(self._items("]"))
        raise self._error("a value")

    def _number(self) -> int | float:
        token = self._next
        if token.text.isdigit() and len(token.text) <= len(str(_LARGEST)):
            value = int(token.text)
            if value <= _LARGEST:
                self._at += 1
                return value
        number = float(token.text)
        if math.isinf(number):
            raise self._error("a number that fits a 64-bit float")
        self._at += 1
        return number

    def _name(self) -> Node:
        name = self._take().text
        if self._taken("("):
            return Call(name, self._items(")"))
        if name in _WORDS:
            return Constant(_WORDS[name])
        return Path(tuple(name.split(".")))

    def _items(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        if self._taken(closing):
            return ()
        while True:
            items.append(self._expression())
            if not self._taken(","):
                break
        self._require(closing)
        return tuple(items)
