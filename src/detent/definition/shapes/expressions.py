"""Conditions, guards and templates: compiled when the definition is checked.

In a strict definition what does not compile is a fault. In a lenient one the contract lets it run
(a broken condition is false, a broken guard or template fails its step), so it is a warning.
"""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, did_you_mean, field_of, item, quoted
from detent.definition.shapes.fields import data, text, words, wrong_type
from detent.definition.walk import NOTHING, Check, Walk
from detent.expression import asked_steps, compile_expression, compile_template
from detent.model.errors import ExpressionError

# Naming the roots that a scope adds has unknown ones refused here, not when the step runs.
_AFTER_A_FAILURE: frozenset[str] = frozenset(("_error",))


def condition(walk: Walk, path: str, value: Any) -> Any:
    """Check an expression that must not be blank."""
    return _not_blank(walk, path, value, walk.roots)


def error_condition(walk: Walk, path: str, value: Any) -> Any:
    """Check an expression over a failure, which it sees as `_error`."""
    return _not_blank(walk, path, value, walk.roots | _AFTER_A_FAILURE)


def guard(walk: Walk, path: str, value: Any) -> Any:
    """Check an expression that may be blank, which is false."""
    return _expression(walk, path, value, walk.roots)


def template(walk: Walk, path: str, value: Any) -> Any:
    """Check a text that may hold templates."""
    if text(walk, path, value) is NOTHING:
        return NOTHING
    _compile_templates(walk, path, value)
    return value


def named(most: int) -> Check:
    """Make the check for a name of at most so many characters that may hold templates."""
    name = words(most)

    def check(walk: Walk, path: str, value: Any) -> Any:
        if name(walk, path, value) is NOTHING:
            return NOTHING
        _compile_templates(walk, path, value)
        return value

    return check


def templated(walk: Walk, path: str, value: Any) -> Any:
    """Check user data whose texts may hold templates."""
    if data(walk, path, value) is NOTHING:
        return NOTHING
    _compile_templates(walk, path, value)
    return value


def collection(walk: Walk, path: str, value: Any) -> Any:
    """Check what a for_each runs over: a path below `context.data`, or a template."""
    if type(value) is str and (not value or value.isspace()):
        message = f"expected a path or a template, found {quoted(value)}; name a list"
        return walk.fault(path, "definition.blank", message)
    return template(walk, path, value)


def _not_blank(walk: Walk, path: str, value: Any, roots: frozenset[str]) -> Any:
    if type(value) is str and (not value or value.isspace()):
        message = f"expected {field_of(path)} to be an expression, found {quoted(value)}"
        return walk.fault(path, "definition.blank", f"{message}; write it or leave it out")
    return _expression(walk, path, value, roots)


def _expression(walk: Walk, path: str, value: Any, roots: frozenset[str]) -> Any:
    if type(value) is not str:
        return wrong_type(walk, path, "an expression as text", value)
    if _wanted(walk) and value and not value.isspace():
        try:
            compile_expression(value, strict=walk.strict, roots=roots)
        except ExpressionError as error:
            _note(walk, path, error)
        else:
            _known_steps(walk, path, value)
    return value


def _known_steps(walk: Walk, path: str, value: str) -> None:
    """In a plan, each step that an expression asks about must be there."""
    for name in asked_steps(value) if walk.steps else ():
        if name not in walk.steps:
            near = did_you_mean(name, walk.steps)
            message = f"expected a step of this plan, found {quoted(name)}{near}"
            walk.fault(path, "definition.step", message)


def _compile_templates(walk: Walk, path: str, value: Any) -> None:
    """Compile text by text, so that each one that is broken is named with its own path."""
    stack = [(path, value)] if _wanted(walk) else []
    while stack:
        place, part = stack.pop()
        if type(part) is str and "{{" in part:
            try:
                compiled = compile_template(part, strict=walk.strict, roots=walk.roots)
                problems = list(compiled.problems)
            except ExpressionError as error:
                problems = [error]
            for problem in problems:
                _note(walk, place, problem)
        elif type(part) is dict:
            stack += [(below(place, key), inner) for key, inner in part.items()]
        elif type(part) is list:
            stack += [(item(place, index), inner) for index, inner in enumerate(part)]


def _wanted(walk: Walk) -> bool:
    return (walk.strict or walk.lint) and walk.clean


def _note(walk: Walk, path: str, error: ExpressionError) -> None:
    if walk.strict:
        walk.fault(path, "definition.expression", error.message)
    else:
        walk.warn(path, error.message)
