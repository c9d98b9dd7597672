"""Templates: JSON values whose strings may hold `{{ … }}`, compiled once, rendered often.

A string that is nothing but one pair of braces keeps the JSON type of its value; anywhere else
the value becomes text. Parts without braces are constants and are shared, not copied. Keys are
never templated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from detent.expression.braces import pieces
from detent.expression.meter import Meter, keep, keep_value, new_meter
from detent.expression.slots import Slot, compile_slot
from detent.expression.values import text_bytes, text_of
from detent.model.errors import ExpressionError
from detent.model.limits import EXPRESSION_OPERATIONS, PAYLOAD_DEPTH

if TYPE_CHECKING:
    from detent.expression.paths import Read
    from detent.expression.scope import Scope


class Broken(NamedTuple):
    """A pair of braces that cannot be compiled; rendering it raises the error."""

    text: str
    error: ExpressionError

    def reader(self) -> Read:
        """Give a function that raises."""

        def fail(_scope: Scope, _meter: Meter) -> Any:
            raise ExpressionError(self.error.code, self.error.message, **self.error.details)

        return fail


Part: TypeAlias = "str | Slot | Broken"


class Template:
    """A compiled template; `constant` tells that nothing in it needs rendering.

    `problems` are the faults a lenient template was compiled with: rendering raises them.
    """

    __slots__ = ("_render", "constant", "problems", "value")

    def __init__(
        self, value: Any, render: Read | None, problems: tuple[ExpressionError, ...]
    ) -> None:
        self.value = value
        self.constant = render is None
        self.problems = problems
        self._render = render

    def render(self, scope: Scope) -> Any:
        """Fill the template from a scope, or raise `ExpressionError`."""
        return self.value if self._render is None else self._render(scope, new_meter())


def compile_template(
    value: Any, *, strict: bool = False, roots: frozenset[str] | None = None
) -> Template:
    """Compile any JSON value as a template.

    Lenient: a broken pair of braces is kept in `problems` and raised when rendered. Strict: it
    is raised here. `roots` are those the scope will have beyond the built-in ones, if known.
    """
    compiler = _Compiler(strict=strict, roots=roots)
    render = compiler.compile(value, 0)
    return Template(value, render, tuple(compiler.problems))


def parts_of(text: str, *, strict: bool, roots: frozenset[str] | None) -> list[Part]:
    """Split a text into literal parts and compiled pairs of braces."""
    return [
        piece if isinstance(piece, str) else _slot(piece.text, strict=strict, roots=roots)
        for piece in pieces(text)
    ]


def slots_at_most(text: str) -> int:
    """Bound the pairs of braces in a text without looking for them one by one."""
    return min(text.count("{{"), text.count("}}"))


def _slot(text: str, *, strict: bool, roots: frozenset[str] | None) -> Slot | Broken:
    try:
        return compile_slot(text, strict=strict, roots=roots)
    except ExpressionError as error:
        if strict or error.code == "expression.limit":
            raise
        return Broken(text, error)


class _Compiler:
    """One walk over a template value; gives None for parts that are constant."""

    __slots__ = ("_roots", "_slots", "_strict", "problems")

    def __init__(self, *, strict: bool, roots: frozenset[str] | None) -> None:
        self._strict = strict
        self._roots = roots
        self._slots = 0
        self.problems: list[ExpressionError] = []

    def compile(self, value: Any, depth: int) -> Read | None:
        if isinstance(value, str):
            return self._text(value) if "{{" in value else None
        if not isinstance(value, (dict, list)):
            return None
        if depth >= PAYLOAD_DEPTH:
            raise ExpressionError(
                "expression.limit",
                f"The template is nested deeper than {PAYLOAD_DEPTH} levels.",
                limit=PAYLOAD_DEPTH,
            )
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        changing = [
            (key, render)
            for key, item in entries
            if (render := self.compile(item, depth + 1)) is not None
        ]
        return _container(value, changing) if changing else None

    def _text(self, text: str) -> Read | None:
        before = self._slots
        self._slots += slots_at_most(text)
        if self._slots > EXPRESSION_OPERATIONS:
            raise ExpressionError(
                "expression.limit",
                f"The template holds more than {EXPRESSION_OPERATIONS} pairs of braces.",
                limit=EXPRESSION_OPERATIONS,
            )
        parts = parts_of(text, strict=self._strict, roots=self._roots)
        self.problems.extend(part.error for part in parts if isinstance(part, Broken))
        if len(parts) > 1:
            return _joined([part if isinstance(part, str) else part.reader() for part in parts])
        (part,) = parts
        if isinstance(part, str):
            return None
        # A single value is no larger than the scope it comes from; several could repeat it.
        return _counted(part.reader()) if before else part.reader()


def _container(value: Any, changing: list[tuple[Any, Read]]) -> Read:
    def render(scope: Scope, meter: Meter) -> Any:
        result = value.copy()
        for key, read in changing:
            result[key] = read(scope, meter)
        return result

    return render


def _counted(read: Read) -> Read:
    def render(scope: Scope, meter: Meter) -> Any:
        value = read(scope, meter)
        keep_value(meter, value)
        return value

    return render


def _joined(parts: list[str | Read]) -> Read:
    def render(scope: Scope, meter: Meter) -> str:
        texts: list[str] = []
        for part in parts:
            text = part if isinstance(part, str) else text_of(part(scope, meter), meter)
            keep(meter, text_bytes(text))
            texts.append(text)
        return "".join(texts)

    return render
