"""Checkpoints: data that a user keeps with an instance; the engine neither writes nor reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.model.errors import RequestError
from detent.model.payload import encode_payload
from detent.ports.records import Record, RecordQuery
from detent.service.arguments import invalid, shown
from detent.service.reading import find_instance
from detent.service.records import When, check_room, instant

if TYPE_CHECKING:
    from detent.ports.store import Store

KIND = "checkpoint"


class Checkpoint(Struct, frozen=True, kw_only=True):
    """A checkpoint as callers see it."""

    id: str
    instance_id: str
    checkpoint_data: Any
    created_at: When


_decode = msgspec.json.Decoder().decode


def save_checkpoint(
    store: Store, tenant: str | None, instance: str, data: Any, id: str, now_ms: int
) -> str:
    """Keep data with an instance in any state, under a fresh id, which comes back.

    The same data under the same id is the same checkpoint, told again.
    """
    row = find_instance(store, instance, tenant)
    body = encode_payload(data, where="checkpoint_data", limit=limits.CHECKPOINT_BYTES)
    most = limits.CHECKPOINTS_PER_INSTANCE
    check_room(store, RecordQuery(KIND, owner=row.id, limit=most), "checkpoints of an instance")
    record = Record(KIND, id, row.tenant, body, owner=row.id, created_ms=now_ms, updated_ms=now_ms)
    if not store.insert_record(record):
        present = store.record(KIND, id)
        if present is None or (present.owner, present.body) != (row.id, body):
            raise invalid("id", "one that no checkpoint has", id)
    return id


def list_checkpoints(
    store: Store, tenant: str | None, instance: str, limit: int = limits.CHECKPOINTS_LISTED
) -> list[Checkpoint]:
    """The newest first."""
    row = find_instance(store, instance, tenant)
    query = RecordQuery(KIND, owner=row.id, newest_first=True, limit=limit)
    return [_view(record) for record in store.records(query)]


def latest_checkpoint(store: Store, tenant: str | None, instance: str) -> Checkpoint:
    """The newest; `checkpoint.not_found` when there is none."""
    found = list_checkpoints(store, tenant, instance, 1)
    if not found:
        raise RequestError(
            "checkpoint.not_found", f"instance {shown(instance)} has no checkpoint; save one first"
        )
    return found[0]


def prune_checkpoints(store: Store, tenant: str | None, instance: str, keep: int) -> int:
    """Remove all but the newest `keep`; how many were removed."""
    row = find_instance(store, instance, tenant)
    if type(keep) is not int or keep < 0:
        raise invalid("keep", "a whole number from 0", keep)
    most = limits.CHECKPOINTS_PER_INSTANCE
    return store.prune_records(KIND, row.id, keep=min(keep, most), limit=most)


def _view(record: Record) -> Checkpoint:
    return Checkpoint(
        id=record.id,
        instance_id=record.owner or "",
        checkpoint_data=_decode(record.body),
        created_at=instant(record.created_ms),
    )
