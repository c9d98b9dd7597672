"""What the engine knows, whole: the views of `engine.inspect`, as they are.

The sections of the contract show instances in its words. A client that offers the engine's own
verbs needs the engine's own views, so each route here gives one struct of `service` and all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw, Struct
from msgspec.json import encode
from starlette.responses import Response

from detent.definition import normalize
from detent.kernel.explain import Explanation
from detent.kernel.replay import FactChange, Replay
from detent.kernel.tree import Tree
from detent.kernel.views import AuditEntry, OutputRow, Timeline
from detent.kernel.whatif import Changes, InputChange, WhatIf
from detent.model import limits
from detent.ports.store import Page
from detent.service import crons, explaining, gate_views, histories, proving
from detent.service.arguments import invalid, wanted_states
from detent.service.clock import ClockView
from detent.service.crons import CronView
from detent.service.explaining import Approval, OpenCall
from detent.service.gate_views import LimitView, PoolView
from detent.service.histories import EffectReceipt
from detent.service.in_line import calls_of
from detent.service.instances import InstanceView, Listing, list_instances, show_instance
from detent.service.migrating import preview_migration
from detent.service.publishing import stored_for
from detent.service.reading import find_instance
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.ports.store import Store

table = Table("inspect")


class ListQuery(Struct):
    """Which instances to list, the oldest first."""

    namespace: str = ""
    definition: str = ""
    state: str = ""
    parent: str = ""
    after: int = 0
    limit: int = 100


class CallsQuery(Struct):
    """Of which instances, by id, with commas between."""

    ids: str


class AuditQuery(Struct):
    """Which journal entries to show."""

    action: str = ""
    node: str = ""


class ExplainQuery(Struct):
    """As of which tick; without one, of now."""

    tick: int | None = None


class StateQuery(Struct):
    """Which states to wait for, and how long."""

    until: str = ""
    wait_ms: int = 0


class DoubtQuery(Struct):
    """Effects of one instance, or of all."""

    instance: str = ""
    limit: int = 100


class SomeQuery(Struct):
    """How many."""

    limit: int = 100


class LimitQuery(Struct):
    """The limit of one key, or all."""

    key: str | None = None


class PoolQuery(Struct):
    """One pool by its name, or all."""

    pool: str | None = None


class Move(Struct):
    """Where an instance might be moved to: a stored name, or a definition."""

    to: str | None = None
    definition: dict[str, Any] | None = None


class OtherInput(Struct):
    """A change of the inputs of one row: at an index, replace, insert before, or drop."""

    seq: int
    index: int
    verb: Literal["replace", "insert", "drop"]
    body: Any = None


class Otherwise(Struct):
    """What is to be different: inputs, the definition by its hash, or both."""

    inputs: list[OtherInput] = []
    definition: str = ""


class State(Struct):
    """The state an instance is in."""

    id: str
    state: str


# instances ---------------------------------------------------------------------------------------


@table.route("GET", "/inspect/instances", query=ListQuery, gives={200: Listing})
async def instances(call: Call) -> Response:
    """Instances that fit a filter, the oldest first."""
    asked: ListQuery = call.query
    page = Page(
        namespace=asked.namespace,
        definition=asked.definition,
        states=tuple(filter(None, asked.state.split(","))),
        parent=asked.parent,
        after=asked.after,
        limit=asked.limit,
    )
    return json_reply(await call.desk.look(lambda s: list_instances(s, page, call.tenant)))


@table.route("GET", "/inspect/calls", query=CallsQuery, gives={200: dict[str, int]})
async def calls(call: Call) -> Response:
    """When their gate calls the instances that stand in line there."""
    ids = call.query.ids.split(",")[: limits.IDS_AT_ONCE]
    return json_reply(await call.desk.look(lambda s: calls_of(s, ids, call.tenant)))


def _of_instance(name: str, gives: Any, read: Callable[..., Any], told: str) -> None:
    """A route that shows one view of one instance."""

    async def show(call: Call) -> Response:
        return json_reply(
            await call.desk.look(lambda store: read(store, call.path["id"], call.tenant))
        )

    show.__name__, show.__doc__ = name or "show", told
    path = "/inspect/instances/{id:uuid}" + (f"/{name}" if name else "")
    table.route("GET", path, gives={200: gives})(show)


_of_instance("", InstanceView, show_instance, "One instance with its context.")
_of_instance("tree", Tree, histories.instance_tree, "The execution tree.")
_of_instance("outputs", list[OutputRow], histories.instance_outputs, "Every output, in order.")
_of_instance("timeline", Timeline, histories.instance_timeline, "What happened, for people.")
_of_instance("effects", list[EffectReceipt], histories.instance_effects, "Every effect.")
_of_instance("replay", Replay, proving.replay_instance, "Run the record again and compare.")
_of_instance(
    "recompute",
    list[FactChange],
    proving.recompute_instance,
    "Recorded facts that would be different today.",
)


@table.route(
    "GET", "/inspect/instances/{id:uuid}/explain", query=ExplainQuery, gives={200: Explanation}
)
async def explain(call: Call) -> Response:
    """Why an instance stands still, and when it can move."""
    named: int | None = call.query.tick
    tick = call.desk.moment().tick if named is None else named
    found = await call.desk.look(
        lambda store: explaining.explain_instance(store, call.path["id"], call.tenant, tick)
    )
    return json_reply(found)


@table.route(
    "GET", "/inspect/instances/{id:uuid}/audit", query=AuditQuery, gives={200: list[AuditEntry]}
)
async def audit(call: Call) -> Response:
    """Journal entries, by action and node where named."""
    asked: AuditQuery = call.query
    found = await call.desk.look(
        lambda store: histories.instance_audit(
            store, call.path["id"], call.tenant, action=asked.action, node=asked.node
        )
    )
    return json_reply(found)


@table.route("GET", "/inspect/instances/{id:uuid}/state", query=StateQuery, gives={200: State})
async def state(call: Call) -> Response:
    """The state of an instance; with `until`, as soon as it is one of these or time is up."""
    asked: StateQuery = call.query
    wanted = wanted_states(asked.until.split(",") if asked.until else None)
    if not 0 <= asked.wait_ms <= limits.LONG_POLL_MS:
        raise invalid("wait_ms", f"0 to {limits.LONG_POLL_MS}", asked.wait_ms)
    id = call.path["id"]
    reached = asyncio.Event()
    stop = call.desk.watch(id, lambda now: reached.set() if now in wanted else None)
    try:
        found = await _state(call)
        if found.state not in wanted and asked.wait_ms:
            with suppress(TimeoutError):  # then it is told what it has come to
                await asyncio.wait_for(reached.wait(), asked.wait_ms / 1000)
            found = await _state(call)
    finally:
        stop()
    return json_reply(found)


@table.route("POST", "/inspect/instances/{id:uuid}/migration", takes=Move, gives={200: list[str]})
async def migration(call: Call, body: Move) -> Response:
    """Why an instance cannot be moved to that version now; nothing when it can."""
    await _state(call)  # whose it is comes before what is wrong
    if (body.to is None) == (body.definition is None):
        raise invalid("a migration", "to a stored name, or to a definition", None)
    target = body.to or normalize(body.definition or {})
    found = await call.desk.look(
        lambda store: preview_migration(store, call.path["id"], call.tenant, target)
    )
    return json_reply(found)


@table.route("POST", "/inspect/instances/{id:uuid}/what-if", takes=Otherwise, gives={200: WhatIf})
async def what_if(call: Call, body: Otherwise) -> Response:
    """Run the record with changes; nothing is called, and nothing is written."""
    inputs = tuple(
        InputChange(seq=each.seq, index=each.index, verb=each.verb, body=Raw(encode(each.body)))
        for each in body.inputs
    )
    changes = Changes(inputs=inputs, definition=body.definition)

    def run(store: Store) -> WhatIf:
        row = find_instance(store, call.path["id"], call.tenant)
        if changes.definition:
            stored_for(store, row.tenant, changes.definition)
        return proving.what_if_instance(store, row.id, call.tenant, changes)

    return json_reply(await call.desk.look(run))


# people and gates --------------------------------------------------------------------------------


@table.route("GET", "/inspect/approvals", query=SomeQuery, gives={200: list[Approval]})
async def approvals(call: Call) -> Response:
    """Questions that wait for a person."""
    limit = call.query.limit
    return json_reply(
        await call.desk.look(lambda s: explaining.approvals(s, call.tenant, limit=limit))
    )


@table.route("GET", "/inspect/doubts", query=DoubtQuery, gives={200: list[OpenCall]})
async def doubts(call: Call) -> Response:
    """Effects that need reconciliation or a person."""
    asked: DoubtQuery = call.query
    found = await call.desk.look(
        lambda s: explaining.doubts(s, call.tenant, instance=asked.instance, limit=asked.limit)
    )
    return json_reply(found)


@table.route("GET", "/inspect/gated-tenants", gives={200: list[str]})
async def gated_tenants(call: Call) -> Response:
    """The tenants that have limits or pools."""
    return json_reply(await call.desk.look(lambda s: gate_views.gated_tenants(s, call.tenant)))


@table.route("GET", "/inspect/limits", query=LimitQuery, gives={200: list[LimitView]})
async def rate_limits(call: Call) -> Response:
    """The limits of the tenant, or the one of a key."""
    tenant, key, now_ms = call.needed_scope(None), call.query.key, call.desk.now_ms()

    def read(store: Store) -> list[LimitView]:
        if key is None:
            return gate_views.list_limits(store, tenant, now_ms)
        return [gate_views.find_limit(store, tenant, key, now_ms)]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/inspect/pools", query=PoolQuery, gives={200: list[PoolView]})
async def pools(call: Call) -> Response:
    """The pools of the tenant, or the one of a name, each with its resources."""
    tenant, name, now_ms = call.needed_scope(None), call.query.pool, call.desk.now_ms()

    def read(store: Store) -> list[PoolView]:
        if name is None:
            return gate_views.list_pools(store, tenant, now_ms)
        return [gate_views.find_pool(store, tenant, name, now_ms)]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/inspect/crons", query=SomeQuery, gives={200: list[CronView]})
async def schedules(call: Call) -> Response:
    """Schedules in the order of creation."""
    limit = call.query.limit
    return json_reply(await call.desk.look(lambda s: crons.list_crons(s, call.tenant, limit)))


@table.route("GET", "/inspect/crons/{id}", gives={200: CronView})
async def schedule(call: Call) -> Response:
    """One schedule."""
    return json_reply(
        await call.desk.look(lambda s: crons.show_cron(s, call.path["id"], call.tenant))
    )


@table.route("GET", "/inspect/clock", tenantless=True, gives={200: ClockView})
async def clock(call: Call) -> Response:
    """Logical now, and how ticks become instants."""
    meta = await call.desk.look(lambda store: store.meta())
    told = ClockView(
        now_ms=call.desk.now_ms(),
        epoch_ms=meta.epoch_ms,
        resolution_ms=meta.resolution_ms,
        clock=meta.clock,
    )
    return json_reply(told)


async def _state(call: Call) -> State:
    row = await call.desk.look(lambda s: find_instance(s, call.path["id"], call.tenant))
    return State(row.id, row.state)
