"""Orders: an open effect turned into one call for the dispatcher."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from detent.kernel.plan_context import context_of
from detent.kernel.program import Program
from detent.model.decision import Order
from detent.model.definition import ContextAccess, Fields, Step
from detent.model.snapshot import OpenEffect, Snapshot

_encode = msgspec.json.Encoder().encode


def order_of(snapshot: Snapshot, effect: OpenEffect, program: Program | None) -> Order:
    """The call for an open effect as it stands: perform it, or reconcile it."""
    reconcile = effect.state == "needs_reconcile" and effect.doubt == "queryable"
    order = Order(
        key=effect.key,
        instance=snapshot.id,
        tenant=snapshot.tenant,
        node=effect.node,
        block=effect.block,
        handler=effect.handler,
        request=effect.request,
        mode="reconcile" if reconcile else "call",
        attempt=effect.attempt,
        dispatch=effect.tries + effect.crashes,
        marked=effect.marked and not reconcile,
        doubt=effect.doubt,
        timeout_ms=effect.timeout_ms,
        dry_run=snapshot.dry_run,
        resource=effect.resource,
    )
    if effect.kind != "call":  # what a policy or an escalation is told holds data of others
        order = replace(order, plain=True)
    if effect.ticket:
        order = replace(order, ticket=f"{snapshot.id}:{effect.ticket}")
    if effect.clock is not None and program is not None:
        order = replace(order, seen=context_of(snapshot, program.definition, effect.clock))
    return _with_context(order, snapshot, program) if effect.ctx else order


def _with_context(order: Order, snapshot: Snapshot, program: Program | None) -> Order:
    """The order with as much of the context as its step lets its handler see."""
    access = access_of(program, order.block)
    config = snapshot.config if access is None or access.config else None
    return replace(
        order,
        data=Raw(_encode(visible_data(snapshot.data, access))),
        config=Raw(_encode(config)),
    )


def access_of(program: Program | None, block: str) -> ContextAccess | None:
    """What the step allows its handler to see; None is everything."""
    node = program.nodes.get(block) if program is not None else None
    if node is None or not isinstance(node.block, Step):
        return None
    return node.block.context_access


def visible_data(data: Any, access: ContextAccess | None) -> Any:
    """The part of data that an access rule shows."""
    if access is None or access.data is True:
        return data
    if isinstance(access.data, Fields) and isinstance(data, dict):
        return {name: data[name] for name in access.data.fields if name in data}
    return None
