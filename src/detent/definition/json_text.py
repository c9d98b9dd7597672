"""JSON text to raw data; what JSON lets pass in silence is kept visible for `plain`."""

from __future__ import annotations

import json
from typing import Any

from detent.definition.faults import refuse
from detent.definition.plain import RepeatedKeys
from detent.model.limits import DEFINITION_NESTING

_INT_DIGITS = 24  # more digits than 64 bits hold, few enough to convert in no time


def read_json(text: str) -> Any:
    """Read one JSON document; repeated keys, NaN and huge numbers become faults in `plain`."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        message = (
            f"expected JSON, found at line {error.lineno}, column {error.colno}: {error.msg}; "
            f"correct the text there"
        )
        raise refuse("$", "definition.syntax", message) from None
    except RecursionError:
        message = f"expected at most {DEFINITION_NESTING} lists and objects within one another"
        raise refuse("$", "definition.depth", f"{message}; make it flatter") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else with_repeated(pairs)


def with_repeated(pairs: list[tuple[str, Any]]) -> RepeatedKeys:
    """Make an object of pairs that name keys more than once."""
    members = RepeatedKeys(pairs)
    seen: dict[str, int] = {}
    for key, _ in pairs:
        seen[key] = seen.get(key, 0) + 1
    members.repeated = tuple(key for key, times in seen.items() if times > 1)
    return members


def _whole_number(digits: str) -> int:
    return int(digits[:_INT_DIGITS])


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=_whole_number)
