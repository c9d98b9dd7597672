"""A step's own call: planned as an effect, unless there is too much to hand over."""

from __future__ import annotations

from typing import Any, NamedTuple

from detent.kernel import ledger, references
from detent.kernel.blocks import passage
from detent.kernel.blocks.result import give_up
from detent.kernel.bounds import too_large
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import WAIT
from detent.model import limits
from detent.model.snapshot import Frame


class Order(NamedTuple):
    """Whom a step calls, and with what; `params` are those that the request was made of."""

    handler: str
    request: bytes
    params: Any
    resource: str
    pause_ms: int = 0


def plan(run: Run, node: Node, frame: Frame, path: str, order: Order) -> int:
    """Plan the call; the frame waits for its outcome."""
    size, block = len(order.request), node.block
    if size > limits.PAYLOAD_BYTES:
        return give_up(run, node, path, too_large(path, size, limits.PAYLOAD_BYTES))
    if references.MARK in order.request:
        refused = references.foreign(block.params, order.params)
        if refused is not None:
            return give_up(run, node, path, refused)
    planned = ledger.Plan(
        path,
        node.key,
        order.handler,
        order.request,
        "call",
        frame.attempt,
        block.timeout,
        order.resource,
        block.queue_name or "",
        order.pause_ms,
        *passage.used_by_call(frame),
    )
    ledger.plan(run, planned, frame)
    return WAIT
