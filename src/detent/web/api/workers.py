"""Tasks of external workers, who works on them, and which handlers there are (contract §17)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.responses import Response

from detent.model.limits import WORK_WAIT_S
from detent.ports.work import WorkQuery
from detent.service import work_views
from detent.service.arguments import invalid
from detent.service.work import Holder, Polled, PollRequest
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table
from detent.web.api.task_shape import (
    Attempt,
    TaskView,
    Worker,
    attempt_shape,
    task_shape,
    worker_shape,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request

table = Table("workers")

LEASE = "x-detent-lease-ms"  # how long a claim lives without a heartbeat
_LONG_S = 10**9


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


class Handlers(Struct):
    """The engine's own, and those that workers have."""

    builtin: list[str]
    external: list[str]


# a worker's calls --------------------------------------------------------------------------------


@table.route(
    "POST",
    "/workers/tasks/poll",
    takes=Poll,
    query=PollQuery,
    secret=True,
    gives={200: list[TaskView]},
)
async def poll(call: Call, body: Poll) -> Response:
    """Claim tasks of a handler, of any queue, the oldest first."""
    return await _poll(call, body, None)


@table.route(
    "POST",
    "/workers/tasks/poll/queue",
    takes=QueuePoll,
    query=PollQuery,
    secret=True,
    gives={200: list[TaskView]},
)
async def poll_queue(call: Call, body: QueuePoll) -> Response:
    """Claim tasks of a handler in one queue, the oldest first."""
    return await _poll(call, body, body.queue_name)


@table.route("POST", "/workers/tasks/{id:uuid}/complete", takes=Completion, gives={200: None})
async def complete(call: Call, body: Completion) -> Response:
    """Report a task as done; only the holder of its claim may."""
    holder = _holder(call, body.worker_id, body.claim_epoch)
    await call.desk.work(lambda door: door.complete(holder, body.output, body.logs or []))
    return empty_reply()


@table.route("POST", "/workers/tasks/{id:uuid}/fail", takes=FailureReport, gives={200: None})
async def fail(call: Call, body: FailureReport) -> Response:
    """Report a task as failed, for good or to be tried again."""
    holder = _holder(call, body.worker_id, body.claim_epoch)
    await call.desk.work(
        lambda door: door.fail(holder, body.message, retryable=body.retryable, logs=body.logs or [])
    )
    return empty_reply()


@table.route("POST", "/workers/tasks/{id:uuid}/heartbeat", takes=Heartbeat, gives={200: Beaten})
async def heartbeat(call: Call, body: Heartbeat) -> Response:
    """Keep a claim, perhaps with a checkpoint that the next worker is given."""
    holder = _holder(call, body.worker_id, body.claim_epoch)
    kept = await call.desk.work(
        lambda door: door.heartbeat(holder, body.checkpoint, body.checkpoint_seq)
    )
    return json_reply(Beaten(kept))


async def _poll(call: Call, body: Poll | QueuePoll, queue: str | None) -> Response:
    seconds = call.query.wait_secs if body.wait_secs is None else body.wait_secs
    if not 0 <= seconds <= WORK_WAIT_S:
        raise invalid("wait_secs", f"0 to {WORK_WAIT_S} seconds", seconds)
    request = PollRequest(
        handler=body.handler_name,
        worker=body.worker_id,
        limit=body.limit,
        queue=queue,
        version=body.version,
        tenant=call.tenant,
    )
    polling = call.desk.poll_work(request, seconds)
    polled = await (_while_there(call.request, polling) if seconds else polling)
    reply = json_reply([task_shape(each) for each in polled.tasks])
    reply.headers[LEASE] = str(polled.lease_ms)
    return reply


async def _while_there(request: Request, polling: Awaitable[Polled]) -> Polled:
    """Poll for as long as the caller waits; who has gone away must not be given a task."""
    asked = asyncio.ensure_future(polling)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
        return await asked if asked.done() else Polled()
    finally:
        gone.cancel()
        asked.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _holder(call: Call, worker: str, epoch: int) -> Holder:
    return Holder(task=call.path["id"], worker=worker, epoch=epoch, tenant=call.tenant)


# looking -----------------------------------------------------------------------------------------


@table.route("GET", "/workers/tasks", query=TaskQuery, gives={200: list[TaskView]})
async def list_tasks(call: Call) -> Response:
    """The tasks that pass a filter, the newest first."""
    asked: TaskQuery = call.query
    query = WorkQuery(
        tenant=call.scope(asked.tenant_id),
        states=tuple(filter(None, asked.state.split(","))),
        handler=asked.handler_name,
        worker=asked.worker_id,
        queue=asked.queue_name,
        limit=asked.limit,
        offset=asked.offset,
    )
    found = await call.desk.look(lambda store: work_views.list_tasks(store, query))
    return json_reply([task_shape(each) for each in found])


@table.route("GET", "/workers/tasks/stats", query=StatsQuery, gives={200: work_views.WorkStats})
async def stats(call: Call) -> Response:
    """How many tasks are in which state, in all and by handler, and who holds some."""
    tenant = call.scope(call.query.tenant_id)
    return json_reply(await call.desk.look(lambda store: work_views.work_stats(store, tenant)))


@table.route(
    "GET", "/workers/tasks/{id:uuid}/attempts", query=AttemptQuery, gives={200: list[Attempt]}
)
async def attempts(call: Call) -> Response:
    """What became of a task, the oldest first."""
    id, most = call.path["id"], call.query.limit
    found = await call.desk.look(
        lambda store: work_views.task_attempts(store, id, call.tenant, most)
    )
    return json_reply([attempt_shape(each) for each in found])


@table.route("GET", "/workers", query=WorkerQuery, gives={200: list[Worker]})
async def list_workers(call: Call) -> Response:
    """Who polls for work."""
    asked: WorkerQuery = call.query
    tenant, now_ms = call.scope(asked.tenant_id), call.desk.now_ms()
    within_ms = _milliseconds("alive_within_secs", asked.alive_within_secs)
    found = await call.desk.look(
        lambda store: work_views.list_workers(
            store, tenant, now_ms, within_ms, include_stale=asked.include_stale
        )
    )
    return json_reply([worker_shape(each) for each in found])


@table.route("GET", "/handlers", gives={200: Handlers})
async def handlers(call: Call) -> Response:
    """The handlers that steps can name."""
    own = work_views.own_handlers(call.desk.handlers())
    external = await call.desk.look(lambda store: work_views.external_handlers(store, call.tenant))
    return json_reply(Handlers(builtin=own, external=external))


def _milliseconds(name: str, seconds: float) -> int:
    if not 0 <= seconds < _LONG_S:
        raise invalid(name, f"0 to {_LONG_S:,} seconds", seconds)
    return round(seconds * 1000)
