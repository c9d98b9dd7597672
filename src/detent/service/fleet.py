"""What an operator says about workers and their queues: rules, pins, push targets, commands.

They are records of four kinds with one way to make, list, change and remove them, and each counts
from the moment it is written. The writer asks for the rules when it writes a task down; a pin and
the commands `drain` and `resume` decide what a worker is given (`holds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.records import Record, RecordQuery
from detent.service.arguments import shown
from detent.service.fleet_kinds import COMMANDS, Where, WorkerCommand
from detent.service.holds import drain, resume
from detent.service.records import change, check_limit, check_room, encode, instant, visible, whose
from detent.service.vault import Place

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.fleet_kinds import Body, Kind
    from detent.service.vault import Safe

DRAIN, RESUME = "drain", "resume"


class Hand(NamedTuple):
    """What a record is written with: the safe, and the instant."""

    safe: Safe
    now_ms: int


def create(
    store: Store, kind: Kind, tenant: str | None, body: Body, id: str, hand: Hand
) -> dict[str, Any]:
    """Make a record under a fresh id; `record.exists` when there is one for the same thing."""
    owner = whose(tenant, body.tenant_id)
    kept = kind.settle(body, Where(_place(kind, owner, id), hand.safe))
    most = limits.FLEET_PER_TENANT
    check_room(store, RecordQuery(kind.name, tenant=owner, limit=most), f"{kind.name}s")
    record = Record(
        kind.name,
        id,
        owner,
        encode(kept),
        key=getattr(kept, kind.key) if kind.key else None,
        owner=kind.owner(owner, kept),
        created_ms=hand.now_ms,
        updated_ms=hand.now_ms,
    )
    if not store.insert_record(record):
        present = store.record(kind.name, id)
        if present is not None and present.tenant == owner:
            return _view(kind, present)  # the same call, told again
        raise RequestError(
            "record.exists",
            f"there is a {kind.name} for this {kind.key or 'id'} already; change or delete it",
        )
    if isinstance(body, WorkerCommand):
        said_by = owner if tenant or body.tenant_id else None
        _obey(store, said_by, body, hand.now_ms)
    return _view(kind, record)


def listing(
    store: Store, kind: Kind, tenant: str | None, limit: int = 100, **wanted: str | None
) -> list[dict[str, Any]]:
    """The records of a kind in the order of their making; `wanted` are fields and their values."""
    most = check_limit(limit)
    fields = {name: value for name, value in wanted.items() if value}
    query = RecordQuery(kind.name, tenant=tenant, limit=limits.LIST_MOST if fields else most)
    found: list[dict[str, Any]] = []
    while len(found) < most and (page := store.records(query)):
        views = [_view(kind, record) for record in page]
        found += [view for view in views if all(view.get(k) == v for k, v in fields.items())]
        query = query._replace(after=page[-1].n)
    return found[:most]


def show(store: Store, kind: Kind, tenant: str | None, id: str) -> dict[str, Any]:
    """One record; `record.not_found` where this tenant has none of that id."""
    return _view(kind, _find(store, kind, tenant, id))


def replace(
    store: Store, kind: Kind, tenant: str | None, id: str, body: Body, hand: Hand
) -> dict[str, Any]:
    """Put another body in place; what makes a record unique stays as it is."""
    record = _find(store, kind, tenant, id)
    whose(record.tenant, body.tenant_id)
    place = _place(kind, record.tenant, id)
    kept = kind.settle(body, Where(place, hand.safe, _read(kind, record)))
    if kind.key and getattr(kept, kind.key) != record.key:
        raise RequestError(
            "request.invalid",
            f"{kind.key} of a {kind.name} stays {shown(record.key)}; make another one instead",
        )
    found_by = kind.owner(record.tenant, kept)
    changed = change(store, record, lambda _body: encode(kept), hand.now_ms, lambda _body: found_by)
    if changed is None:
        raise _unknown(kind, id)
    return _view(kind, changed)


def delete(store: Store, kind: Kind, tenant: str | None, id: str) -> None:
    """Remove a record."""
    record = _find(store, kind, tenant, id)
    store.delete_record(kind.name, record.id)


def acknowledge(store: Store, tenant: str | None, id: str, now_ms: int) -> dict[str, Any]:
    """The worker has heard its command."""
    record = _find(store, COMMANDS, tenant, id)
    heard = msgspec.structs.replace(_read(COMMANDS, record), acknowledged=True)
    changed = change(store, record, lambda _body: encode(heard), now_ms)
    if changed is None:
        raise _unknown(COMMANDS, id)
    return _view(COMMANDS, changed)


def _obey(store: Store, tenant: str | None, body: WorkerCommand, now_ms: int) -> None:
    if body.command == DRAIN:
        drain(store, tenant, body.worker_id, now_ms)
    elif body.command == RESUME:
        resume(store, tenant, body.worker_id)


def _find(store: Store, kind: Kind, tenant: str | None, id: str) -> Record:
    record = visible(store.record(kind.name, id), tenant)
    if record is None:
        raise _unknown(kind, id)
    return record


def _place(kind: Kind, tenant: str, id: str) -> Place:
    return Place(kind.name, tenant, id, "secret")


def _read(kind: Kind, record: Record) -> Any:
    return msgspec.json.decode(record.body, type=kind.kept)


def _view(kind: Kind, record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        **kind.show(_read(kind, record)),
        "tenant_id": record.tenant,
        "created_at": instant(record.created_ms),
        "updated_at": instant(record.updated_ms),
    }


def _unknown(kind: Kind, id: str) -> RequestError:
    return RequestError("record.not_found", f"there is no {kind.name} {shown(id)}")
