"""An instance as the API shows it (contract §7 and §10.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.kernel.budget import EXCEEDED
from detent.kernel.spill import unpack
from detent.kernel.survey import next_due
from detent.model.limits import AUDIT_SHOWN
from detent.model.snapshot import Frame, Snapshot, decode_snapshot
from detent.service.explaining import gate_calls
from detent.service.histories import newest_entries
from detent.service.instances import SequenceIds
from detent.service.reading import snapshot_or_start, timing_of
from detent.service.sessions import session_of
from detent.service.starting import PRIORITIES
from detent.web.api.reply import instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.kernel.recording import Timing
    from detent.kernel.views import AuditEntry
    from detent.ports.store import InstanceRow, Store

PRIORITY_NAMES = {number: name for name, number in PRIORITIES.items()}


def shown(store: Store, rows: Sequence[InstanceRow]) -> list[dict[str, Any]]:
    """The instances of these rows, in their order."""
    ids, timing = SequenceIds(store), timing_of(store)
    snapshots = _snapshots(store, rows)
    calls = _calls(store, rows, snapshots)
    made = []
    for row, snapshot in zip(rows, snapshots, strict=True):
        wire = _wire(row, snapshot, ids, timing)
        wire["next_fire_at"] = _next_fire(row, snapshot, timing, calls.get(row.id))
        session = session_of(store, row.id)
        if session is not None:
            wire["session_id"] = session
        made.append(wire)
    return made


def _snapshots(store: Store, rows: Sequence[InstanceRow]) -> list[Snapshot]:
    loaded = store.load([row.id for row in rows])
    made = []
    for row in rows:
        found = loaded.get(row.id)
        if found is None or found.body is None:
            made.append(snapshot_or_start(store, row))
            continue
        snapshot = decode_snapshot(found.body)
        if snapshot.blobs:
            unpack(snapshot, store.blobs(row.id, snapshot.blobs))
        made.append(snapshot)
    return made


def _calls(
    store: Store, rows: Sequence[InstanceRow], snapshots: Sequence[Snapshot]
) -> dict[str, int]:
    """When those that stand in line at their tenant's gate are called, where that is known."""
    waiting: dict[str, set[str]] = {}
    for row, snapshot in zip(rows, snapshots, strict=True):
        if snapshot.tickets and row.state == "scheduled":
            waiting.setdefault(row.tenant, set()).add(row.id)
    found: dict[str, int] = {}
    for tenant, ids in waiting.items():
        found |= gate_calls(store, tenant, frozenset(ids))
    return found


def whole(store: Store, row: InstanceRow) -> dict[str, Any]:
    """One instance, with the newest entries of its journal as `context.audit`."""
    made = shown(store, [row])[0]
    timing = timing_of(store)
    made["context"]["audit"] = [
        {
            "timestamp": instant(timing.ms_of(entry.tick)),
            "event": entry.action,
            "details": {"block_id": entry.node} | _told(entry) if entry.node else _told(entry),
        }
        for entry in newest_entries(store, row, AUDIT_SHOWN)
    ]
    return made


def _told(entry: AuditEntry) -> dict[str, Any]:
    """What an entry tells beside its place, but for what stands among the outputs."""
    detail = entry.detail if isinstance(entry.detail, dict) else {}
    return {name: value for name, value in detail.items() if name not in ("in", "output")}


def _wire(row: InstanceRow, snapshot: Snapshot, ids: SequenceIds, timing: Timing) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": row.id,
        "sequence_id": ids.of(row.tenant, row.namespace, row.definition),
        "tenant_id": row.tenant,
        "namespace": row.namespace,
        "state": row.state,
        "next_fire_at": None,
        "priority": PRIORITY_NAMES[row.priority],
        "timezone": snapshot.timezone,
        "metadata": _metadata(snapshot),
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
        "budget": snapshot.budget,
        "budget_breach": snapshot.budget_breach,
        "paused_reason": snapshot.paused_reason or None,
        "pause_requested": snapshot.pause_requested or None,
        "error": snapshot.error,
    }
    made |= {name: value for name, value in optional.items() if value is not None}
    made["created_at"] = instant(timing.ms_of(row.created))
    made["updated_at"] = instant(timing.ms_of(row.updated))
    return made


def _metadata(snapshot: Snapshot) -> Any:
    """The caller's own, and why a budget holds the instance."""
    if snapshot.paused_reason != EXCEEDED or not isinstance(snapshot.metadata, dict | None):
        return snapshot.metadata
    why = {"paused_reason": EXCEEDED, "budget_breach": snapshot.budget_breach}
    return {**(snapshot.metadata or {}), **why}


def _next_fire(
    row: InstanceRow, snapshot: Snapshot, timing: Timing, called: int | None
) -> str | None:
    """When a scheduled instance goes on; the listed column may be too early, the snapshot knows."""
    if row.state != "scheduled":
        return None
    if (
        snapshot.tickets
    ):  # it stands in line: the gate calls it, or something of its own comes first
        own = None if row.due is None else next_due(snapshot, row.due)
        known = [tick for tick in (own, called) if tick is not None]
        return instant(timing.ms_of(min(known))) if known else None
    due = row.created if row.due is None else row.due
    if row.due is not None and snapshot.version and not snapshot.more:
        due = next_due(snapshot, row.due) or due
    return instant(timing.ms_of(due))


def _runtime(snapshot: Snapshot, timing: Timing) -> dict[str, Any]:
    now = snapshot.runtime
    started = None if snapshot.started is None else timing.ms_of(snapshot.started)
    since = _open_since(snapshot.root, now.get("current_step"))
    return {
        "current_step": now.get("current_step"),
        "attempt": now.get("attempt", 0),
        "started_at": instant(started),
        "current_step_started_at": None if since is None else instant(timing.ms_of(since)),
        "resource_key": now.get("resource_key"),
        "instance_id": snapshot.id,
        "run_id": f"{snapshot.id}:{snapshot.generation}",
        "total_steps_executed": snapshot.steps,
        "dry_run": snapshot.dry_run,
        "dry_run_auto_approve": snapshot.auto_approve,
    }


def _open_since(frame: Frame | None, step: str | None) -> int | None:
    """The tick at which a step was entered that has not ended."""
    if frame is None or frame.b == step:
        return None if frame is None else frame.since
    found = (_open_since(lane.open, step) for lane in frame.lanes if not lane.end)
    return next((since for since in found if since is not None), None)
