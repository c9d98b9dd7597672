"""What stands between `{{` and `}}`: alternatives, then filters, separated by `|`.

A segment is a filter, a path, or a literal that ends the alternatives. The value is the first
alternative that is not null, and the filters are applied to it in their order. Operators are
not evaluated: `a > 5` is a path that leads nowhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.expression.braces import split, unquoted
from detent.expression.filters import FILTERS, Apply, Argument, make_filter
from detent.expression.functions import FUNCTIONS
from detent.expression.numeric import coerced, parsed
from detent.expression.paths import ROOTS, Read, Route, reader, require_root
from detent.expression.run import Run
from detent.expression.values import MISMATCH, MISSING, shorten
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_CHARS

if TYPE_CHECKING:
    from detent.expression.meter import Meter
    from detent.expression.scope import Scope

_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\((.*)\)", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None}
_AROUND_A_PATH = ("json", "len")


class Finding(NamedTuple):
    """A value, where it came from, and whether another alternative came before it."""

    value: Any
    source: str | None
    fallback_used: bool


class Alternative(NamedTuple):
    """One way to get a value: a path, perhaps inside a function, or a literal.

    A word that may be a root of the scope is both, until the scope tells.
    """

    text: str
    literal: Any
    route: Route | None = None
    function: str | None = None

    def stands_for_itself(self, scope: Scope) -> bool:
        """Tell whether this is a literal in that scope: no path, or one of no root of it."""
        if self.route is None:
            return True
        root = self.route.own_root
        return self.literal is not MISSING and root is not None and root not in scope.roots

    def find(self, scope: Scope, meter: Meter) -> Any:
        """Read the path, or tell that it is missing."""
        value = MISSING if self.route is None else self.route.find(scope)
        if self.function is None:
            return value
        argument = None if value is MISSING else value
        result = FUNCTIONS[self.function].apply([argument], Run(scope, meter, coerced))
        return None if result is MISMATCH else result


class Slot:
    """A compiled pair of braces."""

    __slots__ = ("alternatives", "filters", "text")

    def __init__(
        self, text: str, alternatives: tuple[Alternative, ...], filters: tuple[Apply, ...]
    ) -> None:
        self.text = text
        self.alternatives = alternatives
        self.filters = filters

    def find(self, scope: Scope, meter: Meter) -> Finding:
        """Try the alternatives in order; the first that is not null, or a literal, is taken."""
        for number, alternative in enumerate(self.alternatives):
            if alternative.stands_for_itself(scope):
                return Finding(alternative.literal, "literal", number > 0)
            value = alternative.find(scope, meter)
            if value is not None and value is not MISSING:
                return Finding(value, alternative.text, number > 0)
        return Finding(None, None, fallback_used=False)

    def filtered(self, value: Any, scope: Scope, meter: Meter) -> Any:
        """Apply the filters to a value."""
        for apply in self.filters:
            value = apply(value, scope, meter)
        return value

    def reader(self) -> Read:
        """Compile to the fastest function that gives the value."""
        first = self.alternatives[0]
        if len(self.alternatives) == 1 and not self.filters and first.function is None:
            if first.route is not None:
                return reader(first.route)
            return lambda _scope, _meter: first.literal
        return lambda scope, meter: self.filtered(self.find(scope, meter).value, scope, meter)


def compile_slot(text: str, *, strict: bool, roots: frozenset[str] | None) -> Slot:
    """Compile the text between braces, or raise `ExpressionError`."""
    if len(text) > EXPRESSION_CHARS:
        raise ExpressionError(
            "expression.limit",
            f"The template has {len(text)} characters between its braces; "
            f"at most {EXPRESSION_CHARS} are allowed.",
            limit=EXPRESSION_CHARS,
        )
    first, *others = split(text, "|")
    alternatives = [_first_alternative(first, roots)]
    filters: list[Apply] = []
    for segment in others:
        apply = _filter(segment, roots, strict=strict)
        if apply is None:
            alternatives.append(_alternative(segment, roots))
        else:
            filters.append(apply)
    return Slot(text, tuple(alternatives), tuple(filters))


def _first_alternative(text: str, roots: frozenset[str] | None) -> Alternative:
    """Compile the first segment, which must be a path or a plain literal."""
    call = _CALL.fullmatch(text)
    if call is not None and call[1] not in _AROUND_A_PATH:
        raise ExpressionError(
            "expression.unknown",
            f"`{shorten(call[1])}()` is an unknown template function; expected json or len.",
        )
    literal = _literal(text)
    if literal is not MISSING:
        return Alternative(text, literal)
    inner = call[2].strip() if call else text
    route = Route(tuple(inner.split(".")), "refuse")
    require_root(route, roots)
    return Alternative(text, MISSING, route, call[1] if call else None)


def _alternative(text: str, roots: frozenset[str] | None) -> Alternative:
    """Compile a later segment: a path if it starts at a root, else a literal."""
    literal = _literal(text)
    if literal is not MISSING:
        return Alternative(text, literal)
    call = _CALL.fullmatch(text)
    if call is not None and call[1] in _AROUND_A_PATH:
        return _first_alternative(text, roots)
    segments = tuple(text.split("."))
    if segments[0] in ROOTS:
        return Alternative(text, MISSING, Route(segments, "refuse"))
    if roots is not None and segments[0] not in roots:
        return Alternative(text, text)
    return Alternative(text, text, Route(segments, "refuse"))


def _literal(text: str) -> Any:
    quoted = unquoted(text)
    if quoted is not None:
        return quoted
    if text in _WORDS:
        return _WORDS[text]
    number = parsed(text)
    return MISSING if number is None else number


def _filter(text: str, roots: frozenset[str] | None, *, strict: bool) -> Apply | None:
    call = _CALL.fullmatch(text)
    if call is None:
        plain = text in FILTERS and FILTERS[text][1] == 0
        return make_filter(text, ()) if plain else None
    name, inside = call[1], call[2].strip()
    if name in FILTERS:
        parts = split(inside, ",") if inside else []
        return make_filter(name, tuple(_argument(part, roots) for part in parts))
    if strict and name not in _AROUND_A_PATH:
        raise ExpressionError(
            "expression.unknown",
            f"`{shorten(name)}()` is an unknown filter; expected one of {', '.join(FILTERS)}.",
        )
    return None


def _argument(text: str, roots: frozenset[str] | None) -> Argument:
    """Compile an argument; only a dotted name that starts at a root is read as a path."""
    literal = _literal(text)
    if literal is not MISSING:
        quoted = unquoted(text)
        return Argument(text if quoted is None else quoted, literal)
    if "." not in text:
        return Argument(text, text)
    alternative = _alternative(text, roots)

    def read(scope: Scope, meter: Meter) -> Any:
        if alternative.stands_for_itself(scope):
            return text
        value = alternative.find(scope, meter)
        return None if value is MISSING else value

    return Argument(text, text, None if alternative.route is None else read)
