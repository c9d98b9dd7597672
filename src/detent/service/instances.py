"""Instances: the list, and one of them with its context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from detent.definition import load
from detent.kernel.survey import next_due
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.ports.definitions import DefinitionQuery
from detent.service.reading import check_tenant, find_instance, read_snapshot, timing_of

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.model.snapshot import Snapshot
    from detent.ports.store import InstanceRow, Page, Store

LIST_LIMIT = 1_000


class InstanceSummary(Struct, frozen=True, kw_only=True):
    """An instance as lists show it; instants are epoch milliseconds."""

    id: str
    tenant: str
    namespace: str
    definition: str  # hash
    name: str
    version: int
    state: str
    priority: int
    due_ms: int | None  # nothing moves by itself before; in a list it may be earlier than that
    key: str | None
    parent: str | None
    created_ms: int
    updated_ms: int


class Listing(Struct, frozen=True, kw_only=True):
    """A page of instances; `next` is the `after` of the page that follows, None at the end."""

    items: tuple[InstanceSummary, ...]
    next: int | None


class InstanceView(Struct, frozen=True, kw_only=True):
    """One instance with its context; `taken` is False until the engine has taken the start in."""

    summary: InstanceSummary
    taken: bool
    snapshot_version: int = 0
    timezone: str = "UTC"
    metadata: Any = None
    data: Any = None
    config: Any = None
    kv: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    runtime: dict[str, Any] = {}
    error: Any = None
    dry_run: bool = False
    started_ms: int | None = None
    ended_ms: int | None = None
    pause_requested: bool = False
    cancel_requested: bool = False
    paused_reason: str = ""
    session: str | None = None
    budget: dict[str, int] | None = None
    spent: dict[str, int] = {}  # tokens: input, output, total
    budget_breach: Any = None
    open_effects: int = 0
    kept_signals: int = 0


class Names:
    """Name and version of definitions by hash, each looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, tuple[str, int]] = {}

    def of(self, digest: str) -> tuple[str, int]:
        """Name and version; an empty name when the definition is not stored."""
        if digest not in self._kept:
            row = self._store.definition(digest)
            self._kept[digest] = ("", 0) if row is None else (row.name, row.version)
        return self._kept[digest]


class SequenceIds:
    """The API's id of a definition in a place, each looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[str, str, str], str | None] = {}

    def of(self, tenant: str, namespace: str, digest: str) -> str | None:
        """The id; None when the definition is not stored there any more."""
        place = (tenant, namespace, digest)
        if place not in self._kept:
            query = DefinitionQuery(tenant=tenant, namespace=namespace, hash=digest, limit=1)
            found = self._store.find_definitions(query)
            if not found:  # an instance may live in another namespace than what it runs
                found = self._store.find_definitions(query._replace(namespace=None))
            self._kept[place] = found[0].id if found else None
        return self._kept[place]


def list_instances(store: Store, page: Page, tenant: str | None) -> Listing:
    """The next instances that pass the filter, oldest first; the engine's own if asked for."""
    check_tenant(tenant)
    if not 0 < page.limit <= LIST_LIMIT:
        raise RequestError("request.invalid", f"limit must be 1 to {LIST_LIMIT}; got {page.limit}")
    hidden = "" if page.namespace == SYSTEM else SYSTEM
    wanted = page._replace(tenant=tenant or page.tenant, limit=page.limit + 1, without=hidden)
    if tenant is not None and page.tenant not in ("", tenant):
        return Listing(items=(), next=None)
    rows = store.instances(wanted)
    names, timing = Names(store), timing_of(store)
    shown = rows[: page.limit]
    return Listing(
        items=tuple(summary_of(row, names, timing) for row in shown),
        next=shown[-1].n if len(rows) > page.limit else None,
    )


def show_instance(store: Store, instance: str, tenant: str | None) -> InstanceView:
    """One instance with everything its next step would see."""
    row = find_instance(store, instance, tenant)
    timing = timing_of(store)
    summary = summary_of(row, Names(store), timing)
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return InstanceView(summary=summary, taken=False)
    if row.due is not None and not snapshot.more:
        # the listed column may be too early; the snapshot knows
        due = next_due(snapshot, row.due)
        summary = replace(summary, due_ms=None if due is None else timing.ms_of(due))
    return _view(summary, snapshot, timing)


def children_of(store: Store, instance: str, tenant: str | None) -> tuple[InstanceSummary, ...]:
    """The instances that an instance has started."""
    from detent.ports.store import Page

    find_instance(store, instance, tenant)
    rows = store.instances(Page(parent=instance, limit=LIST_LIMIT))
    names, timing = Names(store), timing_of(store)
    return tuple(summary_of(row, names, timing) for row in rows)


def instance_definition(store: Store, instance: str, tenant: str | None) -> Any:
    """The definition an instance is pinned to."""
    row = find_instance(store, instance, tenant)
    stored = store.definition(row.definition)
    if stored is None:
        raise RequestError("definition.unknown", f"definition {row.definition} is not stored")
    return load(stored.body)


def summary_of(row: InstanceRow, names: Names, timing: Timing) -> InstanceSummary:
    """The listed columns, ticks as instants."""
    name, version = names.of(row.definition)
    return InstanceSummary(
        id=row.id,
        tenant=row.tenant,
        namespace=row.namespace,
        definition=row.definition,
        name=name,
        version=version,
        state=row.state,
        priority=row.priority,
        due_ms=None if row.due is None else timing.ms_of(row.due),
        key=row.key,
        parent=row.parent,
        created_ms=timing.ms_of(row.created),
        updated_ms=timing.ms_of(row.updated),
    )


def _view(summary: InstanceSummary, snapshot: Snapshot, timing: Timing) -> InstanceView:
    return InstanceView(
        summary=summary,
        taken=True,
        snapshot_version=snapshot.version,
        timezone=snapshot.timezone,
        metadata=snapshot.metadata,
        data=snapshot.data,
        config=snapshot.config,
        kv=snapshot.kv,
        outputs=snapshot.outputs,
        runtime=snapshot.runtime,
        error=snapshot.error,
        dry_run=snapshot.dry_run,
        started_ms=None if snapshot.started is None else timing.ms_of(snapshot.started),
        ended_ms=None if snapshot.ended is None else timing.ms_of(snapshot.ended),
        pause_requested=snapshot.pause_requested,
        cancel_requested=snapshot.cancel_requested,
        paused_reason=snapshot.paused_reason,
        session=snapshot.session,
        budget=snapshot.budget,
        spent=snapshot.spent,
        budget_breach=snapshot.budget_breach,
        open_effects=len(snapshot.effects),
        kept_signals=len(snapshot.signals),
    )
