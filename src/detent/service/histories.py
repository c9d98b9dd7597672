"""Histories: what an instance has done, as tree, outputs, timeline, audit and effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.kernel import views
from detent.kernel.debug import context_at
from detent.kernel.places import Places, own_path
from detent.kernel.program import Program
from detent.kernel.recording import program_of
from detent.kernel.tree import Tree, tree
from detent.model.snapshot import Snapshot
from detent.service.reading import (
    StoredBlobs,
    StoredPrograms,
    find_instance,
    journal_of,
    program_for,
    read_snapshot,
    recording_of,
    timing_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from detent.kernel.debug import Context
    from detent.kernel.views import AuditEntry, OutputRow, Timeline
    from detent.ports.store import InstanceRow, Store
    from detent.service.instances import InstanceSummary

_encode = msgspec.json.Encoder().encode
_SETTLED = ("applied", "failed", "skipped", "withdrawn")


class EffectReceipt(Struct, frozen=True, kw_only=True):
    """One effect an instance has planned, and how it stands."""

    key: str
    node: str
    block: str
    handler: str
    kind: str
    attempt: int
    state: str  # planned | needs_reconcile | indeterminate | applied | failed | skipped | withdrawn
    planned: int
    settled: int | None = None


def instance_tree(store: Store, instance: str, tenant: str | None) -> Tree:
    """The execution tree as it stands."""
    row = find_instance(store, instance, tenant)
    program = program_now(store, row)
    snapshot = read_snapshot(store, row) or Snapshot(id=row.id, state=row.state)
    return tree(program, journal_of(store, row), snapshot, StoredBlobs(store, row.id))


def instance_outputs(store: Store, instance: str, tenant: str | None) -> list[OutputRow]:
    """Every output in the order of its creation."""
    row = find_instance(store, instance, tenant)
    return views.outputs(
        journal_of(store, row), program_now(store, row), StoredBlobs(store, row.id)
    )


def instance_timeline(store: Store, instance: str, tenant: str | None) -> Timeline:
    """Changes of state, and outputs."""
    row = find_instance(store, instance, tenant)
    return views.timeline(
        journal_of(store, row), program_now(store, row), StoredBlobs(store, row.id)
    )


def instance_audit(
    store: Store, instance: str, tenant: str | None, *, action: str = "", node: str = ""
) -> list[AuditEntry]:
    """The journal entries, all or those of an action and a node."""
    row = find_instance(store, instance, tenant)
    rows = journal_of(store, row)
    return list(views.audit(rows, StoredBlobs(store, row.id), action=action, node=node))


def newest_entries(store: Store, row: InstanceRow, most: int) -> list[AuditEntry]:
    """The newest journal entries, in order; every row holds at least one."""
    loaded = store.load([row.id]).get(row.id)
    version = 0 if loaded is None else loaded.version
    rows = store.journal(row.n, max(0, version - most), most)
    return list(views.audit(rows, StoredBlobs(store, row.id)))[-most:]


class LogLine(Struct, frozen=True, kw_only=True):
    """What a log step said."""

    block: str
    tick: int
    level: str
    message: Any


def instance_logs(store: Store, instance: str, tenant: str | None) -> list[LogLine]:
    """What log steps said, in order."""
    row = find_instance(store, instance, tenant)
    places = Places(program_now(store, row))
    found = []
    for entry in views.noted(journal_of(store, row), StoredBlobs(store, row.id)):
        place = places.find(entry.node) if entry.action == "step.executed" else None
        if place is None:
            continue
        block = place.node.block
        if block.handler == "log":
            level = block.params.get("level", "info") if isinstance(block.params, dict) else "info"
            said = entry.detail["output"].get("message")
            found.append(LogLine(block=block.id, tick=entry.row.tick, level=level, message=said))
    return found


def instance_context(
    store: Store, instance: str, tenant: str | None, node: str, visit: int = -1
) -> Context:
    """What a node saw when it was entered; the last time by default."""
    row = find_instance(store, instance, tenant)
    return context_at(recording_of(store, row), node, visit)


def export_audit(store: Store, instance: str, tenant: str | None) -> Iterator[bytes]:
    """The audit as JSON lines: the instance first, then one line per entry."""
    return _lines(store, find_instance(store, instance, tenant))


def _lines(store: Store, row: InstanceRow) -> Iterator[bytes]:
    entries = views.audit(journal_of(store, row), StoredBlobs(store, row.id))
    return audit_lines(row, entries, timing_of(store).ms_of)


def audit_lines(
    about: InstanceRow | InstanceSummary,
    entries: Iterable[AuditEntry],
    ms_of: Callable[[int], int],
) -> Iterator[bytes]:
    """Entries as JSON lines, after one about the instance; `ms_of` makes ticks instants."""
    yield _line(
        {
            "instance": about.id,
            "tenant": about.tenant,
            "namespace": about.namespace,
            "definition": about.definition,
            "state": about.state,
        }
    )
    for entry in entries:
        plain = msgspec.to_builtins(entry)
        plain["at_ms"] = ms_of(entry.tick)
        yield _line(plain)


def instance_effects(store: Store, instance: str, tenant: str | None) -> list[EffectReceipt]:
    """Every effect the instance has planned, in order, with its last state."""
    row = find_instance(store, instance, tenant)
    places = Places(program_now(store, row))
    found: dict[str, EffectReceipt] = {}
    for entry in views.noted(journal_of(store, row), StoredBlobs(store, row.id)):
        _follow(found, entry, places)
    snapshot = read_snapshot(store, row)
    for effect in snapshot.effects if snapshot is not None else ():
        if effect.key in found:
            found[effect.key] = msgspec.structs.replace(found[effect.key], state=effect.state)
    return list(found.values())


def _follow(found: dict[str, EffectReceipt], entry: views.Noted, places: Places) -> None:
    detail: dict[str, Any] = entry.detail if isinstance(entry.detail, dict) else {}
    family, _, what = entry.action.partition(".")
    key = detail.get("key", "")
    if entry.action == "effect.planned":
        found[key] = EffectReceipt(
            key=key,
            node=entry.node,
            block=places.block_of(own_path(entry.node)),
            handler=detail["handler"],
            kind=detail.get("kind", "call"),
            attempt=detail["attempt"],
            state="planned",
            planned=entry.row.tick,
        )
    elif family == "effect" and what in _SETTLED and key in found:
        found[key] = msgspec.structs.replace(found[key], state=what, settled=entry.row.tick)


def program_now(store: Store, row: InstanceRow) -> Program:
    """The program an instance runs, with what was injected into it so far."""
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return program_of(StoredPrograms(store), row.definition)
    return program_for(store, snapshot)


def _line(value: Any) -> bytes:
    return bytes(_encode(value)) + b"\n"
