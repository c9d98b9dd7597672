"""Definitions as they cross the store port: stored versions, by hash, name or id."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class DefinitionRow(NamedTuple):
    """A stored definition version of a tenant and namespace."""

    hash: str
    tenant: str
    namespace: str
    name: str
    version: int
    body: bytes
    deprecated: bool
    created_ms: int
    id: str = ""  # what clients of the API know it by; derived from the rest when not chosen
    status: str = "production"  # draft | staging | production | unpublished
    created_at: str = ""  # the instant its author gave, as written; empty when none was given


class DefinitionQuery(NamedTuple):
    """A filter over definitions; None does not filter."""

    tenant: str | None = None
    namespace: str | None = None
    name: str | None = None
    hash: str | None = None
    offset: int = 0
    limit: int = 200
    without: str | None = None  # a namespace that is left out


class DefinitionStore(Protocol):
    """What a store offers for definitions."""

    def put_definition(self, row: DefinitionRow) -> bool:
        """Insert; False when the same content is there.

        `definition.conflict` when the version has other content, or the id is another's.
        """

    def definition(self, hash: str) -> DefinitionRow | None: ...
    def definition_by_id(self, id: str) -> DefinitionRow | None: ...
    def find_definition(
        self, tenant: str, namespace: str, name: str, version: int | None
    ) -> DefinitionRow | None:
        """The version, or the highest one that is not deprecated."""

    def find_definitions(self, query: DefinitionQuery) -> list[DefinitionRow]:
        """A page by tenant, namespace, name and falling version; deprecated ones too."""

    def definitions(self, tenant: str, namespace: str) -> list[DefinitionRow]: ...
    def deprecate_definition(self, hash: str, tenant: str, namespace: str) -> bool: ...
    def set_definition_status(
        self, hash: str, tenant: str, namespace: str, status: str
    ) -> bool: ...
    def delete_definition(self, id: str) -> bool: ...
