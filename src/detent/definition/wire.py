"""A definition as the API shows it: defaults filled in, durations as whole milliseconds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, Struct, structs

from detent.model import definition as model
from detent.model.plan import Until

if TYPE_CHECKING:
    from detent.model.definition import Definition

# Members that are shown even when they are unset; of the others, null and empty ones are left out.
_ALWAYS: dict[type[Struct], tuple[str, ...]] = {
    model.Step: ("params", "delay", "retry"),
    model.Delay: ("holidays",),
    model.SendWindow: ("days",),
    model.Router: ("routes",),
    model.SubSequence: ("input",),
    model.Saga: ("steps",),
    model.Graph: ("transitions",),
}

# Members that the contract does not know are left out at their defaults, whatever these are.
_OURS: dict[type[Struct], tuple[str, ...]] = {
    model.Body: ("mode", "sticky", "face"),
    model.Step: ("sticky",),
    model.Delay: ("gap", "fold"),
    Until: ("business_day", "gap", "fold"),
    model.SendWindow: ("gap", "fold", "send_late_within"),
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
        return _in_one_style(out) if kind is model.SendWindow else out
    if isinstance(value, (list, tuple)):
        return [_shown(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    return value


def _in_one_style(window: dict[str, Any]) -> dict[str, Any]:
    """Leave out the hours that another style of the window replaces."""
    replaced: tuple[str, ...] = ()
    if "hours" in window:
        replaced = ("start_hour", "end_hour", "days")
    elif "start" in window:
        replaced = ("start_hour", "end_hour")
    return {name: value for name, value in window.items() if name not in replaced}


@cache
def _members(kind: type[Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Give attribute, wire name and the value at which it is not shown, if there is one."""
    always, ours = _ALWAYS.get(kind, ()), _OURS.get(kind, ())
    found = []
    for field in structs.fields(kind):
        factory = field.default_factory
        default = field.default if factory is NODEFAULT else factory()
        hidden = default in (None, (), {}) and field.name not in always
        shown = (field.name, field.encode_name)
        found.append((*shown, default if hidden or field.name in ours else NODEFAULT))
    return tuple(found)
