"""The dispatcher: performs the orders of committed turns and brings the outcomes back.

It has one asyncio loop in a thread of its own. Async handlers are tasks of that loop, plain
functions run on a pool of threads. Whatever comes from other threads is left in a queue and the
loop is woken once for all of it; everything else happens on the loop (`dispatch_calls`), without
locks. Outcomes go to the writer once per round of the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from detent.model.errors import RequestError
from detent.model.figures import Times
from detent.model.limits import CLOSE_GRACE_MS, IN_FLIGHT, POOL_THREADS
from detent.runtime.dispatch_call import Batch, Place
from detent.runtime.dispatch_calls import Calls, Doors, Item
from detent.runtime.dispatch_guard import guard_reentrant, inside_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from detent.model.decision import Order
    from detent.model.link import Decided, Submission
    from detent.runtime.dispatch_port import Performers

_LAST_WORDS_S = 2.0


def _always() -> bool:
    return True


class Dispatcher:
    """Performs orders; every method may be called from any thread but the handlers' own."""

    def __init__(
        self,
        performers: Performers,
        submit: Callable[[Sequence[Item]], None],
        *,
        lease_valid: Callable[[], bool] = _always,
        partitions: int = 1,
        max_in_flight: int = IN_FLIGHT,
        threads: int = POOL_THREADS,
    ) -> None:
        """`submit` hands items to the writer; `lease_valid` is asked right before each call."""
        self._loop = asyncio.new_event_loop()
        self._context = copy_context()
        self._context.run(inside_handler.set, True)
        place = Place(self._loop, self._context)
        doors = Doors(performers, submit, lease_valid, partitions)
        self.lease_until_ms = 0  # set behind what the writer dropped, so that none of it may start
        self._calls = Calls(place, doors, max_in_flight, threads)
        serve = self._context.copy().run
        self._thread = threading.Thread(
            target=serve, args=(self._serve,), name="detent-dispatch", daemon=True
        )
        self._arrived: deque[Decided] = deque()
        self._woken = False
        self._virtual = False
        self._closed = False

    def start(self) -> None:
        """Start the loop's thread."""
        self._thread.start()

    def take(self, decided: Decided) -> None:
        """Take what a turn decided: orders, marks won and lost, recalls, hold."""
        self._arrived.append(decided)
        if not self._woken:
            self._woken = True
            self._wake(self._drain)

    def handlers_changed(self) -> None:
        """A handler was registered: look at the parked orders again."""
        if not self._virtual:  # there the next `perform` does
            self._wake(self._unpark)

    def perform(
        self, orders: Sequence[Order], won: Mapping[str, int] | None = None
    ) -> list[Submission]:
        """Perform the orders of one turn to their end; outcomes in the order of their keys.

        For virtual time: the caller has won the marks, and `won` has their dispatch numbers.
        Orders of handlers that are not registered stay parked and are tried by a later call.
        """
        guard_reentrant("perform")
        self._virtual = True
        batch = Batch()
        if not self._wake(self._enter, batch, orders, won or {}):
            raise RequestError("engine.closed", "the engine is closed; open it again")
        batch.done.wait()
        return [outcome for _key, outcome in sorted(batch.outcomes, key=lambda pair: pair[0])]

    def parked(self) -> dict[str, int]:
        """How many orders wait for a handler to be registered, by its name."""
        return self._calls.parking.counts()

    def counts(self) -> dict[str, int]:
        """Calls `under_way`, `waiting` for room, and `stuck` beyond their timeout."""
        return self._calls.counts()

    @property
    def times(self) -> Times:
        """How long calls took, from their beginning to their outcome."""
        return self._calls.times

    def close(self, grace_ms: int = CLOSE_GRACE_MS) -> None:
        """Start nothing more, let running calls end within the grace time, cancel the rest.

        Calls that did not end have no outcome: their start marks stay, and the next start of the
        engine treats them as in doubt. Orders that were not called are ordered again then.
        """
        if self._closed:
            return
        self._closed = True
        if not self._thread.is_alive():
            self._loop.close()
            return
        closing = self._calls.close(grace_ms / 1000)
        ended = asyncio.run_coroutine_threadsafe(closing, self._loop)
        try:
            ended.result(grace_ms / 1000 + _LAST_WORDS_S)
        except TimeoutError:
            return  # a handler blocks the loop itself; its thread is a daemon
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LAST_WORDS_S)

    def _wake(self, callback: Callable[..., None], *args: Any) -> bool:
        """Have the loop call this; False when there is no loop any more."""
        if self._closed:
            return False
        try:
            self._loop.call_soon_threadsafe(callback, *args, context=self._context)
        except RuntimeError:
            return False  # closed in between
        return True

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _drain(self) -> None:
        self._woken = False  # before looking: what arrives from now on wakes the loop again
        calls, arrived = self._calls, self._arrived
        while arrived:
            decided = arrived.popleft()
            calls.hold(decided.held)
            if decided.dropped:
                calls.pump()
                calls.drop(decided.dropped)
            if decided.lease_until_ms not in (0, self.lease_until_ms):
                calls.renew()
                self.lease_until_ms = decided.lease_until_ms
            calls.take(decided.orders)
            for key in decided.recalled:
                calls.recall(key)
            for key in decided.lost:
                calls.lost(key)
            for key, dispatch in decided.marked:
                calls.won(key, dispatch)
            if decided.taken:
                calls.taken(decided.taken)
        calls.pump()

    def _unpark(self) -> None:
        self._calls.unpark()
        self._calls.pump()

    def _enter(self, batch: Batch, orders: Sequence[Order], won: Mapping[str, int]) -> None:
        self._calls.unpark(batch)
        for order in orders:
            self._calls.accept(order, batch, won.get(order.key, 0))
        self._calls.pump()
        if not batch.open or self._closed:
            batch.done.set()
