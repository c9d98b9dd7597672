"""Dotted paths: which root they start at, and reading them out of a scope.

The three grammars differ only in a first segment that is no root: a lenient expression reads it
in `data`, a strict one and a template refuse it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Literal

from detent.expression.meter import Meter
from detent.expression.scope import Scope
from detent.expression.values import MISSING, shorten
from detent.model.errors import ExpressionError

Read = Callable[[Scope, Meter], Any]
Unknown = Literal["data", "refuse"]

# A segment and the array index it is, or -1.
Step = tuple[str, int]

_INDEX_DIGITS = 9


def _context(scope: Scope) -> dict[str, Any]:
    return {name: read(scope) for name, read in _SECTIONS.items()}


def _events(scope: Scope) -> Any:
    return scope.roots.get("events", scope.events)


_SECTIONS: dict[str, Callable[[Scope], Any]] = {
    name: attrgetter(name) for name in ("data", "config", "audit", "runtime")
}
_ROOTS: dict[str, Callable[[Scope], Any]] = {
    "context": _context,
    "data": attrgetter("data"),
    "config": attrgetter("config"),
    "outputs": attrgetter("outputs"),
    "steps": attrgetter("outputs"),
    "input": attrgetter("data"),
    "instance_id": attrgetter("instance_id"),
    "runtime": attrgetter("runtime"),
    "state": attrgetter("state"),
    "events": _events,
}

ROOTS: Final = tuple(_ROOTS)


class Route:
    """A path with its root resolved: a getter and the steps below it."""

    __slots__ = ("get", "own_root", "steps", "text")

    def __init__(self, segments: tuple[str, ...], unknown: Unknown) -> None:
        self.text = ".".join(segments)
        root = segments[0]
        rest = segments if root == "input" else segments[1:]
        get = _ROOTS.get(root)
        if root == "context" and rest:
            get, rest = _section(rest[0], unknown), rest[1:]
        self.own_root = None if get else root
        self.get = get or _other_root(root, unknown)
        self.steps: tuple[Step, ...] = tuple((name, _index(name)) for name in rest)

    def find(self, scope: Scope) -> Any:
        """Read the path, or tell that it is missing."""
        value = self.get(scope)
        for name, index in self.steps:
            if isinstance(value, dict):
                value = value.get(name, MISSING)
            elif isinstance(value, list) and 0 <= index < len(value):
                value = value[index]
            else:
                return MISSING
        return value


def _section(name: str, unknown: Unknown) -> Callable[[Scope], Any]:
    section = _SECTIONS.get(name)
    if section is not None:
        return section
    if unknown == "refuse":
        known = ", ".join(_SECTIONS)
        raise ExpressionError(
            "expression.unknown",
            f"`context.{name}` names an unknown section; the context has {known}.",
        )
    return lambda _: None


def _other_root(root: str, unknown: Unknown) -> Callable[[Scope], Any]:
    """Read a root that only the scope knows, else fall back as the grammar says."""

    def in_data(scope: Scope) -> Any:
        if root in scope.roots:
            return scope.roots[root]
        data = scope.data
        return data.get(root, MISSING) if isinstance(data, dict) else MISSING

    def refuse(scope: Scope) -> Any:
        if root in scope.roots:
            return scope.roots[root]
        raise unknown_root(root, tuple(scope.roots))

    return in_data if unknown == "data" else refuse


def require_root(route: Route, roots: frozenset[str] | None) -> None:
    """Refuse a path at compile time if its root will be known to no scope."""
    if route.own_root is not None and roots is not None and route.own_root not in roots:
        raise unknown_root(route.own_root, tuple(sorted(roots)))


def unknown_root(root: str, others: tuple[str, ...]) -> ExpressionError:
    """Make the error of a path that starts nowhere."""
    known = ", ".join(sorted(dict.fromkeys((*ROOTS, *others))))
    return ExpressionError(
        "expression.unknown", f"`{shorten(root)}` is an unknown root; expected one of {known}."
    )


def _index(name: str) -> int:
    if name.isascii() and name.isdigit() and len(name) <= _INDEX_DIGITS:
        return int(name)
    return -1


def reader(route: Route) -> Read:
    """Compile a route to the fastest function that reads it; what is missing is null."""
    if route.own_root is None and not route.steps:
        return _whole(route.get)
    if route.own_root is None and len(route.steps) == 1:
        return _one_step(route.get, route.steps[0])

    def read(scope: Scope, _: Meter) -> Any:
        value = route.find(scope)
        return None if value is MISSING else value

    return read


def _whole(get: Callable[[Scope], Any]) -> Read:
    return lambda scope, _: get(scope)


def _one_step(get: Callable[[Scope], Any], step: Step) -> Read:
    name, index = step

    def read(scope: Scope, _: Meter) -> Any:
        value = get(scope)
        if isinstance(value, dict):
            return value.get(name)
        if isinstance(value, list) and 0 <= index < len(value):
            return value[index]
        return None

    return read
