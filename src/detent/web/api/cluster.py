"""Nodes of the cluster and what tenants have used (contract §31)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field
from starlette.responses import Response

from detent.service import cluster as service
from detent.service.records import unix_ms
from detent.service.usage import TenantUsage, usage
from detent.web.api.call import Call
from detent.web.api.reply import instant, json_reply, utc
from detent.web.api.routes import Table

table = Table("cluster")

_DAY_MS = 86_400_000


class Drained(Struct):
    """Whether there is such a node, which drains now."""

    id: str
    drain: bool


class UsageQuery(Struct):
    """A period, by default the last 24 hours; `cursor` goes on counting."""

    tenant_id: str | None = None
    since: dt.datetime | None = field(default=None, name="from")
    until: dt.datetime | None = field(default=None, name="to")
    cursor: int = 0


class UsageShown(Struct):
    """What instances started in a period have done; with a cursor there are more to count."""

    since: str | None = field(name="from")
    until: str | None = field(name="to")
    tenants: list[TenantUsage]
    has_more: bool
    next_cursor: int | UnsetType = UNSET


@table.route("GET", "/cluster/nodes", admin=True, gives={200: list[Any]})
async def nodes(call: Call) -> Response:
    """The processes that own this store."""
    found = await call.desk.look(lambda store: service.nodes(store, call.desk.wall_ms()))
    return json_reply(
        [
            {
                "id": node.id,
                "name": f"{node.host}:{node.pid}",
                "status": node.status,
                "registered_at": instant(node.registered_ms),
                "last_heartbeat_at": instant(node.last_heartbeat_ms),
                "drain": node.drain,
            }
            for node in found
        ]
    )


@table.route("GET", "/cluster", admin=True, gives={200: service.ClusterView})
async def shown(call: Call) -> Response:
    """Who owns which partitions, for how long, and what waits there."""
    now_ms, logical_ms = call.desk.wall_ms(), call.desk.now_ms()
    return json_reply(
        await call.desk.look(lambda store: service.cluster(store, now_ms, logical_ms))
    )


@table.route("POST", "/cluster/nodes/{id}/drain", admin=True, gives={200: Drained})
async def drain(call: Call) -> Response:
    """Take a node out of use: it is no longer ready, and goes on with what it has."""
    id, now_ms = call.path["id"], call.desk.wall_ms()
    known = await call.desk.write(lambda store: service.drain(store, id, now_ms))
    return json_reply(Drained(id, known))


@table.route("GET", "/usage", query=UsageQuery, gives={200: UsageShown})
async def used(call: Call) -> Response:
    """Instances, steps and effects of a period, by tenant."""
    asked: UsageQuery = call.query
    tenant = call.scope(asked.tenant_id)
    until_ms = None if asked.until is None else _ms(asked.until)
    end_ms = call.desk.now_ms() if until_ms is None else until_ms
    since_ms = end_ms - _DAY_MS if asked.since is None else _ms(asked.since)
    found = await call.desk.look(lambda s: usage(s, tenant, since_ms, until_ms, asked.cursor))
    return json_reply(
        UsageShown(
            instant(since_ms),
            instant(end_ms),
            found.tenants,
            found.after is not None,
            UNSET if found.after is None else found.after,
        )
    )


def _ms(at: dt.datetime) -> int:
    return unix_ms(utc(at) or at)
