"""Raw input to plain JSON values: only dict, list, str, int, float, bool and None remain.

Works with its own stack, so that neither depth nor a cycle of Python objects can exhaust the
interpreter's. Nesting, number of values and amount of text are bounded while walking; a list that
shares its members a million times is found by counting, not by running out of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from detent.definition.faults import Faults, refuse
from detent.definition.places import below, found, item
from detent.model.limits import (
    DEFINITION_BYTES,
    DEFINITION_NESTING,
    DEFINITION_NODES,
    INTEGER_BITS,
)

_HIGHEST: Final = 2 ** (INTEGER_BITS - 1) - 1
_LOWEST: Final = -(2 ** (INTEGER_BITS - 1))
_SHOWN_CHARS: Final = 80

Place = tuple[Any, Any]  # (place of the container, key in it); the root is (None, "")


class RepeatedKeys(dict[str, Any]):
    """An object whose text named keys twice; the last value counts, the fault comes later."""

    repeated: tuple[str, ...] = ()


class NotPlain:
    """Stands for a value that had a fault, so that no second fault is reported for it."""


NOT_PLAIN: Final = NotPlain()


def plain(raw: object, faults: Faults) -> Any:
    """Copy raw input as plain JSON values, noting each value that has no JSON form."""
    top: list[Any] = [None]
    stack: list[tuple[Any, Any, Place, int]] = [([raw], top, (None, ""), 0)]
    nodes = chars = 0
    while stack:
        source, target, place, depth = stack.pop()
        nodes += len(source)
        _bound(nodes, chars)
        pairs = source.items() if isinstance(source, Mapping) else enumerate(source)
        for key, value in pairs:
            kind = type(value)
            if kind is str and value.isascii():
                chars += len(value)
                target[key] = value
            elif kind is bool or value is None:
                target[key] = value
            elif kind is int or kind is float:
                target[key] = _leaf(value, (place, key), faults)
            elif kind is dict or isinstance(value, (list, tuple, Mapping)):
                inner: Any = {} if isinstance(value, Mapping) else [None] * len(value)
                where = (place, key)
                target[key] = inner
                if depth >= DEFINITION_NESTING:
                    raise _too_deep(where)
                stack.append((_with_text_keys(value, where, faults), inner, where, depth + 1))
            else:
                chars += len(value) if isinstance(value, str) else 0
                target[key] = _leaf(value, (place, key), faults)
    _bound(nodes, chars)
    return top[0]


def _with_text_keys(value: Any, place: Place, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        return value
    if type(value) is RepeatedKeys:
        for key in value.repeated:
            message = f"expected each key once, found {key!r} again; keep one of them"
            faults.add(_render((place, key)), "definition.duplicate_key", message)
    if all(type(key) is str and key.isascii() for key in value):
        return value
    kept = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            message = f"expected keys of text, found {found(key)}; put the key in quotes"
            faults.add(_render(place), "definition.key", message)
        elif not _whole_text(key):
            faults.add(_render(place), "definition.text", _HALF)
        else:
            kept[str.__str__(key)] = inner
    return kept


def _leaf(value: Any, place: Place, faults: Faults) -> Any:
    if isinstance(value, str):
        if _whole_text(value):
            return str.__str__(value)
        faults.add(_render(place), "definition.text", _HALF)
    elif isinstance(value, int):
        if _LOWEST <= value <= _HIGHEST:
            return int(value)
        message = f"expected a whole number of at most {INTEGER_BITS} bits; write it as text"
        faults.add(_render(place), "definition.number", message)
    elif isinstance(value, float):
        if math.isfinite(value):
            return float(value) or 0.0  # minus zero means zero
        message = f"expected a finite number, found {value!r}; JSON has no form for it"
        faults.add(_render(place), "definition.number", message)
    else:
        message = (
            f"expected text, a number, true, false, null, a list or an object, found "
            f"{found(value)}; only data can be stored, a handler is given by its name"
        )
        faults.add(_render(place), "definition.value", message)
    return NOT_PLAIN


_HALF = "expected whole characters, found half of a surrogate pair; write the character itself"


def _whole_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bound(nodes: int, chars: int) -> None:
    if nodes > DEFINITION_NODES:
        message = f"expected at most {DEFINITION_NODES} values in one definition; split it"
        raise refuse("$", "definition.size", message)
    if chars > DEFINITION_BYTES:
        message = f"expected at most {DEFINITION_BYTES} bytes in one definition; split it"
        raise refuse("$", "definition.size", message)


def _too_deep(place: Place) -> Exception:
    message = f"expected at most {DEFINITION_NESTING} lists and objects within one another"
    path = _render(place)
    short = path if len(path) <= _SHOWN_CHARS else path[:_SHOWN_CHARS] + "…"
    return refuse(short, "definition.depth", f"{message}; make it flatter")


def _render(place: Place) -> str:
    keys = []
    while place[0] is not None:
        keys.append(place[1])
        place = place[0]
    path = ""
    for key in reversed(keys[:-1]):  # the last one is the root's own slot
        path = below(path, key) if isinstance(key, str) else item(path, key)
    return path
