"""Work items, workers and their figures, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.kernel.builtin import MOVES
from detent.model import limits
from detent.model.decision import ANYBODY
from detent.model.errors import RequestError
from detent.ports.work import WorkQuery
from detent.service.arguments import invalid, shown, storable
from detent.service.reading import check_tenant, find_instance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detent.ports.store import Store
    from detent.ports.work import WorkEvent, WorkRow

STATES = ("pending", "claimed", "completed", "failed", "cancelled")
_ALIVE_MS = 60_000
_decode = msgspec.json.Decoder().decode


class Task(Struct, frozen=True, kw_only=True):
    """A work item as its worker sees it; instants are Unix milliseconds."""

    id: str
    instance: str
    tenant: str
    block: str
    handler: str
    queue: str | None
    params: Any
    context: Any
    attempt: int  # from 0
    timeout_ms: int | None
    state: str
    worker: str | None
    claim_epoch: int
    checkpoint: Any
    checkpoint_seq: int
    created_ms: int
    available_ms: int
    claimed_ms: int | None
    heartbeat_ms: int | None
    completed_ms: int | None
    output: Any
    error: str | None
    retryable: bool | None


class WorkStats(Struct, frozen=True, kw_only=True):
    """How many items are in which state, in all and by handler, and who holds some."""

    by_state: dict[str, int]
    by_handler: dict[str, dict[str, int]]
    active_workers: tuple[str, ...]


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker: what it polls for, when it was seen last, how many tasks it holds."""

    id: str
    handlers: tuple[str, ...]
    queues: tuple[str, ...]
    version: str | None
    last_seen_ms: int
    alive: bool
    in_flight: int


class LogLine(Struct, frozen=True, kw_only=True):
    """A line that a worker wrote down."""

    block: str
    ts: str
    level: str
    message: str


def find_task(store: Store, task: str, tenant: str | None) -> WorkRow:
    """The row of a task; `work.not_found` when there is none for this tenant."""
    check_tenant(tenant)
    row = store.work.item(task) if storable(task) else None
    if row is None or (tenant is not None and row.tenant != tenant):
        raise unknown_task(task)
    return row


def unknown_task(task: object) -> RequestError:
    """The error for an id that no task has."""
    return RequestError("work.not_found", f"there is no task {shown(task)}")


def show_task(store: Store, task: str, tenant: str | None) -> Task:
    """One task."""
    return task_of(find_task(store, task, tenant))


def list_tasks(store: Store, query: WorkQuery) -> list[Task]:
    """Tasks that pass a filter, the newest first."""
    check_tenant(query.tenant)
    for state in query.states:
        if state not in STATES:
            raise invalid("state", f"one or several of {', '.join(STATES)}", state)
    if query.limit < 1 or query.offset < 0:
        raise invalid("limit and offset", "at least 1 and 0", (query.limit, query.offset))
    bounded = query._replace(limit=min(query.limit, limits.WORK_LISTED))
    return [task_of(row) for row in store.work.items(bounded)]


def work_stats(store: Store, tenant: str | None) -> WorkStats:
    """Figures of all tasks that are kept."""
    check_tenant(tenant)
    by_state: dict[str, int] = {}
    by_handler: dict[str, dict[str, int]] = {}
    for handler, state, count in store.work.counts(tenant):
        by_state[state] = by_state.get(state, 0) + count
        by_handler.setdefault(handler, {})[state] = count
    holders = tuple(store.work.holders(tenant))
    return WorkStats(by_state=by_state, by_handler=by_handler, active_workers=holders)


def task_attempts(store: Store, task: str, tenant: str | None, limit: int = 100) -> list[WorkEvent]:
    """What became of a task: claimed, reclaimed, completed …, the oldest first."""
    row = find_task(store, task, tenant)
    if type(limit) is not int or limit < 1:
        raise invalid("limit", "a whole number of at least 1", limit)
    return store.work.events(row.id, min(limit, limits.WORK_EVENTS))


def list_workers(
    store: Store,
    tenant: str | None,
    now_ms: int,
    alive_within_ms: int = _ALIVE_MS,
    *,
    include_stale: bool = False,
) -> list[WorkerView]:
    """Workers that were seen lately, or with `include_stale` ever, by id."""
    check_tenant(tenant)
    since = now_ms - alive_within_ms
    found = store.work.workers(tenant, 0 if include_stale else since, limits.WORKERS_LISTED)
    holds = store.work.holders(tenant)
    views: list[WorkerView] = []
    for id in dict.fromkeys(row.id for row in found):
        rows = [row for row in found if row.id == id]
        newest = max(rows, key=lambda row: row.seen_ms)
        views.append(
            WorkerView(
                id=id,
                handlers=tuple(dict.fromkeys(row.handler for row in rows)),
                queues=tuple(sorted({row.queue for row in rows} - {""})),
                version=newest.version,
                last_seen_ms=newest.seen_ms,
                alive=newest.seen_ms >= since,
                in_flight=holds.get(id, 0),
            )
        )
    return views


def own_handlers(registered: Iterable[str]) -> list[str]:
    """Handlers that the engine performs itself: its moves, and what is registered with it."""
    return sorted({*registered, *MOVES} - {ANYBODY})


def external_handlers(store: Store, tenant: str | None) -> list[str]:
    """Handlers that tasks were made for or that workers poll for."""
    check_tenant(tenant)
    polled = store.work.workers(tenant, 0, limits.WORKERS_LISTED)
    named = {row.handler for row in polled}
    return sorted(named | {handler for handler, _, _ in store.work.counts(tenant)})


def instance_logs(store: Store, instance: str, tenant: str | None) -> list[LogLine]:
    """What workers wrote down for an instance, the oldest first."""
    row = find_instance(store, instance, tenant)
    return [
        LogLine(block=block, **line)
        for block, body in store.work.logs(row.id, limits.WORK_LISTED)
        for line in _decode(body)
    ]


def task_of(row: WorkRow) -> Task:
    """A row as it is shown."""
    return Task(
        id=row.id,
        instance=row.instance,
        tenant=row.tenant,
        block=row.block,
        handler=row.handler,
        queue=row.queue or None,
        params=_decode(row.params),
        context=_decode(row.context),
        attempt=row.attempt,
        timeout_ms=row.timeout_ms,
        state=row.state,
        worker=row.worker,
        claim_epoch=row.claim_epoch,
        checkpoint=None if row.checkpoint is None else _decode(row.checkpoint),
        checkpoint_seq=row.checkpoint_seq,
        created_ms=row.created_ms,
        available_ms=row.available_ms,
        claimed_ms=row.claimed_ms,
        heartbeat_ms=row.heartbeat_ms,
        completed_ms=row.completed_ms,
        output=None if row.output is None else _decode(row.output),
        error=row.error,
        retryable=row.retryable,
    )
