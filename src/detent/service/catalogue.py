"""The catalogue: definitions by name and version, for one tenant and namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.service.arguments import invalid, shown, storable

if TYPE_CHECKING:
    from detent.ports.store import DefinitionRow, Store

_HIGHEST_VERSION = 2**31 - 1


def find_definition(
    store: Store, place: tuple[str, str], name: Any, version: Any = None
) -> DefinitionRow:
    """That version at (tenant, namespace), or the highest one that is not deprecated."""
    row = None
    if storable(name) and _possible(version):
        row = store.find_definition(*place, name, version)
    if row is None:
        which = f"version {shown(version)} of " if version is not None else ""
        raise RequestError(
            "definition.unknown", f"there is no {which}definition {shown(name)}; deploy it first"
        )
    return row


def check_definition(definition: object) -> None:
    """Refuse what is no definition; one is made by `sequence`, `parse` or `normalize`."""
    if not isinstance(definition, Definition):
        raise invalid("a definition", "a Definition, or the name of a stored one", definition)


def _possible(version: object) -> bool:
    if version is None:
        return True
    return type(version) is int and 0 <= version <= _HIGHEST_VERSION
