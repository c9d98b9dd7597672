"""Running calls: async ones as tasks of the loop, plain ones on the pool, each with its timeout.

A call's lease is looked at right before it begins: in the task's first step, or on the thread. A
thread posts what came and wakes the loop once for all that was posted meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from detent.runtime.dispatch_call import RUNNING, Call, Place
from detent.runtime.dispatch_outcomes import broken, cancelled
from detent.runtime.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

# Unmarked plain calls may wait in the pool's own queue, so that its threads never wait for the
# loop. A marked one is handed over only when a thread is free: after a crash its mark means
# "maybe called", and nobody should have to decide about a call that never began.
_AHEAD = 4
_CALL = "detent-call"


class Runs:
    """The calls that are running.

    `ended(call, body)` is told each end once, also of a call that was given up; a body of None
    says that the call was not made.
    """

    def __init__(
        self,
        place: Place,
        lease_valid: Callable[[], bool],
        threads: int,
        ended: Callable[[Call, bytes | None], None],
        expired: Callable[[Call], None],
    ) -> None:
        self._loop, self._context = place
        self._lease_valid = lease_valid
        self._ended = ended
        self._expired = expired
        self._pool: Pool[Call] = Pool(self._work, place.context, threads)
        self._posted: deque[tuple[Call, bytes | None, bool]] = deque()
        self._gathering = False

    @property
    def stuck(self) -> int:
        """Plain calls that outlived their timeout and still run."""
        return self._pool.stuck

    def plain_rooms(self) -> tuple[int, int]:
        """How many plain calls may be under way for an unmarked, and for a marked one to join."""
        room = self._pool.room
        return room * _AHEAD, room

    def start(self, call: Call) -> None:
        """Make a call."""
        call.state = RUNNING
        call.began = time.monotonic()
        if call.performer.is_async:
            # Without the loop's `create_task`, which would count up a name for each of them.
            call.task = asyncio.Task(self._run(call), loop=self._loop, name=_CALL)
        else:
            call.claim = [None]
            call.started = None
            self._pool.put(call)
        timeout_ms = call.order.timeout_ms
        if timeout_ms is not None:
            self._arm(call, timeout_ms / 1000)

    def give_up(self, call: Call) -> None:
        """Cancel the task; a thread that has begun is left to its function."""
        if call.task is not None:
            call.task.cancel()
        elif not call.claimed():
            self._pool.lost()

    async def close(self, calls: list[Call], deadline: float) -> None:
        """Cancel the tasks that are left and end the threads, as far as time allows."""
        tasks = [call.task for call in calls if call.task is not None and not call.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.1, deadline - time.monotonic()))
        self._pool.close(max(0.1, deadline - time.monotonic()))

    async def _run(self, call: Call) -> None:
        order, dispatch = call.order, call.dispatch
        if not self._lease_valid():
            self._ended(call, None)
            return
        try:
            performing = call.performer.perform(order, dispatch)
            body = await cast("Coroutine[Any, Any, bytes | None]", performing)
        except asyncio.CancelledError:
            if call.state != RUNNING:
                return  # we asked for it, and its outcome is out
            body = cancelled(order, dispatch)  # the handler cancelled its own task
        except Exception as error:  # noqa: BLE001 - a performer does not raise; its call must end
            body = broken(order, dispatch, error)
        self._ended(call, body)

    def _work(self, call: Call) -> None:
        """One plain call, on a thread of the pool."""
        body: bytes | None = None
        begun = self._lease_valid() and call.claimed()
        if begun:
            call.started = time.monotonic()
            try:
                body = cast("bytes | None", call.performer.perform(call.order, call.dispatch))
            except Exception as error:  # noqa: BLE001 - as above
                body = broken(call.order, call.dispatch, error)
        self._posted.append((call, body, begun))
        if not self._gathering:
            self._gathering = True
            try:
                self._loop.call_soon_threadsafe(self._gather, context=self._context)
            except RuntimeError:
                return  # the dispatcher was closed while the function ran

    def _gather(self) -> None:
        """Take what the threads have posted."""
        self._gathering = False  # before looking: what is posted from now on wakes the loop again
        posted = self._posted
        while posted:
            call, body, begun = posted.popleft()
            if call.state == RUNNING or not begun:
                self._pool.done()
            else:
                self._pool.found()
            self._ended(call, body)

    def _arm(self, call: Call, delay_s: float) -> None:
        call.timer = self._loop.call_later(delay_s, self._expire, call, context=self._context)

    def _expire(self, call: Call) -> None:
        if call.task is None:  # a plain call's time runs from when its thread began
            timeout_s = (call.order.timeout_ms or 0) / 1000
            began = call.started
            left = timeout_s if began is None else began + timeout_s - time.monotonic()
            if left > 0:
                self._arm(call, left)
                return
        self._expired(call)
