"""A definition as the API shows it: defaults filled in, durations as whole milliseconds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, Struct, structs

from detent.model import definition as model

if TYPE_CHECKING:
    from detent.model.definition import Definition

# Members that are shown even when they are unset; of the others, null and empty ones are left out,
# and so is the mode that the contract does not know.
_ALWAYS: dict[type[Struct], tuple[str, ...]] = {
    model.Step: ("params", "delay", "retry"),
    model.Delay: ("holidays",),
    model.Router: ("routes",),
    model.SubSequence: ("input",),
    model.Saga: ("steps",),
    model.Graph: ("transitions",),
}


def to_wire(definition: Definition) -> dict[str, Any]:
    """Give the normalised definition as plain data; `normalize` of it gives the same hash."""
    shown: dict[str, Any] = _shown(definition.body)
    return shown


def _shown(value: Any) -> Any:
    if isinstance(value, Struct):
        kind = type(value)
        tag = kind.__struct_config__.tag
        out: dict[str, Any] = {} if tag is None else {"type": tag}
        for attribute, name, hidden in _members(kind):
            inner = getattr(value, attribute)
            if hidden is NODEFAULT or inner != hidden:
                out[name] = _shown(inner)
        return out
    if isinstance(value, (list, tuple)):
        return [_shown(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    return value


@cache
def _members(kind: type[Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Give attribute, wire name and the value at which it is not shown, if there is one."""
    always = _ALWAYS.get(kind, ())
    return tuple(
        (
            field.name,
            field.encode_name,
            field.default
            if field.default in (None, (), "lenient") and field.name not in always
            else NODEFAULT,
        )
        for field in structs.fields(kind)
    )
