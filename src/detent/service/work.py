"""Work for external workers: claimed by polling, kept by heartbeats, ended by a report.

A claim is named by (task, worker, epoch); whoever comes with another one is told `work.lost` and
changes nothing. A report is the end of the claim and an arrival for the instance, in one
transaction. A claim whose worker falls silent goes back to the others under the same id and a
higher epoch; one that outlives the step's timeout fails. Both happen in `reap`, which every poll
calls and whoever serves workers calls when `next_ms` has come.

Tenants are kept apart here: with a tenant named, a task of another one does not exist. None is the
operator, who sees all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from detent.kernel.asking import gate_id
from detent.kernel.gate.asks import Begun, encode
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import partition_of
from detent.model.inputs import EffectApplied, EffectFailed, EffectStranded, encode_input
from detent.model.payload import clean_text, encode_payload
from detent.ports.store import NewArrival
from detent.ports.work import Beat, Claim, Report
from detent.service.arguments import check_flag, check_text, invalid, listed
from detent.service.holds import Asker, barred
from detent.service.reading import check_tenant
from detent.service.work_views import Task, find_task, task_of

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.ports.work import WorkRow

Topic = tuple[str, str, str]  # handler, queue, tenant


class PollRequest(Struct, frozen=True, kw_only=True):
    """What a worker asks for; without a queue it takes the tasks of any, or of none."""

    handler: str
    worker: str
    limit: int = 1
    queue: str | None = None
    version: str | None = None
    tenant: str | None = None


class Polled(Struct, frozen=True, kw_only=True):
    """The tasks claimed, oldest first; without any, when there may be one though nobody adds it.

    `reclaimed` are the topics of tasks that this poll took from silent workers and left for others.
    A claim lives for `lease_ms` without a heartbeat.
    """

    tasks: tuple[Task, ...] = ()
    lease_ms: int = limits.WORK_STALE_MS
    next_ms: int | None = None
    reclaimed: tuple[Topic, ...] = ()
    held: bool = False  # an operator gives this worker nothing
    left: bool = False  # something was left for the writer to look at
    barred: tuple[str, ...] = ()  # tenants whose tasks it is not given


class Holder(Struct, frozen=True, kw_only=True):
    """A claim as its worker names it."""

    task: str
    worker: str
    epoch: int
    tenant: str | None = None


class Reaped(Struct, frozen=True, kw_only=True):
    """What `reap` did, and when it has something to do again."""

    reclaimed: tuple[Topic, ...] = ()
    failed: int = 0
    next_ms: int | None = None
    left: bool = False  # something was left for the writer to look at


def poll(
    store: Store, request: PollRequest, now_ms: int, stale_ms: int = limits.WORK_STALE_MS
) -> Polled:
    """Claim up to `limit` tasks, the oldest first; no two workers ever get the same."""
    check_poll(request)
    tenant, reaped = request.tenant, reap(store, now_ms)
    held = barred(store, tenant, Asker(request.worker, request.handler, request.version))
    if held.everybody:
        return Polled(lease_ms=stale_ms, reclaimed=reaped.reclaimed, held=True)
    claim = Claim(
        handler=request.handler,
        worker=request.worker,
        now_ms=now_ms,
        stale_ms=stale_ms,
        limit=min(request.limit, limits.WORK_POLLED),
        queue=request.queue,
        tenant=tenant,
        version=request.version,
        barred=held.tenants,
    )
    claimed = store.work.claim(claim)
    tell_gates(store, claimed.rows, now_ms)
    return Polled(
        tasks=tuple(map(task_of, claimed.rows)),
        lease_ms=stale_ms,
        next_ms=claimed.next_ms,
        reclaimed=reaped.reclaimed,
        left=reaped.left or any(row.ticket for row in claimed.rows),
        barred=held.tenants,
    )


def check_poll(request: PollRequest) -> None:
    """Refuse a poll that names no handler, no worker, or a limit that is none."""
    check_tenant(request.tenant)
    check_text("handler_name", request.handler, limits.NAME_CHARS)
    check_text("worker_id", request.worker, limits.NAME_CHARS)
    for name, value in (("queue_name", request.queue), ("version", request.version)):
        if value is not None:
            check_text(name, value, limits.NAME_CHARS)
    if type(request.limit) is not int or request.limit < 1:
        raise invalid("limit", "a whole number of at least 1", request.limit)


def heartbeat(
    store: Store,
    holder: Holder,
    now_ms: int,
    checkpoint: Any = None,
    seq: int | None = None,
    stale_ms: int = limits.WORK_STALE_MS,
) -> int:
    """Keep a claim, with a checkpoint that the next worker is given; the checkpoint's number."""
    check_holder(holder)
    body = checkpoint_body(checkpoint, seq)
    row = find_task(store, holder.task, holder.tenant)
    beat = Beat(row.id, holder.worker, holder.epoch, now_ms, stale_ms, body, seq or 0)
    answer, stored = store.work.beat(beat)
    if answer == "lost":
        raise _lost(holder)
    if answer == "seq":
        raise RequestError(
            "work.checkpoint",
            f"checkpoint_seq must be {stored}, the number stored for task {holder.task}; got {seq}",
            seq=stored,
        )
    return stored


def checkpoint_body(checkpoint: Any, seq: int | None) -> bytes | None:
    """A checkpoint as it is kept; it must name the number of the one that it replaces."""
    if checkpoint is None:
        return None
    if type(seq) is not int or seq < 0:
        raise invalid("checkpoint_seq", "the number of the checkpoint that is replaced", seq)
    return encode_payload(checkpoint, where="checkpoint", limit=limits.CHECKPOINT_BYTES)


def complete(
    store: Store, holder: Holder, output: Any, now_ms: int, logs: Sequence[Any] = ()
) -> None:
    """The task is done: its output becomes the step's."""
    check_holder(holder)
    body = encode_payload(output, where="output")
    written = written_logs(logs)
    row = find_task(store, holder.task, holder.tenant)
    told = EffectApplied(key=row.effect, dispatch=holder.epoch, result=Raw(body))
    report = Report(
        id=row.id,
        worker=holder.worker,
        epoch=holder.epoch,
        now_ms=now_ms,
        state="completed",
        arrival=_arrival(store, row, holder.epoch, encode_input(told)),
        event="completed",
        output=body,
        logs=written,
    )
    _settle(store, holder, report)


def fail(
    store: Store,
    holder: Holder,
    message: str,
    now_ms: int,
    retryable: bool = False,  # noqa: FBT001, FBT002 - a field of the contract
    logs: Sequence[Any] = (),
) -> None:
    """The task failed: for good, or to be tried again if the step has attempts left."""
    check_holder(holder)
    check_failure(message, retryable=retryable)
    written = written_logs(logs)
    row = find_task(store, holder.task, holder.tenant)
    told = EffectFailed(
        key=row.effect, dispatch=holder.epoch, message=clean_text(message), retryable=retryable
    )
    report = _failure(store, row, told, now_ms)._replace(
        worker=holder.worker, epoch=holder.epoch, logs=written
    )
    _settle(store, holder, report)


def check_failure(message: object, *, retryable: object) -> None:
    """Refuse a report of a failure without words, or without a yes or no."""
    check_flag("retryable", retryable)
    if type(message) is not str:
        raise invalid("message", "text", message)


def reap(store: Store, now_ms: int) -> Reaped:
    """Give silent workers' tasks to others, and fail those whose time is over."""
    work = store.work
    overdue = work.overdue(now_ms, limits.WORK_REAPED)
    silent: list[WorkRow] = []
    failed = 0
    for row in overdue:
        told = _ended(row, now_ms)
        if told is None:
            silent.append(row)
            continue
        event = "timed_out" if told.kind == "timeout" else "failed"
        report = _failure(store, row, told, now_ms)._replace(event=event, overdue=True)
        failed += work.settle(report) == "settled"
    back = work.reclaim(silent, now_ms, held_back(store, silent)) if silent else []
    return Reaped(
        reclaimed=tuple((row.handler, row.queue, row.tenant) for row in back if not row.ticket),
        failed=failed,
        next_ms=work.next_lease(),
        left=bool(failed) or any(row.ticket for row in back),
    )


def tell_gates(store: Store, rows: Sequence[WorkRow], now_ms: int) -> None:
    """A claim is the beginning of a call: where one was limited, that counts from now on.

    If this is lost, what was granted counts until the report instead.
    """
    limited = [row for row in rows if row.ticket]
    if not limited:
        return
    meta = store.meta()
    letters = [
        NewArrival(
            f"begun:{row.id}:{row.claim_epoch}",
            partition_of(gate_id(row.tenant), meta.partitions),
            gate_id(row.tenant),
            encode(Begun(tenant=row.tenant, ticket=row.ticket)),
        )
        for row in limited
    ]
    store.enqueue(letters, max(0, (now_ms - meta.epoch_ms) // meta.resolution_ms))


def held_back(store: Store, rows: Sequence[WorkRow]) -> dict[str, NewArrival]:
    """Limited tasks of silent workers go through the gate before another worker gets them."""
    told: dict[str, NewArrival] = {}
    for row in rows:
        if row.ticket:
            body = encode_input(EffectStranded(key=row.effect, called=True))
            told[row.id] = _arrival(store, row, row.claim_epoch, body)
    return told


def _ended(row: WorkRow, now_ms: int) -> EffectFailed | None:
    """Why an overdue claim is no other worker's to take up; None when it is."""
    if row.deadline_ms is not None and row.deadline_ms <= now_ms:
        return EffectFailed(
            key=row.effect,
            dispatch=row.claim_epoch,
            message=f"no report within {row.timeout_ms} ms of the claim by {row.worker}",
            kind="timeout",
        )
    if row.lost >= limits.CRASHES_PER_EFFECT:
        return EffectFailed(
            key=row.effect,
            dispatch=row.claim_epoch,
            message=f"{row.lost + 1} workers took up {row.handler} and fell silent; "
            "it is given to no other",
            retryable=False,
            kind="consistency",
            details={"code": "effect.crash_loop"},
        )
    return None


def _failure(store: Store, row: WorkRow, told: EffectFailed, now_ms: int) -> Report:
    return Report(
        id=row.id,
        worker=row.worker or "",
        epoch=row.claim_epoch,
        now_ms=now_ms,
        state="failed",
        arrival=_arrival(store, row, told.dispatch, encode_input(told)),
        event="failed",
        error=told.message,
        retryable=told.retryable,
    )


def _settle(store: Store, holder: Holder, report: Report) -> None:
    """End the claim; what was cancelled meanwhile takes the report and ignores it."""
    if store.work.settle(report) == "lost":
        raise _lost(holder)


def _arrival(store: Store, row: WorkRow, epoch: int, body: bytes) -> NewArrival:
    p = partition_of(row.instance, store.meta().partitions)
    return NewArrival(f"work:{row.id}:{epoch}", p, row.instance, body)


def check_holder(holder: Holder) -> None:
    """Refuse a claim that names no worker or no epoch."""
    check_tenant(holder.tenant)
    check_text("worker_id", holder.worker, limits.NAME_CHARS)
    if type(holder.epoch) is not int or not 0 <= holder.epoch < 1 << 63:
        raise invalid("claim_epoch", "the whole number that came with the claim", holder.epoch)


def _lost(holder: Holder) -> RequestError:
    return RequestError(
        "work.lost",
        f"task {holder.task} is not claimed by {holder.worker} under epoch {holder.epoch}; "
        "drop it and poll again",
        task=holder.task,
    )


def written_logs(given: Sequence[Any]) -> bytes | None:
    """What a worker wrote down, as it is kept; the first lines of very many."""
    lines = [_line(each) for each in listed("logs", given)[: limits.WORK_LOG_LINES]]
    return msgspec.json.encode(lines) if lines else None


def _line(given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        raise invalid("a line of logs", "an object with ts, level and message", given)
    line = {name: given.get(name) for name in ("ts", "level", "message")}
    return {name: clean_text("" if value is None else str(value)) for name, value in line.items()}
