"""Objects, lists and single values: the checks from which all shapes are put together."""

from __future__ import annotations

from typing import Any

from detent.definition.places import below, did_you_mean, field_of, found, item, quoted
from detent.definition.plain import NOT_PLAIN
from detent.definition.support import UNSUPPORTED
from detent.definition.walk import NOTHING, Check, Shape, Walk
from detent.model.limits import NAME_CHARS, PAYLOAD_DEPTH

_NONE_UNSUPPORTED: dict[str, str] = {}


def members(walk: Walk, path: str, raw: Any, shape: Shape) -> Any:
    """Check an object field by field; gives its canonical members, defaults left out."""
    if type(raw) is not dict:
        return wrong_type(walk, path, "an object", raw)
    unsupported = UNSUPPORTED.get(shape.name, _NONE_UNSUPPORTED)
    out: dict[str, Any] = {}
    seen = 0
    for name, check, required, default in shape.fields:
        value = raw.get(name, NOTHING)
        if value is not NOTHING:
            seen += 1
        if value is NOT_PLAIN:
            continue
        if value is NOTHING or value is None:
            if required:
                _missing(walk, below(path, name), shape)
            continue
        value = check(walk, below(path, name), value)
        if value is NOTHING or value == default:
            continue
        out[name] = value
        if name in unsupported:
            refuse_unsupported(walk, below(path, name), name, unsupported[name])
    if seen != len(raw):
        walk.note_unknown(path, raw, shape)
    if shape.rule is not None:
        shape.rule(walk, path, out, raw)
    return out


def refuse_unsupported(walk: Walk, path: str, name: str, why: str) -> None:
    """Note that an option or handler is known, but nothing performs it."""
    message = f"expected no {name}: {why}"
    walk.fault(path, "definition.unsupported", message)


def _missing(walk: Walk, path: str, shape: Shape) -> None:
    message = f"missing field `{field_of(path)}`: a {shape.name} must have it; add it"
    walk.fault(path, "definition.missing", message)


def wrong_type(walk: Walk, path: str, expected: str, value: Any) -> Any:
    """Note that a value is of another JSON type."""
    return walk.fault(path, "definition.type", f"expected {expected}, found {found(value)}")


def shaped(shape: Shape) -> Check:
    """Make the check for an object of one shape."""

    def check(walk: Walk, path: str, value: Any) -> Any:
        return members(walk, path, value, shape)

    return check


def listed(member: Check, *, least: int = 0, most: int | None = None, empty: str = "") -> Check:
    """Make the check for a list; `empty` is the sentence when there are too few members."""

    def check(walk: Walk, path: str, value: Any) -> Any:
        if type(value) is not list:
            return wrong_type(walk, path, "a list", value)
        if len(value) < least:
            return walk.fault(path, "definition.empty", f"{empty}, found {len(value)}; add one")
        if most is not None and len(value) > most:
            message = f"expected at most {most} members, found {len(value)}; split the list"
            return walk.fault(path, "definition.size", message)
        out = []
        for index, inner in enumerate(value):
            if inner is not NOT_PLAIN:
                inner = member(walk, item(path, index), inner)  # noqa: PLW2901
            out.append(inner)
        return out

    return check


def text(walk: Walk, path: str, value: Any) -> Any:
    """Check a text of any content."""
    return value if type(value) is str else wrong_type(walk, path, "a text", value)


def words(most: int = NAME_CHARS) -> Check:
    """Make the check for a text that is not blank and has at most so many characters."""

    def check(walk: Walk, path: str, value: Any) -> Any:
        if type(value) is not str:
            return wrong_type(walk, path, "a text", value)
        if not value or value.isspace():
            message = f"expected {field_of(path)} to have a text, found {quoted(value)}; fill it in"
            return walk.fault(path, "definition.blank", message)
        if len(value) > most:
            message = f"expected at most {most} characters, found {len(value)}; shorten it"
            return walk.fault(path, "definition.range", message)
        return value

    return check


def flag(walk: Walk, path: str, value: Any) -> Any:
    """Check true or false."""
    return value if type(value) is bool else wrong_type(walk, path, "true or false", value)


def whole(least: int, most: int) -> Check:
    """Make the check for a whole number within bounds."""
    low = "> 0" if least == 1 else f">= {least}"

    def check(walk: Walk, path: str, value: Any) -> Any:
        if type(value) is not int:
            return wrong_type(walk, path, "a whole number", value)
        if not least <= value <= most:
            message = f"{field_of(path)} must be {low} and <= {most}, found {value}; change it"
            return walk.fault(path, "definition.range", message)
        return value

    return check


def factor(walk: Walk, path: str, value: Any) -> Any:
    """Check a number above zero; its canonical form is a float."""
    if type(value) is not int and type(value) is not float:
        return wrong_type(walk, path, "a number", value)
    if value <= 0:
        message = f"{field_of(path)} must be > 0, found {value}; change it"
        return walk.fault(path, "definition.range", message)
    return float(value)


def choice(*options: str) -> Check:
    """Make the check for one of a few words."""
    expected = " or ".join(f'"{option}"' for option in options)

    def check(walk: Walk, path: str, value: Any) -> Any:
        if type(value) is not str:
            return wrong_type(walk, path, expected, value)
        if value not in options:
            near = did_you_mean(value, options)
            message = f"expected {expected}, found {quoted(value)}{near}"
            return walk.fault(path, "definition.choice", message)
        return value

    return check


def data(walk: Walk, path: str, value: Any) -> Any:
    """Check user data: any JSON value, not nested deeper than a payload may be."""
    level = [value]
    for _ in range(PAYLOAD_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return value
    if all(type(node) is not dict and type(node) is not list for node in level):
        return value
    message = f"expected at most {PAYLOAD_DEPTH} lists and objects within one another; flatten it"
    return walk.fault(path, "definition.depth", message)


def _children(node: Any) -> Any:
    if type(node) is dict:
        return node.values()
    return node if type(node) is list else ()


def unique(walk: Walk, names: list[tuple[str, Any]], what: str) -> None:
    """Note each (path, name) whose name was there before."""
    first: dict[Any, str] = {}
    for place, name in names:
        if name in first:
            message = f"expected each {what} once, found {quoted(name)} also at {first[name]}"
            walk.fault(place, "definition.duplicate_name", f"{message}; rename one")
        first.setdefault(name, place)
