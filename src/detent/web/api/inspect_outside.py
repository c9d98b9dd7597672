"""What the engine knows of the outside, whole: events, deliveries, breakers, tasks and workers.

As in `inspect`, each route gives one struct of `service` as it is, for clients that offer the
engine's own verbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import Response

from detent.ports.work import WorkEvent, WorkQuery
from detent.service import breakers, events, webhooks, work_views
from detent.service.breakers import BreakerView
from detent.service.events import EventView
from detent.service.webhooks import DeliveryFilter, DeliveryView
from detent.service.work_views import Task, WorkerView
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.ports.store import Store

table = Table("inspect")


class EventQuery(Struct):
    """Which events to list."""

    status: str | None = None
    limit: int = 100


class DeliveryQuery(Struct):
    """Which deliveries to list: those that have not arrived, or all that pass a filter."""

    undelivered: bool = False
    url: str | None = None
    event_type: str | None = None
    delivered: bool | None = None
    error_class: str | None = None
    limit: int = 100


class BreakerQuery(Struct):
    """The breaker of one handler, or all."""

    handler: str | None = None


class TaskQuery(Struct):
    """Which tasks to list."""

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
    """Whether those are shown too that were not seen for long."""

    include_stale: bool = False


# events and deliveries ---------------------------------------------------------------------------


@table.route("GET", "/inspect/events", query=EventQuery, gives={200: list[EventView]})
async def list_events(call: Call) -> Response:
    """The newest events of the tenant."""
    tenant, asked = call.needed_scope(None), call.query
    return json_reply(
        await call.desk.look(lambda s: events.list_events(s, tenant, asked.status, asked.limit))
    )


@table.route("GET", "/inspect/events/{id}", gives={200: EventView})
async def show_event(call: Call) -> Response:
    """One event."""
    return json_reply(
        await call.desk.look(lambda s: events.show_event(s, call.path["id"], call.tenant))
    )


@table.route(
    "GET", "/inspect/deliveries", admin=True, query=DeliveryQuery, gives={200: list[DeliveryView]}
)
async def list_deliveries(call: Call) -> Response:
    """The newest deliveries of webhooks."""
    asked: DeliveryQuery = call.query

    def read(store: Store) -> list[DeliveryView]:
        if asked.undelivered:
            return webhooks.outbox(store, asked.limit, call.tenant)
        names = DeliveryFilter.__struct_fields__
        wanted = DeliveryFilter(**{name: getattr(asked, name) for name in names})
        return webhooks.deliveries(store, wanted, asked.limit, call.tenant)

    return json_reply(await call.desk.look(read))


@table.route("GET", "/inspect/deliveries/{id}", admin=True, gives={200: DeliveryView})
async def show_delivery(call: Call) -> Response:
    """One delivery."""
    return json_reply(
        await call.desk.look(lambda s: webhooks.delivery(s, call.path["id"], call.tenant))
    )


# breakers and work -------------------------------------------------------------------------------


@table.route(
    "GET",
    "/inspect/breakers",
    tenantless=True,
    query=BreakerQuery,
    gives={200: list[BreakerView]},
)
async def list_breakers(call: Call) -> Response:
    """The circuit breakers of the tenant, or of all; or the one of a handler."""
    handler, now_ms = call.query.handler, call.desk.now_ms()
    tenant = call.tenant if handler is None else call.needed_scope(None)

    def read(store: Store) -> list[BreakerView]:
        if handler is None or tenant is None:
            return breakers.list_breakers(store, tenant, now_ms)
        return [breakers.find_breaker(store, tenant, handler, now_ms)]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/inspect/tasks", query=TaskQuery, gives={200: list[Task]})
async def list_tasks(call: Call) -> Response:
    """Tasks of external workers that pass a filter, the newest first."""
    asked: TaskQuery = call.query
    query = WorkQuery(
        tenant=call.tenant,
        states=tuple(filter(None, asked.state.split(","))),
        handler=asked.handler_name,
        worker=asked.worker_id,
        queue=asked.queue_name,
        limit=asked.limit,
        offset=asked.offset,
    )
    return json_reply(await call.desk.look(lambda s: work_views.list_tasks(s, query)))


@table.route("GET", "/inspect/tasks/{id}", gives={200: Task})
async def show_task(call: Call) -> Response:
    """One task."""
    return json_reply(
        await call.desk.look(lambda s: work_views.show_task(s, call.path["id"], call.tenant))
    )


@table.route(
    "GET", "/inspect/tasks/{id}/attempts", query=AttemptQuery, gives={200: list[WorkEvent]}
)
async def task_attempts(call: Call) -> Response:
    """What became of a task, the oldest first."""
    id, most = call.path["id"], call.query.limit
    return json_reply(
        await call.desk.look(lambda s: work_views.task_attempts(s, id, call.tenant, most))
    )


@table.route("GET", "/inspect/workers", query=WorkerQuery, gives={200: list[WorkerView]})
async def list_workers(call: Call) -> Response:
    """Who polls for work."""
    now_ms, stale = call.desk.now_ms(), call.query.include_stale
    return json_reply(
        await call.desk.look(
            lambda s: work_views.list_workers(s, call.tenant, now_ms, include_stale=stale)
        )
    )
