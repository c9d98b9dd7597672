"""Instances (contract §10): started alone or many at once, read, listed."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import asdict, replace
from starlette.responses import Response

from detent.kernel.lifecycle import INSTANCE
from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.listing import ListQuery
from detent.ports.store import NewArrival
from detent.service.arguments import invalid, span_ms
from detent.service.reading import find_instance, still_there
from detent.service.sequences import find_sequence
from detent.service.starting import (
    StartRequest,
    check_free,
    check_handlers,
    start_submission,
)
from detent.web.api import instance_shape, sessions
from detent.web.api.bodies import aware
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.sequences import Page

if TYPE_CHECKING:
    from detent.model.link import Submission
    from detent.ports.store import InstanceRow, Store

table = Table("instances")

LIST_MOST = 1_000
LABEL = "metadata."

Priority = Literal["Low", "Normal", "High", "Critical"]


class Context(Struct):
    """What an instance starts with; `audit` and `runtime` are the engine's and are ignored."""

    data: Any = None
    config: Any = None


class Budget(Struct, omit_defaults=True):
    """What an instance may use up before it is paused."""

    max_steps: int | None = None
    max_total_tokens: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None


class NewInstance(Struct):
    """An instance to start."""

    sequence_id: UUID
    tenant_id: str
    namespace: str
    priority: Priority = "Normal"
    timezone: str = "UTC"
    metadata: Any = None
    context: Context = field(default_factory=Context)
    next_fire_at: dt.datetime | None = None
    start_in_ms: int | None = None  # counted by the engine's clock, instead of an instant
    concurrency_key: str | None = None
    max_concurrency: int | None = None
    idempotency_key: str | None = None
    dry_run: bool = False
    dry_run_auto_approve: bool = False
    budget: Budget | None = None
    session_id: UUID | None = None


class Batch(Struct):
    """Instances to start, all or none."""

    instances: list[NewInstance]


class Started(Struct, omit_defaults=True):
    """The id of an instance; `deduplicated` when its key was used before."""

    id: str
    deduplicated: bool = False


class Count(Struct, omit_defaults=True):
    """How many; with their ids where these were asked for."""

    count: int
    ids: list[str] = []


class BatchQuery(Struct):
    """Whether to tell the ids of what was started."""

    ids: bool = False


class ListInstances(Struct):
    """Which instances to list; `metadata.<name>=<text>` filters too."""

    tenant_id: str | None = None
    namespace: str | None = None
    sequence_id: UUID | None = None
    state: str | None = None
    offset: int = 0
    limit: int = 100


@table.route("POST", "/instances", takes=NewInstance, gives={201: Started, 200: Started})
async def create(call: Call, body: NewInstance) -> Response:
    """Start an instance; a known idempotency key gives the first one's id."""
    made = await _submission(call, body, foreign="unknown")
    joined = await _join(call, [(body, made)])
    # under an Idempotency-Key a start that comes again is known by its own id
    id = f"start:{made.instance}" if call.id_seed else made.id
    verdict = await call.desk.ask(lambda ack: replace(made, ack=ack, id=id))
    for tenant, session in joined:
        await sessions.catch_up(call, tenant, session)
    known = isinstance(verdict.result, dict) and verdict.result.get("deduplicated", False)
    return json_reply(Started(made.instance, known), 200 if known else 201)


@table.route(
    "POST", "/instances/batch", takes=Batch, query=BatchQuery, gives={201: Count, 200: Count}
)
async def create_many(call: Call, body: Batch) -> Response:
    """Start many instances, all or none."""
    if not body.instances:
        return json_reply(Count(0))
    if len(body.instances) > limits.BATCH_STARTS:
        raise RequestError(
            "request.invalid",
            f"a batch holds at most {limits.BATCH_STARTS} instances; got {len(body.instances)}",
        )
    starts = [(item, await _submission(call, item, "forbidden")) for item in body.instances]
    joined = await _join(call, starts)
    await call.desk.leave([_arrival(call, made) for _item, made in starts])
    for tenant, session in joined:
        await sessions.catch_up(call, tenant, session)
    told = [made.instance for _item, made in starts] if call.query.ids else []
    return json_reply(Count(len(starts), told), 201)


@table.route("GET", "/instances", query=ListInstances, gives={200: Page})
async def listing(call: Call) -> Response:
    """List instances, the newest first."""
    items, more = await call.desk.look(lambda store: page(store, call, call.query))
    return json_reply(Page(items=items, has_more=more))


@table.route("GET", "/instances/{id:uuid}", gives={200: Any})
async def show(call: Call) -> Response:
    """One instance with its context."""
    made = await call.desk.look(lambda store: instance_shape.whole(store, _row(store, call)))
    return json_reply(made)


@table.route("GET", "/instances/{id:uuid}/children", gives={200: list[Any]})
async def children(call: Call) -> Response:
    """The instances that an instance has started."""

    def read(store: Store) -> list[dict[str, Any]]:
        from detent.ports.store import Page as Numbers

        row = _row(store, call)
        found = store.instances(Numbers(parent=row.id, limit=LIST_MOST))
        return instance_shape.shown(store, still_there(store, found))

    return json_reply(await call.desk.look(read))


async def _join(call: Call, starts: list[tuple[NewInstance, Submission]]) -> list[tuple[str, str]]:
    """Let those that name a session belong to it before they start; the sessions by tenant."""
    by_tenant: dict[str, list[tuple[str, str]]] = {}
    for item, made in starts:
        if item.session_id is not None:
            pair = (str(item.session_id), made.instance)
            by_tenant.setdefault(call.owner(item.tenant_id), []).append(pair)
    for tenant, members in by_tenant.items():
        await sessions.join(call, tenant, members)
    return list(dict.fromkeys((t, session) for t in by_tenant for session, _ in by_tenant[t]))


def _arrival(call: Call, made: Submission) -> NewArrival:
    return NewArrival(
        id=f"start:{made.instance}",
        p=call.desk.partition(made.instance),
        instance=made.instance,
        body=made.body,
        birth=made.birth,
        salt=call.desk.salt(),
    )


def _row(store: Store, call: Call) -> InstanceRow:
    return find_instance(store, call.path["id"], call.tenant)


def page(store: Store, call: Call, asked: ListInstances) -> tuple[list[dict[str, Any]], bool]:
    """Some of the instances that a list is asked for, and whether there are more."""
    query = list_query(store, call, asked)
    if query is None:
        return [], False
    rows = store.recent_instances(query._replace(limit=query.limit + 1))
    return instance_shape.shown(store, rows[: query.limit]), len(rows) > query.limit


def list_query(store: Store, call: Call, asked: ListInstances) -> ListQuery | None:
    """What a list is asked for; None when nothing can be found."""
    if not asked.offset >= 0 or not asked.limit > 0:
        raise invalid("limit", "above 0, and offset not negative", asked.limit)
    tenant = call.scope(asked.tenant_id)
    definitions: tuple[str, ...] = ()
    states = _states(asked.state)
    if asked.sequence_id is not None:
        try:
            definitions = (find_sequence(store, str(asked.sequence_id), tenant).hash,)
        except RequestError:
            return None
    return ListQuery(
        tenant=tenant or "",
        namespace=asked.namespace or "",
        definitions=definitions,
        states=states,
        labels=_labels(call),
        offset=asked.offset,
        limit=min(asked.limit, LIST_MOST),
        stored=True,
    )


def _states(text: str | None) -> tuple[str, ...]:
    if not text:
        return ()
    states = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for state in states:
        if state not in INSTANCE:
            raise invalid("state", f"some of {', '.join(INSTANCE)}", state)
    return states


def _labels(call: Call) -> tuple[tuple[str, str], ...]:
    given = call.request.query_params.multi_items()
    return tuple(
        (name.removeprefix(LABEL), value) for name, value in given if name.startswith(LABEL)
    )


async def _submission(call: Call, body: NewInstance, foreign: str) -> Submission:
    """The start of one instance, checked; `foreign` is how another tenant's sequence is refused."""
    tenant = call.owner(body.tenant_id)
    check_namespace(body.namespace)
    known = await call.sequences.get(str(body.sequence_id), None)
    if known.row.tenant != tenant:
        if foreign == "forbidden":
            raise RequestError(
                "request.forbidden", f"sequence {body.sequence_id} is another tenant's"
            )
        raise RequestError("definition.unknown", f"there is no sequence {body.sequence_id}")
    check_free(known.definition.name, body.namespace)
    if not call.desk.workers():
        check_handlers(known.definition, call.desk.handlers())
    request = StartRequest(
        data=body.context.data,
        config=body.context.config,
        metadata=body.metadata,
        key=body.idempotency_key or None,
        tenant=tenant,
        namespace=body.namespace,
        priority=body.priority,
        timezone=body.timezone,
        at=_begins(body),
        dry_run=body.dry_run,
        auto_approve=body.dry_run_auto_approve,
        concurrency_key=body.concurrency_key,
        max_concurrency=1 if body.max_concurrency is None else body.max_concurrency,
        budget=None if body.budget is None else asdict(body.budget),
    )
    moment = replace(call.desk.moment(), fresh_id=call.fresh_id())
    return start_submission(known.definition, request, moment, 0)


def check_namespace(name: str) -> None:
    """Refuse a namespace without a name."""
    if not name.strip():
        raise invalid("namespace", "a name", name)


def _begins(body: NewInstance) -> dt.datetime | dt.timedelta | None:
    """When it begins; a timestamp without an offset is in UTC."""
    at, span = body.next_fire_at, body.start_in_ms
    if span is not None:
        if at is not None:
            raise invalid("start_in_ms", "left out where next_fire_at is given", span)
        return dt.timedelta(milliseconds=span_ms("start_in_ms", span))
    return aware(at)
