"""Steps of external workers: how they are retried, and what a dry run says of them."""

from __future__ import annotations

from detent.kernel import breaking
from detent.kernel.blocks import retry
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.work import spec_of
from detent.model.decision import HandlerSpec
from detent.model.snapshot import Frame


def spec(run: Run, node: Node, frame: Frame | None = None) -> HandlerSpec:
    """What is known of who performs a step; of who performed its last call, where a frame says."""
    block = node.block
    handler = block.handler
    if frame is not None and frame.v is not None:
        handler = breaking.performed_by(node, frame)
    return spec_of(run, handler, block.queue_name) if block.queue_name else run.handler(handler)


def is_outside(run: Run, handler: str) -> bool:
    """Whether a call of this handler is handed out to workers."""
    return run.handler(handler).worker and not run.snapshot.dry_run


def pause_ms(run: Run, node: Node, frame: Frame, path: str, failure: Failure) -> int | None:
    """The backoff of a next attempt that workers may know of at once, noted as a retry.

    None where there is no next attempt, and where it must ask again before it acts: of policies,
    windows, the gate and breakers it is known only then what they say, and a held instance acts
    later.
    """
    block = node.block
    asks = run.snapshot.policies or block.send_window is not None or node.limits or node.pool
    if run.held or asks or run.program.pool is not None or not spec(run, node).worker:
        return None
    if block.fallback_handler is not None or breaking.holds(run, node, path):
        return None
    pause = retry.backoff_ms(run, node, frame, path, failure)
    if pause is not None:
        run.note("error.occurred", path, {"message": failure.message, "kind": failure.kind})
        run.note("error.retried", path, {"attempt": frame.attempt + 1})
    return pause
