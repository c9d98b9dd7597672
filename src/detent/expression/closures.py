"""From the tree to Python closures, once; evaluation then only calls them.

Every closure takes the scope and the meter. No Python source is ever made or run. Literals are
folded into the comparisons that use them, because conditions such as `data.x == 'y'` are what
the engine evaluates most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from msgspec import Struct

from detent.expression.functions import FUNCTIONS, Function
from detent.expression.meter import Meter, keep_value
from detent.expression.nodes import Array, Call, Chain, Choice, Compare, Constant, Node, Path, Unary
from detent.expression.numeric import coerced, exact, minus
from detent.expression.operators import ORDER, arithmetic, member, order, refused
from detent.expression.paths import Read, Route, reader, require_root
from detent.expression.run import Run
from detent.expression.values import MISMATCH, equal, truthy
from detent.model.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.expression.scope import Scope


class Grammar(Struct, frozen=True):
    """The mode, and the roots the scope will have beyond the built-in ones, if known."""

    strict: bool
    roots: frozenset[str] | None


def build(node: Node, grammar: Grammar) -> Read:
    """Compile a tree."""
    match node:
        case Constant(value):
            return lambda _scope, _meter: value
        case Path(segments):
            return _path(segments, grammar)
        case Unary(sign, operand):
            return _unary(sign, build(operand, grammar), grammar)
        case Chain(first, rest):
            return _chain(first, rest, grammar)
        case Compare(sign, left, right):
            return _compare(sign, left, right, grammar)
        case Choice(test, yes, no):
            return _choice(_condition(test, grammar), build(yes, grammar), build(no, grammar))
        case Array(items):
            return _array(items, grammar)
        case Call(name, arguments):
            return _call(name, arguments, grammar)
    assert_never(node)


def yields_boolean(node: Node) -> bool:
    """Tell whether a node can only give true or false."""
    match node:
        case Compare() | Unary("!"):
            return True
        case Chain(_, rest):
            return rest[0][0] in ("&&", "||")
    return False


def _condition(node: Node, grammar: Grammar) -> Read:
    """Compile a node whose truth alone is asked for."""
    run = build(node, grammar)
    return run if yields_boolean(node) else lambda scope, meter: truthy(run(scope, meter))


def _path(segments: tuple[str, ...], grammar: Grammar) -> Read:
    route = Route(segments, "refuse" if grammar.strict else "data")
    if grammar.strict:
        require_root(route, grammar.roots)
    return reader(route)


def _unary(sign: str, operand: Read, grammar: Grammar) -> Read:
    if sign == "!":
        return lambda scope, meter: not truthy(operand(scope, meter))
    number, strict = (exact if grammar.strict else coerced), grammar.strict

    def negated(scope: Scope, meter: Meter) -> Any:
        value = operand(scope, meter)
        amount = number(value)
        result = MISMATCH if amount is None else minus(0, amount)
        if result is not MISMATCH:
            return result
        if strict:
            raise refused("-", value)
        return None

    return negated


def _chain(first: Node, rest: tuple[tuple[str, Node], ...], grammar: Grammar) -> Read:
    sign = rest[0][0]
    if sign in ("&&", "||"):
        operands = [_condition(node, grammar) for node in (first, *(node for _, node in rest))]
        return _logic(operands, every=sign == "&&")
    start = build(first, grammar)
    tail = [(arithmetic(sign, strict=grammar.strict), build(node, grammar)) for sign, node in rest]
    if len(tail) == 1:
        operate, right = tail[0]
        return lambda scope, meter: operate(start(scope, meter), right(scope, meter), meter)

    def folded(scope: Scope, meter: Meter) -> Any:
        value = start(scope, meter)
        for operate, operand in tail:
            value = operate(value, operand(scope, meter), meter)
        return value

    return folded


def _logic(operands: list[Read], *, every: bool) -> Read:
    """Join conditions; all of them are evaluated, whatever the first ones give."""
    match operands:
        case [left, right]:
            return _both(left, right) if every else _either(left, right)
    judge = all if every else any
    return lambda scope, meter: judge([operand(scope, meter) for operand in operands])


def _both(left: Read, right: Read) -> Read:
    def both(scope: Scope, meter: Meter) -> bool:
        one, two = left(scope, meter), right(scope, meter)
        return bool(one and two)

    return both


def _either(left: Read, right: Read) -> Read:
    def either(scope: Scope, meter: Meter) -> bool:
        one, two = left(scope, meter), right(scope, meter)
        return bool(one or two)

    return either


def _compare(sign: str, left: Node, right: Node, grammar: Grammar) -> Read:
    if sign in ("==", "!="):
        return _equality(left, right, grammar, same=sign == "==")
    one = build(left, grammar)
    if sign != "in" and isinstance(right, Constant) and type(right.value) in (int, float):
        return _order_with_number(sign, one, right.value, strict=grammar.strict)
    two = build(right, grammar)
    make = member(strict=grammar.strict) if sign == "in" else order(sign, strict=grammar.strict)
    return lambda scope, meter: make(one(scope, meter), two(scope, meter), meter)


def _order_with_number(sign: str, operand: Read, limit: float, *, strict: bool) -> Read:
    ordered = order(sign, strict=strict)
    compare, kind = ORDER[sign], type(limit)

    def against(scope: Scope, meter: Meter) -> bool:
        value = operand(scope, meter)
        if type(value) is kind:
            return bool(compare(value, limit))
        return bool(ordered(value, limit, meter))

    return against


def _equality(left: Node, right: Node, grammar: Grammar, *, same: bool) -> Read:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right = right, left
    one = build(left, grammar)
    if isinstance(right, Constant):
        return _equality_with(one, right.value, same=same)
    two = build(right, grammar)
    if same:
        return lambda scope, meter: equal(one(scope, meter), two(scope, meter), meter)
    return lambda scope, meter: not equal(one(scope, meter), two(scope, meter), meter)


def _equality_with(operand: Read, literal: Any, *, same: bool) -> Read:
    if isinstance(literal, str):
        # Python agrees with the language here: a string equals nothing but an equal string.
        if same:
            return lambda scope, meter: bool(operand(scope, meter) == literal)
        return lambda scope, meter: bool(operand(scope, meter) != literal)
    if literal is None or isinstance(literal, bool):
        return lambda scope, meter: (operand(scope, meter) is literal) is same
    return lambda scope, meter: equal(operand(scope, meter), literal, meter) is same


def _choice(test: Read, yes: Read, no: Read) -> Read:
    return lambda scope, meter: (yes if test(scope, meter) else no)(scope, meter)


def _array(nodes: tuple[Node, ...], grammar: Grammar) -> Read:
    constants = [node.value for node in nodes if isinstance(node, Constant)]
    if len(constants) == len(nodes):
        return lambda _scope, _meter: constants
    items = [build(node, grammar) for node in nodes]

    def made(scope: Scope, meter: Meter) -> list[Any]:
        values = [item(scope, meter) for item in items]
        for value in values:
            keep_value(meter, value)
        return values

    return made


def _call(name: str, nodes: tuple[Node, ...], grammar: Grammar) -> Read:
    function = FUNCTIONS.get(name)
    if function is None:
        if not grammar.strict:
            return lambda _scope, _meter: None
        raise ExpressionError(
            "expression.unknown",
            f"`{name}()` is an unknown function; expected one of {', '.join(FUNCTIONS)}.",
        )
    if name.startswith("events.") and nodes == (Path(("any",)),):
        nodes = ()
    if grammar.strict and not function.least <= len(nodes) <= function.most:
        raise _wrong_count(name, function, len(nodes))
    arguments = [build(node, grammar) for node in nodes[: function.most]]
    missing = [None] * (function.least - len(arguments))
    return _application(name, function.apply, arguments, missing, strict=grammar.strict)


def _wrong_count(name: str, function: Function, came: int) -> ExpressionError:
    least, most = function.least, function.most
    expected = str(least) if least == most else f"{least} to {most}"
    return ExpressionError(
        "expression.type", f"`{name}()` takes {expected} arguments, {came} were given."
    )


def _application(
    name: str,
    apply: Callable[[list[Any], Run], Any],
    arguments: list[Read],
    missing: list[None],
    *,
    strict: bool,
) -> Read:
    number = exact if strict else coerced

    def applied(scope: Scope, meter: Meter) -> Any:
        values = [argument(scope, meter) for argument in arguments]
        result = apply(values + missing, Run(scope, meter, number))
        if result is not MISMATCH:
            return result
        if strict:
            raise refused(f"{name}()", *values)
        return None

    return applied
