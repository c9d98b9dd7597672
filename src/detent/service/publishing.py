"""Sequences on their way: deployed, promoted, taken back, and where an instance is moved to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.errors import RequestError
from detent.ports.definitions import DefinitionQuery, DefinitionRow
from detent.service.arguments import shown, storable
from detent.service.catalogue import check_definition, definition_row, settled
from detent.service.reading import find_instance
from detent.service.sequences import PAGE_MOST, check_idle, find_sequence
from detent.service.starting import check_free, check_labels

if TYPE_CHECKING:
    from detent.model.definition import Definition
    from detent.ports.store import InstanceRow, Store

_ON_THE_WAY = ("draft", "staging")


def deploy_definition(
    store: Store, definition: Definition, place: tuple[str, str], now_ms: int
) -> DefinitionRow:
    """Store a version at (tenant, namespace); the same content again changes nothing."""
    tenant, namespace = place
    check_labels(tenant, namespace)
    check_definition(definition)
    check_free(definition.name, namespace)
    kept = settled(store, place, definition)
    store.put_definition(definition_row(kept, place, now_ms))
    row = store.find_definition(tenant, namespace, kept.name, kept.version)
    if row is None:
        raise _unknown(kept.name)  # removed at the same moment
    return row


def promote_sequence(store: Store, place: tuple[str, str], name: str) -> DefinitionRow:
    """Publish the highest version of a name that is a draft or staged."""
    waiting = [row for row in _versions(store, place, name) if row.status in _ON_THE_WAY]
    if not waiting:
        raise RequestError(
            "request.invalid",
            f"no version of {name!r} is a draft or staged; store a new one with status 'draft'",
        )
    row = waiting[0]
    store.set_definition_status(row.hash, row.tenant, row.namespace, "production")
    return row


def unpublish_sequence(
    store: Store, place: tuple[str, str], name: str, *, delete: bool
) -> list[DefinitionRow]:
    """Take every version of a name back; with `delete` remove them, unless instances live."""
    rows = _versions(store, place, name)
    for row in rows if delete else ():
        check_idle(store, row)
    for row in rows:
        store.set_definition_status(row.hash, row.tenant, row.namespace, "unpublished")
        if delete:
            store.delete_definition(row.id)
    return rows


def migration_target(
    store: Store, instance: str, target: str, tenant: str | None
) -> tuple[InstanceRow, DefinitionRow]:
    """An instance and the sequence it is to be moved to, which must be of the same tenant."""
    row = find_instance(store, instance, tenant)
    found = find_sequence(store, target, None)
    if found.tenant != row.tenant:
        raise RequestError("request.forbidden", f"sequence {target} is another tenant's")
    return row, found


def stored_for(store: Store, tenant: str, digest: Any) -> DefinitionRow:
    """A definition by its hash, if the tenant has it: another's is as unknown as none."""
    query = DefinitionQuery(tenant=tenant, hash=digest, limit=1)
    found = store.find_definitions(query) if storable(digest) and digest else []
    if not found:
        raise RequestError("definition.unknown", f"there is no definition {shown(digest)}")
    return found[0]


def _versions(store: Store, place: tuple[str, str], name: str) -> list[DefinitionRow]:
    """Every version of a name, the highest first."""
    tenant, namespace = place
    query = DefinitionQuery(tenant=tenant, namespace=namespace, name=name, limit=PAGE_MOST)
    rows = store.find_definitions(query)
    if not rows:
        raise _unknown(name)
    return rows


def _unknown(name: str) -> RequestError:
    return RequestError("definition.unknown", f"there is no sequence {name!r}")
