"""One task of a worker: called, kept alive meanwhile, and reported.

How a function ends means what it means in an engine (`handlers.manners`), with one difference: the
server knows no doubt. Where nobody knows whether a call happened, a `once` handler has failed for
good, and a `keyed` or `queryable` one is not reported: the task comes back when its claim is over,
under the same id, and is then called with the same key, or asked about first.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, cast

import msgspec
from msgspec import Raw

from detent.cli.worker_wire import Answer, ClaimedTask, Wire
from detent.handlers.context import KEEPER, Done
from detent.handlers.outcomes import doubted
from detent.handlers.perform import AsyncPerformer, Performer
from detent.handlers.registry import Entry
from detent.model import limits
from detent.model.decision import Order
from detent.model.errors import RequestError
from detent.model.inputs import (
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
    decode_input,
)
from detent.model.payload import encode_payload

_BEATS = 3  # in the life of a claim
_LOST = (404, 409)

log = logging.getLogger("detent.worker")


class TaskCall:
    """A claimed task on its way to its report."""

    def __init__(self, wire: Wire, task: ClaimedTask, lease_ms: int, tenant: str) -> None:
        self._wire = wire
        self._task = task
        self._every_s = lease_ms / 1000 / _BEATS
        self._order = order_of(task, tenant)
        self._loop = asyncio.get_running_loop()
        self._thread: asyncio.Future[bytes | None] | None = None  # a plain function, while it runs
        self._saving = asyncio.Lock()
        self._seq = task.checkpoint_seq
        self._own: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[None] | None = None
        self.resumed = task.resume_checkpoint
        self.lost = False
        self.reported = False

    async def run(self, entry: Entry, slots: asyncio.Semaphore) -> None:
        """Call the handler when there is room, and report how it ended."""
        self._own = asyncio.current_task()
        self._beating = asyncio.create_task(self._beats())
        try:
            async with slots:
                try:
                    await self._finish(entry)
                except asyncio.CancelledError:
                    if not self.lost:
                        self._thread = None  # the worker leaves, and waits for nobody
                    raise
                finally:
                    self._beating.cancel()
                    if self._thread is not None:
                        await asyncio.wait([self._thread])  # it has its room until it ends
        except asyncio.CancelledError:
            if not self.lost:
                raise
            log.warning("task %s was given to somebody else", self._task.id)
        finally:
            self._beating.cancel()

    async def _finish(self, entry: Entry) -> None:
        body = await self._outcome(entry)
        match decode_input(body):
            case EffectApplied(result=result):
                await self._report("complete", output=result)
            case EffectFailed(message=message, retryable=retryable):
                await self._report("fail", message=message, retryable=retryable)
            case EffectDoubted(reason=reason):
                await self._doubt(entry, reason)
            case EffectReconciled() as found:
                await self._reconciled(found)

    async def _outcome(self, entry: Entry) -> bytes:
        """How the call ended; one that may have been made before is asked about first."""
        order, doubt = self._order, entry.spec.doubt
        order = msgspec.structs.replace(
            order, doubt=doubt, timeout_ms=order.timeout_ms or entry.spec.timeout_ms
        )
        if not order.dispatch or doubt in ("repeatable", "keyed"):
            return await self._perform(entry.call, order)
        if entry.reconcile is not None:
            return await self._perform(
                entry.reconcile, msgspec.structs.replace(order, mode="reconcile")
            )
        return doubted(order, order.dispatch, "a worker took it up before and fell silent")

    async def _perform(self, performer: Performer, order: Order) -> bytes:
        seconds = None if order.timeout_ms is None else order.timeout_ms / 1000
        token = KEEPER.set(self)
        try:
            async with asyncio.timeout(seconds):
                if isinstance(performer, AsyncPerformer):
                    body = await performer.perform(order, order.dispatch)
                else:
                    self._thread = in_thread(lambda: performer.perform(order, order.dispatch))
                    body = await asyncio.shield(self._thread)
        except TimeoutError:
            return performer.timed_out(order, order.dispatch)
        finally:
            KEEPER.reset(token)
        # Secrets came with the task: none is renewed here, so that every call has an outcome.
        return cast("bytes", body)

    # reporting -----------------------------------------------------------------------------------

    async def _doubt(self, entry: Entry, reason: str) -> None:
        if entry.spec.doubt == "once":
            message = f"nobody knows whether it happened: {reason}"
            await self._report("fail", message=message, retryable=False)
        else:
            log.warning("task %s is in doubt and comes back later: %s", self._task.id, reason)

    async def _reconciled(self, found: EffectReconciled) -> None:
        if found.verdict == "applied":
            await self._report("complete", output=found.result)
        elif found.verdict == "failed":
            message = found.message or "it did not happen"
            await self._report("fail", message=message, retryable=True)
        else:
            log.warning("task %s comes back later: %s", self._task.id, found.message)

    async def _report(self, what: str, **fields: Any) -> None:
        if self._beating is not None:
            self._beating.cancel()  # a beat behind the report would be told that the claim is over
        answer = await self._wire.tell(self._task, what, **fields)
        if answer.status in _LOST:
            if not answer.again:
                self.lost = True
                log.warning("task %s: %s", self._task.id, answer.sentence)
            return
        if answer.status == HTTPStatus.OK:
            self.reported = True
            return
        log.error("the report of task %s was refused: %s", self._task.id, answer.sentence)
        if what == "complete":
            message = f"its output was refused: {answer.sentence}"
            await self._report("fail", message=message, retryable=False)

    # staying alive -------------------------------------------------------------------------------

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            answer = await self._wire.tell(self._task, "heartbeat")
            if answer.status in _LOST:
                self._lose()
                return

    def _lose(self) -> None:
        """Somebody else has the task: what is done about it here is of no use any more."""
        self.lost = True
        if self._own is not None:
            self._own.cancel()

    def save(self, value: Any) -> Awaitable[None]:
        """Keep a checkpoint; on the loop when awaited, on a thread at once."""
        saving = self._save(value)
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            return saving
        asyncio.run_coroutine_threadsafe(saving, self._loop).result()
        return Done()

    async def _save(self, value: Any) -> None:
        body = encode_payload(value, where="checkpoint", limit=limits.CHECKPOINT_BYTES)
        async with self._saving:
            answer = await self._wire.tell(
                self._task, "heartbeat", checkpoint=Raw(body), checkpoint_seq=self._seq
            )
            # Only this claim writes checkpoints: another number means that the first try landed.
            landed = answer.again and answer.code == "work.checkpoint"
            if answer.status == HTTPStatus.OK or landed:
                self._seq += 1
                return
        raise self._refused(answer)

    def _refused(self, answer: Answer) -> RequestError:
        if answer.status in _LOST:
            self._lose()
            return RequestError(
                "work.lost", f"the task was given to somebody else: {self._task.id}"
            )
        return RequestError("request.invalid", f"the checkpoint was refused: {answer.sentence}")


def order_of(task: ClaimedTask, tenant: str) -> Order:
    """A task as the order of a call; its id is the key, the same for every claim of it."""
    resource = (task.context.runtime or {}).get("resource_key")
    return Order(
        key=task.id,
        instance=task.instance_id,
        tenant=tenant,
        node=task.block_id,
        block=task.block_id,
        handler=task.handler_name,
        request=task.params,
        attempt=task.attempt + 1,
        dispatch=task.claim_epoch - 1,
        timeout_ms=task.timeout_ms,
        data=task.context.data,
        config=task.context.config,
        resource=resource or "",
    )


def in_thread(function: Callable[[], bytes | None]) -> asyncio.Future[bytes | None]:
    """Run a function on a thread that no process waits for when it ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bytes | None] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        result = context.run(function)
        with suppress(RuntimeError):  # the loop is closed: the worker has gone
            loop.call_soon_threadsafe(future.set_result, result)

    threading.Thread(target=run, name="detent-call", daemon=True).start()
    return future
