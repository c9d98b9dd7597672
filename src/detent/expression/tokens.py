"""From the text of an expression to its tokens, in one pass."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from detent.expression.values import shorten
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_CHARS

Kind = Literal["number", "text", "name", "sign", "end"]


class Token(NamedTuple):
    """One word of an expression and where it stands."""

    kind: Kind
    text: str
    at: int


_PATTERN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>[0-9]+(?:\.[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
      | (?P<text>'[^']*'|"[^"]*")
      | (?P<sign>==|!=|>=|<=|&&|\|\||[-+*/!<>?:(),\[\]])""",
    re.VERBOSE,
)

_HINTS = {
    "'": "close the quote",
    '"': "close the quote",
    "=": "write `==` to compare",
    "&": "write `&&`",
    "|": "write `||`",
    ".": "a path is written `a.b.0`",
}


def tokenize(text: str) -> list[Token]:
    """Split an expression into tokens; the last one is always `end`."""
    if len(text) > EXPRESSION_CHARS:
        raise ExpressionError(
            "expression.limit",
            f"The expression has {len(text)} characters; at most {EXPRESSION_CHARS} are allowed.",
            limit=EXPRESSION_CHARS,
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _PATTERN.match(text, at)
        if found is None:
            raise syntax_error(text, at, "an operand or operator", _HINTS.get(text[at], ""))
        word, at = found.group(), found.end()
        match found.lastgroup:
            case "name" | "number" | "text" | "sign" as kind:
                tokens.append(Token("sign" if word == "in" else kind, word, found.start()))
    tokens.append(Token("end", "", at))
    return tokens


def syntax_error(text: str, at: int, expected: str, hint: str = "") -> ExpressionError:
    """Make the error that says what was expected, what came and where."""
    found = f"`{shorten(text[at:], 20)}`" if at < len(text) else "the end"
    advice = f"; {hint}" if hint else ""
    return ExpressionError(
        "expression.syntax",
        f"Expected {expected} at character {at + 1} of `{shorten(text)}`, found {found}{advice}.",
        position=at,
    )
