"""The catalogue: definitions by name and version, for one tenant and namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detent.definition import load
from detent.model.definition import Definition
from detent.model.errors import RequestError
from detent.ports.definitions import DefinitionRow
from detent.service.arguments import invalid, shown, storable

if TYPE_CHECKING:
    from detent.ports.store import Store

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


def definition_row(definition: Definition, place: tuple[str, str], now_ms: int) -> DefinitionRow:
    """The row that stores a definition for (tenant, namespace)."""
    return DefinitionRow(
        definition.hash,
        *place,
        definition.name,
        definition.version,
        definition.canonical,
        deprecated=False,
        created_ms=now_ms,
    )


def settled(store: Store, place: tuple[str, str], definition: Definition) -> Definition:
    """The definition to store and run: the stored one if only pinned holidays differ from it.

    Country calendars are resolved where a definition is made, so the same source gives other
    dates on a machine whose calendars are newer; the version keeps those it was stored with.
    """
    if not definition.body.calendars:
        return definition
    row = store.find_definition(*place, definition.name, definition.version)
    if row is None or row.hash == definition.hash:
        return definition
    if _but_calendars(row.body) != _but_calendars(definition.canonical):
        return definition
    return load(row.body)


def check_definition(definition: object) -> None:
    """Refuse what is no definition; one is made by `sequence`, `parse` or `normalize`."""
    if not isinstance(definition, Definition):
        raise invalid("a definition", "a Definition, or the name of a stored one", definition)


def _but_calendars(canonical: bytes) -> bytes:
    """The rest of a definition, as bytes: in Python 1, 1.0 and True would be equal."""
    body = msgspec.json.decode(canonical)
    body.pop("calendars", None)
    return msgspec.json.encode(body)


def _possible(version: object) -> bool:
    if version is None:
        return True
    return type(version) is int and 0 <= version <= _HIGHEST_VERSION
