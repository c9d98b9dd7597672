"""Tasks of external workers on the wire: what they send, and what they and others are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from detent.model.ids import derived_id
from detent.web.api.reply import instant

if TYPE_CHECKING:
    from detent.ports.work import WorkEvent
    from detent.service.work_views import Task, WorkerView


class Poll(Struct):
    """Who asks for tasks of which handler, and how long it will wait for one."""

    handler_name: str
    worker_id: str
    limit: int = 1
    version: str | None = None
    wait_secs: float | None = None


class QueuePoll(Struct):
    """The same, of one queue."""

    queue_name: str
    handler_name: str
    worker_id: str
    limit: int = 1
    version: str | None = None
    wait_secs: float | None = None


class PollQuery(Struct):
    """How long to wait, where the body does not say."""

    wait_secs: float = 0.0


class Completion(Struct):
    """The output of a task, by the holder of its claim."""

    worker_id: str
    claim_epoch: int
    output: Any
    logs: list[Any] | None = None


class FailureReport(Struct):
    """Why a task failed, by the holder of its claim."""

    worker_id: str
    claim_epoch: int
    message: str
    retryable: bool = False
    logs: list[Any] | None = None


class Heartbeat(Struct):
    """A sign of life; a checkpoint names the number of the one that it replaces."""

    worker_id: str
    claim_epoch: int
    checkpoint: Any = None
    checkpoint_seq: int | None = None


class Beaten(Struct):
    """The number of the checkpoint that is stored now."""

    checkpoint_seq: int


class TaskQuery(Struct):
    """Which tasks to list."""

    tenant_id: str | None = None
    state: str = ""
    handler_name: str = ""
    worker_id: str = ""
    queue_name: str = ""
    limit: int = 50
    offset: int = 0


class AttemptQuery(Struct):
    """How many lines of a history."""

    limit: int = 100


class WorkerQuery(Struct):
    """Which workers to list."""

    tenant_id: str | None = None
    alive_within_secs: float = 60.0
    include_stale: bool = False


class StatsQuery(Struct):
    """Whose figures."""

    tenant_id: str | None = None


class TaskView(Struct):
    """A task, as workers know it."""

    id: str
    instance_id: str
    block_id: str
    handler_name: str
    queue_name: str | UnsetType
    params: Any
    context: Any
    attempt: int
    timeout_ms: int | None
    state: str
    worker_id: str | None
    claimed_at: str | None
    heartbeat_at: str | None
    claim_epoch: int
    resume_checkpoint: Any
    checkpoint_seq: int
    completed_at: str | None
    output: Any
    error_message: str | None
    error_retryable: bool | None
    created_at: str | None
    tenant_id: str
    available_at: str | None


class Attempt(Struct):
    """A line of a task's history."""

    id: str
    task_id: str
    claim_epoch: int
    worker_id: str | UnsetType
    event: str
    reason: str | UnsetType
    created_at: str | None


class Worker(Struct):
    """A worker, and what it polls for."""

    worker_id: str
    handlers: list[str]
    queues: list[str]
    version: str | None
    last_seen_at: str | None
    alive: bool
    in_flight: int


class Handlers(Struct):
    """The engine's own, and those that workers have."""

    builtin: list[str]
    external: list[str]


def task_wire(task: Task) -> TaskView:
    """A task, as workers are given it."""
    return TaskView(
        id=task.id,
        instance_id=task.instance,
        block_id=task.block,
        handler_name=task.handler,
        queue_name=UNSET if task.queue is None else task.queue,
        params=task.params,
        context=task.context,
        attempt=task.attempt,
        timeout_ms=task.timeout_ms,
        state=task.state,
        worker_id=task.worker,
        claimed_at=instant(task.claimed_ms),
        heartbeat_at=instant(task.heartbeat_ms),
        claim_epoch=task.claim_epoch,
        resume_checkpoint=UNSET if task.checkpoint is None else task.checkpoint,
        checkpoint_seq=task.checkpoint_seq,
        completed_at=instant(task.completed_ms),
        output=task.output,
        error_message=task.error,
        error_retryable=task.retryable,
        created_at=instant(task.created_ms),
        tenant_id=task.tenant,
        available_at=instant(task.available_ms),
    )


def attempt_wire(event: WorkEvent) -> Attempt:
    """A line of a task's history."""
    return Attempt(
        id=derived_id("", "attempt", f"{event.item}:{event.n}"),
        task_id=event.item,
        claim_epoch=event.claim_epoch,
        worker_id=UNSET if event.worker is None else event.worker,
        event=event.event,
        reason=event.reason or UNSET,
        created_at=instant(event.at_ms),
    )


def worker_wire(worker: WorkerView) -> Worker:
    """A worker, as it is listed."""
    return Worker(
        worker_id=worker.id,
        handlers=list(worker.handlers),
        queues=list(worker.queues),
        version=worker.version,
        last_seen_at=instant(worker.last_seen_ms),
        alive=worker.alive,
        in_flight=worker.in_flight,
    )
