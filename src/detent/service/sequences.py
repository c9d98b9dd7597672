"""Sequences as clients of the API know them: stored definitions with an id, a status, a place."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgspec import Struct

from detent.definition import load, normalize, read, to_wire, warnings
from detent.kernel.builtin import MOVES
from detent.kernel.lifecycle import INSTANCE, TERMINAL
from detent.model import limits
from detent.model.definition import Definition
from detent.model.errors import DefinitionError, Fault, RequestError
from detent.model.ids import SYSTEM
from detent.ports.definitions import DefinitionQuery, DefinitionRow
from detent.ports.listing import ListQuery
from detent.service.arguments import check_text, invalid
from detent.service.catalogue import definition_row
from detent.service.instances import SequenceIds
from detent.service.starting import check_free, check_labels

if TYPE_CHECKING:
    from collections.abc import Collection

    from detent.ports.store import Store

PAGE_MOST = 1_000
STATUS_MOVES: Final = {
    "draft": ("staging", "unpublished"),
    "staging": ("production", "unpublished"),
    "production": ("unpublished",),
    "unpublished": (),
}
_ALIVE = tuple(state for state in INSTANCE if state not in TERMINAL)


class NewSequence(Struct, frozen=True, kw_only=True):
    """A definition with what a client chooses beside it."""

    id: str
    tenant: str
    namespace: str
    created_at: str
    status: str
    deprecated: bool
    definition: Definition


def read_sequence(body: bytes) -> NewSequence:
    """What a client sent, checked; every fault of it at once."""
    raw = read(body, format="json")
    faults = [fault for fault in map(_missing(raw), _REQUIRED) if fault is not None]
    faults += _bad_fields(raw)
    try:
        definition = normalize(raw)
    except DefinitionError as error:
        raise DefinitionError([*faults, *error.faults], error.code) from None
    if faults:
        raise DefinitionError(faults)
    return NewSequence(
        id=str(UUID(raw["id"])),
        tenant=raw["tenant_id"],
        namespace=raw["namespace"],
        created_at=raw["created_at"],
        status=raw.get("status") or "production",
        deprecated=bool(raw.get("deprecated", False)),
        definition=definition,
    )


def create_sequence(store: Store, new: NewSequence, tenant: str, now_ms: int) -> str:
    """Store a sequence under its id; its id."""
    check_labels(tenant, new.namespace)
    check_free(new.definition.name, new.namespace)
    if store.definition_by_id(new.id) is not None:
        raise RequestError("definition.exists", f"sequence {new.id} is there already")
    row = definition_row(new.definition, (tenant, new.namespace), now_ms)._replace(
        id=new.id, status=new.status, created_at=new.created_at, deprecated=new.deprecated
    )
    if not store.put_definition(row):
        raise RequestError(
            "definition.exists",
            f"version {row.version} of {row.name!r} is there already in namespace "
            f"{row.namespace!r}; raise the version",
        )
    return new.id


def sequence_warnings(definition: Definition, handlers: Collection[str]) -> list[str]:
    """What is allowed in a sequence but looks like a mistake."""
    return warnings(definition, sorted({*handlers, *MOVES}))


def find_sequence(store: Store, id: str, tenant: str | None) -> DefinitionRow:
    """The sequence of an id; one of another tenant does not exist."""
    row = store.definition_by_id(id)
    if row is None or row.namespace == SYSTEM or (tenant is not None and row.tenant != tenant):
        raise RequestError("definition.unknown", f"there is no sequence {id}")
    return row


def find_by_name(
    store: Store, place: tuple[str, str], name: str, version: int | None
) -> DefinitionRow:
    """That version, or the highest one that is not deprecated."""
    row = store.find_definition(*place, name, version)
    if row is None or row.namespace == SYSTEM:
        raise RequestError("definition.unknown", f"there is no sequence {name!r}")
    return row


def list_sequences(store: Store, query: DefinitionQuery) -> tuple[list[DefinitionRow], bool]:
    """A page of sequences, and whether there are more; the engine's own are not among them."""
    if not 0 < query.limit <= PAGE_MOST or query.offset < 0:
        raise invalid("limit", f"1 to {PAGE_MOST}, and offset not negative", query.limit)
    asked = query._replace(limit=query.limit + 1, without=SYSTEM)
    rows = store.find_definitions(asked)
    return rows[: query.limit], len(rows) > query.limit


def sequence_wire(row: DefinitionRow) -> dict[str, Any]:
    """A sequence as the API shows it."""
    return {
        "id": row.id,
        "tenant_id": row.tenant,
        "namespace": row.namespace,
        "created_at": row.created_at or _instant(row.created_ms),
        "deprecated": row.deprecated,
        "status": row.status,
        **to_wire(load(row.body)),
    }


def change_status(store: Store, id: str, tenant: str | None, status: str) -> None:
    """Move a sequence along draft, staging, production, unpublished."""
    row = find_sequence(store, id, tenant)
    if status not in STATUS_MOVES[row.status]:
        allowed = " or ".join(STATUS_MOVES[row.status]) or "nothing else"
        raise RequestError(
            "request.invalid",
            f"a sequence that is {row.status} can become {allowed}; got {status!r}",
        )
    store.set_definition_status(row.hash, row.tenant, row.namespace, status)


def deprecate_sequence(store: Store, id: str, tenant: str | None) -> None:
    """Leave a sequence out of look-ups by name; its instances go on."""
    row = find_sequence(store, id, tenant)
    store.deprecate_definition(row.hash, row.tenant, row.namespace)


def delete_sequence(store: Store, id: str, tenant: str | None) -> DefinitionRow:
    """Remove a sequence that no live instance runs; of its ended ones only the journal is left."""
    row = idle_sequence(store, id, tenant)
    store.delete_definition(id)
    return row


def idle_sequence(store: Store, id: str, tenant: str | None) -> DefinitionRow:
    """The sequence of an id, if no live instance runs it."""
    row = find_sequence(store, id, tenant)
    check_idle(store, row)
    return row


def check_idle(store: Store, row: DefinitionRow) -> None:
    """Refuse a sequence that a live instance runs."""
    query = ListQuery(tenant=row.tenant, definitions=(row.hash,), states=_ALIVE, limit=PAGE_MOST)
    ids = SequenceIds(store)
    while found := store.recent_instances(query):
        for alive in found:  # the same content may be stored in several namespaces
            if ids.of(alive.tenant, alive.namespace, alive.definition) == row.id:
                raise RequestError(
                    "definition.in_use",
                    f"instance {alive.id} is {alive.state}; "
                    "end the instances of this sequence first",
                )
        query = query._replace(before=found[-1].n)


_REQUIRED = ("id", "tenant_id", "namespace", "created_at")


def _missing(raw: Any) -> Any:
    def look(name: str) -> Fault | None:
        if raw.get(name) is None:
            return Fault(name, "definition.missing", f"expected {name}, found none; give it")
        return None

    return look


def _bad_fields(raw: Any) -> list[Fault]:
    faults: list[Fault] = []
    for name, check in (("id", UUID), ("created_at", dt.datetime.fromisoformat)):
        value = raw.get(name)
        if isinstance(value, str):
            try:
                check(value)
            except ValueError:
                text = (
                    f"expected {'a UUID' if name == 'id' else 'an instant'}, found {value[:80]!r}"
                )
                faults.append(Fault(name, "definition.type", text))
    if raw.get("tenant_id") == "":
        faults.append(Fault("tenant_id", "definition.type", "expected a name, found none"))
    for name in ("tenant_id", "namespace"):
        value = raw.get(name)
        if isinstance(value, str) and value:
            try:
                check_text(name, value, limits.NAME_CHARS)
            except RequestError as error:
                faults.append(Fault(name, "definition.range", error.message))
    return faults


def _instant(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat().replace("+00:00", "Z")
