"""Definitions over HTTP: stored, found, deprecated; and the ids that the server knows them by."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Struct

from detent.client.talking import Talk
from detent.client.verb import D, Surface, verb
from detent.definition import normalize, to_wire
from detent.model import limits
from detent.model.definition import Definition
from detent.service.arguments import reference
from detent.service.catalogue import check_definition
from detent.service.starting import check_free, check_labels


class Deployed(Struct, frozen=True, kw_only=True):
    """A stored version."""

    id: str
    hash: str


class Stored(Struct, frozen=True):
    """A page of stored versions, as the API shows them."""

    items: list[dict[str, Any]]


class Known:
    """The ids of versions used lately; a version never changes under its id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def get(self, *key: str) -> str | None:
        """The id, if it is known."""
        return self._kept.get(key)

    def keep(self, id: str, *key: str) -> None:
        """Remember an id; the oldest is forgotten where there are too many."""
        self._kept[key] = id
        if len(self._kept) > limits.CLIENT_SEQUENCES:
            self._kept.popitem(last=False)

    def forget(self, id: str) -> None:
        """It is not there any more."""
        for key in [key for key, kept in self._kept.items() if kept == id]:
            del self._kept[key]


class Lookup(Surface[D]):
    """Finds the ids of definitions, and stores those that are new."""

    def __init__(self, driver: D) -> None:
        super().__init__(driver)
        self._known = Known()

    def _sequence(
        self, definition: Definition | str, tenant: str, namespace: str
    ) -> Talk[tuple[str, bool]]:
        """The id of what is to be started, and whether it was known without asking."""
        check_labels(tenant, namespace)
        if isinstance(definition, str):
            name, version = reference(definition)
            key: tuple[str, ...] = (tenant, namespace, name, str(version))
            known = None if version is None else self._known.get(*key)
            if known is not None:
                return known, True
            id: str = (yield from self._find(name, version, tenant, namespace))["id"]
        else:
            check_definition(definition)
            key = (tenant, namespace, definition.hash)
            known = self._known.get(*key)
            if known is not None:
                return known, True
            id = (yield from self._deploy(definition, tenant, namespace)).id
        self._known.keep(id, *key)
        return id, False

    def _deploy(self, definition: Definition, tenant: str, namespace: str) -> Talk[Deployed]:
        check_labels(tenant, namespace)
        check_definition(definition)
        check_free(definition.name, namespace)
        body = {**to_wire(definition), "tenant_id": tenant, "namespace": namespace}
        return (yield from self._send("PUT", "/sequences", body, Deployed, tenant))

    def _find(
        self, name: str, version: int | None, tenant: str, namespace: str
    ) -> Talk[dict[str, Any]]:
        check_labels(tenant, namespace)
        named: dict[str, Any] = {
            "tenant_id": tenant,
            "namespace": namespace,
            "name": name,
            "version": version,
        }
        return (yield from self._get("/sequences/by-name", dict[str, Any], tenant, **named))


class Definitions(Lookup[D]):
    """The verbs of definitions."""

    @verb
    def deploy(
        self, definition: Definition, *, tenant: str | None = None, namespace: str = "default"
    ) -> Talk[str]:
        """Store a definition version and return its hash; running instances keep theirs."""
        return (yield from self._deploy(definition, self._whose(tenant), namespace)).hash

    @verb
    def definition(
        self,
        name: str,
        version: int | None = None,
        *,
        tenant: str | None = None,
        namespace: str = "default",
    ) -> Talk[Definition]:
        """A stored definition: that version, or the highest one that is not deprecated."""
        found = yield from self._find(name, version, self._whose(tenant), namespace)
        return normalize(found)

    @verb
    def definitions(
        self, *, tenant: str | None = None, namespace: str | None = None, limit: int = 200
    ) -> Talk[list[dict[str, Any]]]:
        """Stored definitions by tenant, namespace, name and falling version, with their status."""
        found = yield from self._get("/sequences", Stored, tenant, namespace=namespace, limit=limit)
        return found.items

    @verb
    def deprecate(
        self, name: str, version: int, *, tenant: str | None = None, namespace: str = "default"
    ) -> Talk[None]:
        """Leave a version out of look-ups by name; instances on it go on."""
        whose = self._whose(tenant)
        found = yield from self._find(name, version, whose, namespace)
        yield from self._tell("POST", f"/sequences/{found['id']}/deprecate", tenant=whose)
