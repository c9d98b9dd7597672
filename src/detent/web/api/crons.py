"""Schedules (contract §18)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from detent.model.errors import RequestError
from detent.model.limits import CRONS_LISTED
from detent.service.arguments import invalid
from detent.service.crons import show_cron
from detent.service.instances import SequenceIds
from detent.web.api.call import Call
from detent.web.api.instances import Priority, check_namespace
from detent.web.api.reply import empty_reply, instant, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.crons import CronView

table = Table("cron")

FIRES_MOST = 50

_WORDS = {
    "timezone": "timezone",
    "metadata": "metadata",
    "enabled": "enabled",
    "overlap_policy": "overlap",
    "missed_policy": "missed",
    "missed_limit": "missed_limit",
    "priority": "priority",
    "data": "data",
    "config": "config",
}

Overlap = Literal["allow", "skip", "buffer_one", "cancel_previous"]
Missed = Literal["one", "all", "none"]


class NewCron(Struct):
    """A sequence to start at the times of a cron expression."""

    tenant_id: str
    namespace: str
    sequence_id: UUID
    cron_expr: str
    timezone: str = "UTC"
    metadata: dict[str, Any] | None = None
    enabled: bool = True
    overlap_policy: Overlap = "allow"
    missed_policy: Missed = "one"
    missed_limit: int | UnsetType = UNSET
    priority: Priority = "Normal"
    data: Any = None
    config: Any = None
    id: str | None = None  # an id of the caller's own
    follow: bool = False  # start the highest version of the name at each fire, not this one


class CronChange(Struct):
    """What to change of a schedule; the rest stays."""

    sequence_id: UUID | UnsetType = UNSET
    follow: bool = False
    missed_limit: int | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    data: Any = UNSET
    config: Any = UNSET

    cron_expr: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    overlap_policy: Overlap | UnsetType = UNSET
    missed_policy: Missed | UnsetType = UNSET


class CronMade(Struct):
    """A new schedule and when it fires first."""

    id: str
    next_fire_at: str | None


class CronQuery(Struct):
    """Which schedules to list."""

    tenant_id: str | None = None
    limit: int = 100


class FiresQuery(Struct):
    """How many of the next times to tell."""

    n: int = 5


class Fires(Struct):
    """The next times of a schedule."""

    timezone: str
    fires: list[str | None]


@table.route("POST", "/cron", takes=NewCron, gives={201: CronMade})
async def create(call: Call, body: NewCron) -> Response:
    """Start a sequence at the times of a cron expression."""
    tenant = call.owner(body.tenant_id)
    known = await call.sequences.get(str(body.sequence_id), None)
    if known.row.tenant != tenant:
        raise RequestError("request.forbidden", "the sequence is another tenant's")
    id = call.fresh_id() if body.id is None else body.id
    target = known.definition.name if body.follow else known.definition
    check_namespace(body.namespace)
    namespace = known.row.namespace if body.follow else body.namespace  # names are found in theirs
    place = {"tenant": tenant, "namespace": namespace}
    options = _said(body)
    try:
        made = await call.desk.verb(
            lambda verbs: verbs.crons.create(target, body.cron_expr, id=id, **place, **options)
        )
    except RequestError as error:
        if error.code != "cron.exists" or body.id is not None:
            raise
        made = await call.desk.look(lambda store: show_cron(store, id, tenant))  # it came before
    return json_reply(CronMade(made.id, instant(made.next_fire_ms)), 201)


@table.route("GET", "/cron", query=CronQuery, gives={200: list[Any]})
async def listing(call: Call) -> Response:
    """The schedules in the order of their making."""
    tenant, limit = call.scope(call.query.tenant_id), min(call.query.limit, CRONS_LISTED)
    found = await call.desk.verb(lambda verbs: verbs.crons.list(tenant=tenant, limit=limit))
    return json_reply(await call.desk.look(lambda store: _wires(store, found)))


@table.route("GET", "/cron/{id}", gives={200: Any})
async def show(call: Call) -> Response:
    """One schedule."""
    made = await call.desk.look(
        lambda store: _wires(store, [show_cron(store, call.path["id"], call.tenant)])
    )
    return json_reply(made[0])


@table.route("PUT", "/cron/{id}", takes=CronChange, gives={200: Any})
async def change(call: Call, body: CronChange) -> Response:
    """Change a schedule; its next fire is counted from now."""
    changes, target = _said(body), None
    if body.cron_expr is not UNSET:
        changes["expr"] = body.cron_expr
    if body.sequence_id is not UNSET:
        target = await _target(call, str(body.sequence_id), follow=body.follow)
    found = await call.desk.verb(
        lambda verbs: verbs.crons.update(call.path["id"], target, tenant=call.tenant, **changes)
    )
    made = await call.desk.look(lambda store: _wires(store, [found]))
    return json_reply(made[0])


@table.route("DELETE", "/cron/{id}", gives={204: None})
async def delete(call: Call) -> Response:
    """End a schedule; what it has started goes on."""
    await call.desk.verb(lambda verbs: verbs.crons.delete(call.path["id"], tenant=call.tenant))
    return empty_reply(204)


@table.route("GET", "/cron/{id}/next-fires", query=FiresQuery, gives={200: Fires})
async def next_fires(call: Call) -> Response:
    """The next times of a schedule."""
    n, id = call.query.n, call.path["id"]
    if not 0 < n <= FIRES_MOST:
        raise invalid("n", f"1 to {FIRES_MOST}", n)
    view = await call.desk.look(lambda store: show_cron(store, id, call.tenant))
    found = await call.desk.verb(lambda v: v.crons.next_fires(id, n, tenant=call.tenant))
    return json_reply(Fires(view.timezone, [_rfc(each) for each in found]))


async def _target(call: Call, sequence: str, *, follow: bool) -> Any:
    """What a schedule is to start from now on: one version, or its name."""
    now = await call.desk.look(lambda store: show_cron(store, call.path["id"], call.tenant))
    known = await call.sequences.get(sequence, None)
    if known.row.tenant != now.tenant:
        raise RequestError("request.forbidden", "the sequence is another tenant's")
    if follow and known.row.namespace != now.namespace:
        raise invalid("follow", f"false: the schedule is of namespace {now.namespace!r}", follow)
    return known.definition.name if follow else known.definition


def _said(body: NewCron | CronChange) -> dict[str, Any]:
    """The options that a body names, in the words of the verbs."""
    return {
        word: getattr(body, name)
        for name, word in _WORDS.items()
        if getattr(body, name) is not UNSET
    }


def _rfc(at: dt.datetime) -> str | None:
    return instant(round(at.timestamp() * 1000))


def _wires(store: Store, views: Any) -> list[dict[str, Any]]:
    ids = SequenceIds(store)
    return [_wire(view, _sequence_id(store, view, ids)) for view in views]


def _sequence_id(store: Store, view: CronView, ids: SequenceIds) -> str | None:
    """What a schedule starts now; one that follows a name starts the highest version of it."""
    if view.definition is not None:
        return ids.of(view.tenant, view.namespace, view.definition)
    row = store.find_definition(view.tenant, view.namespace, view.sequence, view.version)
    return None if row is None else row.id


def _wire(view: CronView, sequence: str | None) -> dict[str, Any]:
    return {
        "id": view.id,
        "tenant_id": view.tenant,
        "namespace": view.namespace,
        "sequence_id": sequence,
        "sequence_name": view.sequence,
        "cron_expr": view.cron_expr,
        "timezone": view.timezone,
        "enabled": view.enabled,
        "metadata": view.metadata,
        "overlap_policy": view.overlap_policy,
        "missed_policy": view.missed_policy,
        "fires": view.fires,
        "skipped_fires": view.skipped_fires,
        "last_skipped_at": instant(view.last_skipped_ms),
        "last_triggered_at": instant(view.last_triggered_ms),
        "next_fire_at": instant(view.next_fire_ms),
        "created_at": instant(view.created_ms),
        "updated_at": instant(view.updated_ms),
    }
