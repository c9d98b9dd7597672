"""A light pool of threads for plain functions, counted from one thread, the dispatcher's loop.

Threads start when there is more to do than threads, and stay. A thread cannot be killed: a call
that outlives its timeout keeps its thread, and another one stands in for it (`lost`), up to a
bound. When the call does end (`found`), one thread too many goes. Beyond the bound the pool
shrinks by each further stuck call. Threads are daemons, so a stuck call never holds up the exit of
the process.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from detent.model.limits import POOL_STUCK, POOL_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

Item = TypeVar("Item")


class Pool(Generic[Item]):
    """Runs `work(item)` on up to `size` threads, each in a copy of the context.

    All methods are for the loop's thread.
    """

    def __init__(
        self,
        work: Callable[[Item], None],
        context: Context,
        size: int = POOL_THREADS,
        spare: int = POOL_STUCK,
    ) -> None:
        self._work = work
        self._context = context
        self._size = size
        self._spare = spare
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._alive = 0
        self._busy = 0
        self._stuck = 0

    @property
    def room(self) -> int:
        """How many calls can run at once, stuck ones not counted."""
        return self._limit() - self._stuck

    @property
    def stuck(self) -> int:
        """How many calls have outlived their timeout and still run."""
        return self._stuck

    def put(self, item: Item) -> None:
        """Hand over one item; it is taken in order."""
        self._busy += 1
        if self._busy + self._stuck > self._alive < self._limit():
            self._start_thread()
        self._queue.put(item)

    def done(self) -> None:
        """An item that was put has ended."""
        self._busy -= 1

    def lost(self) -> None:
        """An item that was put is given up; its thread is stuck in it."""
        self._busy -= 1
        self._stuck += 1
        if self._busy + self._stuck > self._alive < self._limit():
            self._start_thread()

    def found(self) -> None:
        """An item that was given up has ended after all."""
        self._stuck -= 1
        if self._alive > self._limit():
            self._alive -= 1
            self._queue.put(None)

    def close(self, grace_s: float) -> None:
        """Let every thread end that is not stuck, waiting up to the grace time."""
        deadline = time.monotonic() + grace_s
        for _ in range(self._alive):
            self._queue.put(None)
        for thread in self._threads[:]:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _limit(self) -> int:
        return self._size + min(self._stuck, self._spare)

    def _start_thread(self) -> None:
        run = self._context.copy().run
        thread = threading.Thread(target=run, args=(self._run,), name="detent-call", daemon=True)
        self._threads = [old for old in self._threads if old.is_alive()]
        self._threads.append(thread)
        self._alive += 1
        thread.start()

    def _run(self) -> None:
        get, work = self._queue.get, self._work
        while (item := get()) is not None:
            work(item)
            item = None  # what an idle thread holds would never be freed
