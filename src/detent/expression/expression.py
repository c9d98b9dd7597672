"""A compiled expression, and the door that makes one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from detent.expression.closures import Grammar, build, yields_boolean
from detent.expression.meter import new_meter
from detent.expression.parser import parse
from detent.expression.values import truthy
from detent.model.errors import ExpressionError

if TYPE_CHECKING:
    from detent.expression.paths import Read
    from detent.expression.scope import Scope

_CACHED = 1_024
# Longer texts are rare, and their closures large: their owner keeps them, the cache does not.
_CACHED_CHARS = 512


class Expression:
    """An expression ready to be evaluated; it keeps nothing between evaluations."""

    __slots__ = ("_boolean", "_run", "strict", "text")

    def __init__(self, text: str, run: Read, *, strict: bool, boolean: bool) -> None:
        self.text = text
        self.strict = strict
        self._run = run
        self._boolean = boolean

    def evaluate(self, scope: Scope) -> Any:
        """Give the value of the expression, or raise `ExpressionError`."""
        return self._run(scope, new_meter())

    def test(self, scope: Scope) -> bool:
        """Tell whether the value of the expression counts as true."""
        value = self._run(scope, new_meter())
        return bool(value) if self._boolean else truthy(value)

    def __repr__(self) -> str:
        return f"Expression({self.text!r}, strict={self.strict})"


def compile_expression(
    text: str, *, strict: bool = False, roots: frozenset[str] | None = None
) -> Expression:
    """Compile an expression, or raise `ExpressionError`.

    Lenient: what is unknown, missing or of the wrong type is null; a blank text is null. Strict:
    an unknown function is refused here, an unknown root too if `roots` tells which ones the
    scope will add (else at evaluation), and a wrong type or a division by zero at evaluation.
    """
    if len(text) <= _CACHED_CHARS:
        return _cached(text, strict=strict, roots=roots)
    return _compile(text, strict=strict, roots=roots)


def _compile(text: str, *, strict: bool, roots: frozenset[str] | None) -> Expression:
    node = parse(text)
    if node is None:
        if strict:
            raise ExpressionError("expression.syntax", "Expected an expression, found nothing.")
        return Expression(text, lambda _scope, _meter: None, strict=strict, boolean=False)
    run = build(node, Grammar(strict, roots))
    return Expression(text, run, strict=strict, boolean=yields_boolean(node))


_cached = lru_cache(maxsize=_CACHED)(_compile)
