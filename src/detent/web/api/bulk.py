"""Bulk operations (contract §15): the same asked of every instance that a filter finds.

Each instance is asked by itself, as many together as one turn takes; while they are decided the
loop serves others. One whose state does not allow the action is skipped, never forced.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.model import limits
from detent.model.errors import RequestError
from detent.service import bulk as service
from detent.service.arguments import invalid
from detent.service.bulk import (
    BulkAction,
    BulkFilter,
    BulkResult,
    bulk_action,
    bulk_filter,
    bulk_result,
    bulk_submission,
    bulk_targets,
    check_limit,
    every_target,
)
from detent.service.sequences import find_sequence
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table
from detent.web.api.signals import signal_name
from detent.web.api.steering import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.model.decision import Verdict
    from detent.ports.store import Store

table = Table("bulk")

Action = Literal["retry", "pause", "resume", "cancel", "signal"]


class InstanceFilter(Struct):
    """Which instances; what is left out does not filter."""

    tenant_id: str | None = None
    namespace: str | None = None
    sequence_id: UUID | None = None
    states: list[State] | None = None
    metadata: dict[str, Any] | None = None


class BulkState(Struct):
    """A state for all that the filter finds."""

    filter: InstanceFilter
    state: State


class BulkOffset(Struct):
    """How far to move the due time of all that the filter finds; back if negative."""

    filter: InstanceFilter
    offset_secs: int


class BatchAction(Struct):
    """One action on all that the filter finds, or only a count of them."""

    filter: InstanceFilter
    action: Action
    signal_type: str | dict[str, str] | None = None
    payload: Any = None
    dry_run: bool = False
    limit: int = limits.BULK_DEFAULT


class BulkRequest(Struct):
    """An action in the engine's own words; `args` are those that the kernel takes."""

    action: service.Action
    where: BulkFilter = BulkFilter()
    args: Any = None
    dry_run: bool = False
    limit: int = limits.BULK_DEFAULT


class Changed(Struct):
    """How many instances were changed."""

    count: int


@table.route("PATCH", "/instances/bulk/state", takes=BulkState, gives={200: Changed})
async def set_state(call: Call, body: BulkState) -> Response:
    """Set the state of many, of each as its life cycle allows."""
    asked = _action(call, "set_state", {"state": body.state})
    done = await _ask(call, asked, await _targets(call, body.filter, every_target))
    return json_reply(Changed(done.applied))


@table.route("PATCH", "/instances/bulk/reschedule", takes=BulkOffset, gives={200: Changed})
async def reschedule(call: Call, body: BulkOffset) -> Response:
    """Move the due time of those that are scheduled."""
    asked = _action(call, "reschedule", {"offset": body.offset_secs * 1000})
    done = await _ask(call, asked, await _targets(call, body.filter, every_target))
    return json_reply(Changed(done.applied))


@table.route("POST", "/instances/batch-action", takes=BatchAction, gives={200: BulkResult})
async def batch_action(call: Call, body: BatchAction) -> Response:
    """Retry, pause, resume, cancel or signal many; a dry run only counts them."""
    args = None
    if body.action == "signal":
        if body.signal_type is None:
            raise invalid("signal_type", "given for the action signal", None)
        args = {"name": signal_name(body.signal_type), "payload": body.payload}
    asked = _action(call, body.action, args)
    check_limit(body.limit)
    found = await _targets(call, body.filter, partial(bulk_targets, limit=body.limit))
    if body.dry_run:
        return json_reply(BulkResult(matched=len(found), dry_run=True))
    return json_reply(await _ask(call, asked, found))


@table.route("POST", "/instances/bulk", takes=BulkRequest, gives={200: BulkResult})
async def bulk(call: Call, body: BulkRequest) -> Response:
    """Any action on all that a filter finds; the operator's may reach every tenant."""
    asked = service.told_action(body.action, call.fresh_id(), body.args, call.desk.moment())
    check_limit(body.limit)
    wanted, tenant = bulk_filter(body.where), call.scope(body.where.tenant)
    found: list[str] = []
    if body.where.tenant in (None, tenant):
        wanted = replace(wanted, tenant=tenant)
        found = await call.desk.look(lambda store: bulk_targets(store, wanted, body.limit))
    if body.dry_run:
        return json_reply(BulkResult(matched=len(found), dry_run=True))
    return json_reply(await _ask(call, asked, found))


def _action(call: Call, action: str, args: Any) -> BulkAction:
    return bulk_action(action, call.fresh_id(), args, call.desk.moment())


async def _targets(
    call: Call, given: InstanceFilter, find: Callable[[Store, BulkFilter], list[str]]
) -> list[str]:
    """Whom a filter means; one that names another tenant than the caller's means nobody."""
    tenant = call.scope(given.tenant_id)
    if tenant is None:
        raise RequestError(
            "request.invalid", "a bulk action needs filter.tenant_id, or the header X-Tenant-Id"
        )
    if given.tenant_id and given.tenant_id != tenant:
        return []

    def read(store: Store) -> list[str]:
        digest = ""
        if given.sequence_id is not None:
            try:
                digest = find_sequence(store, str(given.sequence_id), tenant).hash
            except RequestError:
                return []
        wanted = BulkFilter(
            tenant=tenant,
            namespace=given.namespace or "",
            definition=digest,
            states=tuple(given.states or ()),
            metadata=given.metadata or {},
        )
        return find(store, bulk_filter(wanted))

    return await call.desk.look(read)


async def _ask(call: Call, asked: BulkAction, found: list[str]) -> BulkResult:
    verdicts: list[Verdict] = []
    for at in range(0, len(found), limits.BULK_AT_ONCE):
        some = found[at : at + limits.BULK_AT_ONCE]
        verdicts += await call.desk.ask_all(
            [partial(bulk_submission, asked, instance) for instance in some]
        )
    return bulk_result(verdicts)
