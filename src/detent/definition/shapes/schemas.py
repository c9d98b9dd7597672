"""JSON Schemas inside a definition: they must compile, without any look outside."""

from __future__ import annotations

from typing import Any, NoReturn

import jsonschema_rs

from detent.definition.places import found
from detent.definition.walk import NOTHING, Walk

_SHOWN_CHARS = 300


def schema(walk: Walk, path: str, value: Any) -> Any:
    """Check a JSON Schema object."""
    if type(value) is not dict:
        message = f"expected a JSON Schema as an object, found {found(value)}; write an object"
        return walk.fault(path, "definition.schema", message)
    if not walk.clean:
        return NOTHING
    try:
        jsonschema_rs.validator_for(value, retriever=_stay_inside)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0][:_SHOWN_CHARS]
        message = f"expected a JSON Schema that compiles, found: {reason}; correct the schema"
        return walk.fault(path, "definition.schema", message)
    return value


def _stay_inside(uri: str) -> NoReturn:
    message = f"{uri} is outside of the schema, put its content under $defs"
    raise ValueError(message)
