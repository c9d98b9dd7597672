"""What is allowed in a definition but looks like a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.definition.faults import path_order
from detent.definition.normalize import examine
from detent.definition.places import below, did_you_mean, quoted
from detent.model.limits import DEFINITION_FAULTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from detent.model.definition import Definition


def warnings(definition: Definition, known_handlers: Collection[str]) -> list[str]:
    """List unknown handlers, and expressions and templates that will fail or be false."""
    walk, _ = examine(msgspec.json.decode(definition.canonical), lint=True)
    found = list(walk.warnings)
    for path, name in walk.handlers:
        if name not in known_handlers:
            near = did_you_mean(name, known_handlers) or "; register it or start a worker for it"
            found.append((path, f"no handler {quoted(name)} is registered{near}"))
    return _lines(found)


def unknown_fields(raw: Mapping[str, Any]) -> list[str]:
    """List the fields of raw data that are ignored because no part of the definition takes them."""
    walk, _ = examine(raw)
    found = []
    for path, name, shape in walk.unknown:
        known = [field.name for field in shape.fields if field.name not in ("type", "id")]
        hint = did_you_mean(name, known) or "; remove it"
        message = f"unknown field of a {shape.name}, it is ignored{hint}"
        found.append((below(path, name), message))
    return _lines(found)


def _lines(found: list[tuple[str, str]]) -> list[str]:
    ordered = sorted(found, key=lambda pair: path_order(pair[0]))
    return [f"{path}: {message}" for path, message in ordered[:DEFINITION_FAULTS]]
