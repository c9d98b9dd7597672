"""An instance as the API shows it (contract §7 and §10.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.kernel.spill import unpack
from detent.model.snapshot import Snapshot, decode_snapshot
from detent.service.instances import SequenceIds
from detent.service.reading import snapshot_or_start, timing_of
from detent.service.sessions import session_of
from detent.service.starting import PRIORITIES
from detent.web.api.reply import instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.kernel.recording import Timing
    from detent.ports.store import InstanceRow, Store

PRIORITY_NAMES = {number: name for name, number in PRIORITIES.items()}


def shown(store: Store, rows: Sequence[InstanceRow]) -> list[dict[str, Any]]:
    """The instances of these rows, in their order."""
    loaded = store.load([row.id for row in rows])
    ids, timing = SequenceIds(store), timing_of(store)
    made = []
    for row in rows:
        found = loaded.get(row.id)
        if found is None or found.body is None:
            snapshot = snapshot_or_start(store, row)
        else:
            snapshot = decode_snapshot(found.body)
            if snapshot.blobs:
                unpack(snapshot, store.blobs(row.id, snapshot.blobs))
        wire = _wire(row, snapshot, ids, timing)
        session = session_of(store, row.id)
        if session is not None:
            wire["session_id"] = session
        made.append(wire)
    return made


def _wire(row: InstanceRow, snapshot: Snapshot, ids: SequenceIds, timing: Timing) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": row.id,
        "sequence_id": ids.of(row.tenant, row.namespace, row.definition),
        "tenant_id": row.tenant,
        "namespace": row.namespace,
        "state": row.state,
        "next_fire_at": _next_fire(row, timing),
        "priority": PRIORITY_NAMES[row.priority],
        "timezone": snapshot.timezone,
        "metadata": snapshot.metadata,
        "context": {
            "data": snapshot.data,
            "config": snapshot.config,
            "audit": [],
            "runtime": _runtime(snapshot, timing),
        },
    }
    concurrency = snapshot.concurrency or {}
    optional = {
        "concurrency_key": concurrency.get("key"),
        "max_concurrency": concurrency.get("max"),
        "idempotency_key": row.key,
        "parent_instance_id": row.parent,
        "paused_reason": snapshot.paused_reason or None,
        "pause_requested": snapshot.pause_requested or None,
        "error": snapshot.error,
    }
    made |= {name: value for name, value in optional.items() if value is not None}
    made["created_at"] = instant(timing.ms_of(row.created))
    made["updated_at"] = instant(timing.ms_of(row.updated))
    return made


def _next_fire(row: InstanceRow, timing: Timing) -> str | None:
    if row.state != "scheduled":
        return None
    return instant(timing.ms_of(row.created if row.due is None else row.due))


def _runtime(snapshot: Snapshot, timing: Timing) -> dict[str, Any]:
    now = snapshot.runtime
    started = None if snapshot.started is None else timing.ms_of(snapshot.started)
    return {
        "current_step": now.get("current_step"),
        "attempt": now.get("attempt", 0),
        "started_at": instant(started),
        "resource_key": now.get("resource_key"),
        "instance_id": snapshot.id,
        "total_steps_executed": snapshot.steps,
        "dry_run": snapshot.dry_run,
        "dry_run_auto_approve": snapshot.auto_approve,
    }
