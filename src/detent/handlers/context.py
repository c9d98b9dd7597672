"""What a handler is told beside its parameters, when it has a parameter named `ctx`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from detent.model.decision import Order


class HandlerContext(Struct, frozen=True, kw_only=True):
    """One call as its handler sees it.

    `key` is the same each time this effect is tried again after doubt: hand it to a provider that
    de-duplicates. `node` is the place in the tree, `block` the id in the definition. `resource` is
    the `resource_key` that the step's pool assigned, or empty. `data` and `config` are copies of
    this call's own: writing to them has no effect.
    """

    key: str
    attempt: int
    data: Any
    config: Any
    instance_id: str
    tenant: str
    node: str
    block: str = ""
    dry_run: bool = False
    resource: str = ""


_decode = msgspec.json.Decoder().decode


def context_of(order: Order) -> HandlerContext:
    """The context of one order, with private copies of what the step may see."""
    return HandlerContext(
        key=order.key,
        attempt=order.attempt,
        data=None if order.data is None else _decode(order.data),
        config=None if order.config is None else _decode(order.config),
        instance_id=order.instance,
        tenant=order.tenant,
        node=order.node,
        block=order.block,
        dry_run=order.dry_run,
        resource=order.resource,
    )
