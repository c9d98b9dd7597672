"""Work items: an open effect turned into one call for an external worker.

An item is decided with everything the worker may see: params that are rendered, and a context that
is filtered by the step's `context_access`. Its time starts at its claim, so the effect has no due
tick; who claims it, and how, is no matter of the kernel until an outcome comes back.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from detent.kernel.orders import access_of, visible_data
from detent.kernel.run import Run, encode
from detent.model.decision import HandlerSpec, WorkItem
from detent.model.ids import effect_key, work_id
from detent.model.plan import SENDS
from detent.model.snapshot import OpenEffect

_SENDS = tuple(SENDS.values())


def spec_of(run: Run, handler: str, queue: str) -> HandlerSpec:
    """What is known of a handler; with a queue named it is workers', whoever registered it.

    What a plan sends to people is never repeated blindly, whatever its handler says of itself.
    """
    if queue:
        return HandlerSpec(name=handler, worker=True)
    spec = run.handler(handler)
    if run.program.is_plan and handler in _SENDS and spec.doubt == "repeatable":
        return replace(spec, doubt="once", worker=False)
    return spec


def hand_out(run: Run, effect: OpenEffect, queue: str, pause_ms: int) -> None:
    """Leave the call of an effect to workers, after a pause; it can be late only once claimed."""
    effect.worker = True
    effect.queue = queue
    effect.deadline = None
    if pause_ms:
        effect.available = run.after(pause_ms)
    run.work.append(item_of(run, effect))


def item_of(run: Run, effect: OpenEffect) -> WorkItem:
    """The work item of an effect that was planned in this turn, or is handed out once more."""
    snapshot = run.snapshot
    attempt = effect.attempt - 1
    previous = ""
    if attempt:
        previous = work_id(effect_key(snapshot.id, snapshot.generation, effect.node, attempt))
    available = run.tick if effect.available is None else effect.available
    node = run.program.nodes.get(effect.block)
    return WorkItem(
        id=work_id(effect.key),
        effect=effect.key,
        instance=snapshot.id,
        tenant=snapshot.tenant,
        block=effect.block if node is None else node.id,
        handler=effect.handler,
        queue=effect.queue,
        params=bytes(effect.request),
        context=encode(_context(run, effect.block)),
        attempt=attempt,
        timeout_ms=effect.timeout_ms,
        available_ms=run.ms_of(available),
        created_ms=run.now_ms(),
        previous=previous,
        ticket=f"{snapshot.id}:{effect.ticket}" if effect.ticket else "",
    )


def _context(run: Run, block: str) -> dict[str, Any]:
    """The four sections; what the step hides is null."""
    snapshot = run.snapshot
    access = access_of(run.program, block)
    return {
        "data": visible_data(snapshot.data, access),
        "config": snapshot.config if access is None or access.config else None,
        "audit": [] if access is None or access.audit else None,
        "runtime": run.runtime() if access is None or access.runtime else None,
    }
