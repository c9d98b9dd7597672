"""`client.work`: the door external workers go through, over HTTP."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from msgspec import Raw, Struct

from detent.client.talking import Ask, Talk
from detent.client.verb import D, Surface, one, one_uuid, verb
from detent.model.payload import encode_payload
from detent.ports.work import WorkEvent, WorkQuery
from detent.service import work
from detent.service.records import unix_ms
from detent.service.work import Holder, PollRequest
from detent.service.work_views import Task, WorkerView, WorkStats, unknown_task


class Claimed(Struct, frozen=True, kw_only=True):
    """A task as a poll gives it."""

    id: str
    instance_id: str
    tenant_id: str
    block_id: str
    handler_name: str
    queue_name: str | None = None
    params: Any = None
    context: Any = None
    attempt: int
    timeout_ms: int | None
    state: str
    worker_id: str | None
    claim_epoch: int
    resume_checkpoint: Any = None
    checkpoint_seq: int
    created_at: dt.datetime
    available_at: dt.datetime
    claimed_at: dt.datetime | None
    heartbeat_at: dt.datetime | None
    completed_at: dt.datetime | None
    output: Any
    error_message: str | None
    error_retryable: bool | None


class Patience(TypedDict, total=False):
    """How long a poll may wait at the server, in seconds."""

    wait: float


class Beaten(Struct, frozen=True):
    """The number of the checkpoint that is stored now."""

    checkpoint_seq: int


class Work(Surface[D]):
    """Tasks for external workers: poll, heartbeat, complete, fail, and what there is to see."""

    @verb
    def poll(
        self,
        handler: str,
        worker: str,
        *,
        limit: int = 1,
        queue: str | None = None,
        version: str | None = None,
        tenant: str | None = None,
        **patience: Unpack[Patience],
    ) -> Talk[Sequence[Task]]:
        """Claim up to `limit` tasks of a handler, the oldest first.

        With `wait` the server is silent for so many seconds at most while there is none.
        """
        wait = _seconds(**patience)
        request = PollRequest(
            handler=handler,
            worker=worker,
            limit=limit,
            queue=queue,
            version=version,
            tenant=tenant,
        )
        work.check_poll(request)
        body: dict[str, Any] = {
            "handler_name": handler,
            "worker_id": worker,
            "limit": limit,
            "version": version,
            "wait_secs": wait,
        }
        named = {} if queue is None else {"queue_name": queue}
        asked = Ask(
            method="POST",
            path="/workers/tasks/poll" + ("/queue" if named else ""),
            body={**body, **named},
            gives=list[Claimed],
            tenant=tenant,
            patience_ms=int(wait * 1000),
            keyed=False,  # another one claims other tasks; those of a lost answer go to others
        )
        return [_task(each) for each in (yield from self._ask(asked))]

    @verb
    def heartbeat(
        self,
        task: str,
        worker: str,
        epoch: int,
        *,
        checkpoint: Any = None,
        seq: int | None = None,
        tenant: str | None = None,
    ) -> Talk[int]:
        """Keep a claim; with a checkpoint, `seq` is the number of the one it replaces."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        work.check_holder(held)
        kept = work.checkpoint_body(checkpoint, seq)
        told = {"checkpoint": None if kept is None else Raw(kept), "checkpoint_seq": seq}
        path, body = _report(held, "heartbeat", told)
        return (yield from self._send("POST", path, body, Beaten, tenant)).checkpoint_seq

    @verb
    def complete(
        self,
        task: str,
        worker: str,
        epoch: int,
        output: Any = None,
        *,
        logs: Sequence[Any] = (),
        tenant: str | None = None,
    ) -> Talk[None]:
        """Report a task as done."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        work.check_holder(held)
        body = Raw(encode_payload(output, where="output"))
        lines = work.written_logs(logs)
        told = {"output": body, "logs": None if lines is None else Raw(lines)}
        yield from self._tell("POST", *_report(held, "complete", told), tenant=tenant)

    @verb
    def fail(
        self,
        task: str,
        worker: str,
        epoch: int,
        message: str,
        *,
        retryable: bool = False,
        tenant: str | None = None,
    ) -> Talk[None]:
        """Report a task as failed."""
        held = Holder(task=task, worker=worker, epoch=epoch, tenant=tenant)
        work.check_holder(held)
        work.check_failure(message, retryable=retryable)
        told = {"message": message, "retryable": retryable}
        yield from self._tell("POST", *_report(held, "fail", told), tenant=tenant)

    # looking -------------------------------------------------------------------------------------

    @verb
    def show(self, task: str, *, tenant: str | None = None) -> Talk[Task]:
        """One task."""
        return (yield from self._get(_path(task), Task, tenant))

    @verb
    def list(self, query: WorkQuery | None = None) -> Talk[Sequence[Task]]:
        """Tasks that pass a filter, the newest first."""
        chosen = query or WorkQuery()
        return (
            yield from self._get(
                "/inspect/tasks",
                list[Task],
                chosen.tenant,
                state=",".join(chosen.states),
                handler_name=chosen.handler,
                worker_id=chosen.worker,
                queue_name=chosen.queue,
                limit=chosen.limit,
                offset=chosen.offset,
            )
        )

    @verb
    def stats(self, *, tenant: str | None = None) -> Talk[WorkStats]:
        """How many tasks are in which state, and who holds some."""
        return (yield from self._get("/workers/tasks/stats", WorkStats, tenant))

    @verb
    def attempts(
        self, task: str, *, tenant: str | None = None, limit: int = 100
    ) -> Talk[Sequence[WorkEvent]]:
        """What became of a task, the oldest first."""
        path = f"{_path(task)}/attempts"
        return (yield from self._get(path, list[WorkEvent], tenant, limit=limit))

    @verb
    def workers(
        self, *, tenant: str | None = None, include_stale: bool = False
    ) -> Talk[Sequence[WorkerView]]:
        """Who polls for work."""
        wanted = "true" if include_stale else "false"
        return (
            yield from self._get("/inspect/workers", list[WorkerView], tenant, include_stale=wanted)
        )


def _seconds(wait: float = 0.0) -> float:
    return wait


def _path(task: str) -> str:
    return f"/inspect/tasks/{one(task, unknown_task)}"


def _report(held: Holder, what: str, told: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Path and body of what the holder of a claim says."""
    path = f"/workers/tasks/{one_uuid(held.task, unknown_task)}/{what}"
    return path, {"worker_id": held.worker, "claim_epoch": held.epoch, **told}


def _task(claimed: Claimed) -> Task:
    return Task(
        id=claimed.id,
        instance=claimed.instance_id,
        tenant=claimed.tenant_id,
        block=claimed.block_id,
        handler=claimed.handler_name,
        queue=claimed.queue_name,
        params=claimed.params,
        context=claimed.context,
        attempt=claimed.attempt,
        timeout_ms=claimed.timeout_ms,
        state=claimed.state,
        worker=claimed.worker_id,
        claim_epoch=claimed.claim_epoch,
        checkpoint=claimed.resume_checkpoint,
        checkpoint_seq=claimed.checkpoint_seq,
        created_ms=unix_ms(claimed.created_at),
        available_ms=unix_ms(claimed.available_at),
        claimed_ms=_ms(claimed.claimed_at),
        heartbeat_ms=_ms(claimed.heartbeat_at),
        completed_ms=_ms(claimed.completed_at),
        output=claimed.output,
        error=claimed.error_message,
        retryable=claimed.error_retryable,
    )


def _ms(at: dt.datetime | None) -> int | None:
    return None if at is None else unix_ms(at)
