"""The bell: whoever waits for work on an event loop is woken when there is some.

No thread is held and no store is asked meanwhile, so thousands may wait. A ring wakes one waiter
for each new item, the one that waits longest first. One that goes away without having looked passes
its ring on, so that none is lost. Listening begins before the store is asked: what is added in
between rings as well. `long_poll` does all of it in order.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from detent.service.work import Polled, PollRequest, Topic


class Ear:
    """One waiter; lives on the loop on which it was made."""

    __slots__ = (
        "_bell",
        "_loop",
        "_rung",
        "barred",
        "deaf",
        "handler",
        "pending",
        "queue",
        "tenant",
        "unheard",
    )

    def __init__(self, bell: WorkBell, handler: str, queue: str | None, tenant: str | None) -> None:
        self.handler = handler
        self.queue = queue
        self.tenant = tenant
        self.deaf = False  # it waits, and nothing is for it
        self.barred: tuple[str, ...] = ()  # tenants of whose items none is for it
        self.pending: Topic | None = None  # rung, and not awake yet
        self.unheard: Topic | None = None  # awake, and has not looked yet
        self._bell = bell
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring; False when none came in time."""
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._rung.wait()
            except TimeoutError:
                return False
        self._rung.clear()
        self.unheard, self.pending = self.pending, None
        return True

    def heard(self) -> None:
        """It has looked after the ring, and nothing is left that others must know of."""
        self.unheard = None

    def take(self, topic: Topic) -> bool:
        """Be rung for an item if it can be the waiter's; under the bell's lock, on any thread."""
        if not self.wants(topic) or self.pending is not None or not self.rouse():
            return False
        self.pending = topic
        return True

    def wants(self, topic: Topic) -> bool:
        """Whether an item of a topic can be the waiter's."""
        _, queue, tenant = topic
        asked = self.queue in (None, queue) and self.tenant in (None, tenant)
        return asked and not self.deaf and tenant not in self.barred

    def rouse(self) -> bool:
        """Wake the waiter, from any thread; False when its loop is closed and nobody waits."""
        try:
            self._loop.call_soon_threadsafe(self._rung.set)
        except RuntimeError:
            return False
        return True

    def __enter__(self) -> Self:
        self._bell.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bell.remove(self)


class WorkBell:
    """Rung by whoever writes work items, from any thread; heard on event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ears: dict[str, dict[Ear, None]] = {}  # by handler, in the order they came
        self._attending: tuple[Callable[[Topic | None], None], ...] = ()

    def listen(self, handler: str, queue: str | None = None, tenant: str | None = None) -> Ear:
        """Hear of items of a handler: of one queue or of any, of one tenant or of all."""
        return Ear(self, handler, queue, tenant)

    async def wait(
        self, handler: str, queue: str | None, tenant: str | None, seconds: float
    ) -> bool:
        """Wait for one ring; False when none came in time."""
        with self.listen(handler, queue, tenant) as ear:
            rung = await ear.wait(seconds)
            ear.heard()
            return rung

    def attend(self, told: Callable[[Topic | None], None]) -> Callable[[], None]:
        """Be told of every item, on any thread, and with None that all look again; how to stop.

        Whoever attends takes no ring from others.
        """
        with self._lock:
            self._attending = (*self._attending, told)

        def stop() -> None:
            with self._lock:
                self._attending = tuple(each for each in self._attending if each is not told)

        return stop

    def rouse(self) -> None:
        """Wake everybody, though there is nothing new: they look once more."""
        for told in self._attending:
            told(None)
        with self._lock:
            for ears in self._ears.values():
                for ear in ears:
                    ear.rouse()

    def ring(self, topics: Iterable[Topic]) -> None:
        """There is one more item of each of these topics."""
        if self._attending:
            topics = list(topics)
            for told in self._attending:
                for topic in topics:
                    told(topic)
        if not self._ears:
            return
        with self._lock:
            for topic in topics:
                for ear in self._ears.get(topic[0], ()):
                    if ear.take(topic):
                        break

    def waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(map(len, self._ears.values()))

    def add(self, ear: Ear) -> None:
        """Let a waiter hear."""
        with self._lock:
            self._ears.setdefault(ear.handler, {})[ear] = None

    def remove(self, ear: Ear) -> None:
        """A waiter goes away; a ring that it did not heed goes to the next."""
        with self._lock:
            ears = self._ears[ear.handler]
            del ears[ear]
            if not ears:
                del self._ears[ear.handler]
        self._pass_on(ear)

    def bar(self, ear: Ear, tenants: tuple[str, ...], *, deaf: bool) -> None:
        """What is not for a waiter, as its last look has shown: such rings go to the next."""
        with self._lock:
            ear.barred, ear.deaf = tenants, deaf
            others = [each for each in (ear.pending, ear.unheard) if each and not ear.wants(each)]
            ear.pending = None if ear.pending in others else ear.pending
            ear.unheard = None if ear.unheard in others else ear.unheard
        self.ring(others)

    def _pass_on(self, ear: Ear) -> None:
        left = [topic for topic in (ear.pending, ear.unheard) if topic is not None]
        ear.pending = ear.unheard = None
        self.ring(left)


async def long_poll(
    bell: WorkBell,
    request: PollRequest,
    ask: Callable[[], Awaitable[Polled]],
    seconds: float,
    now_ms: Callable[[], int],
    over: Callable[[], bool] = lambda: False,
) -> Polled:
    """Ask until there is work or the time is over; in between, sleep until the bell rings.

    `ask` polls the store. An item that is there and not to be had yet wakes this waiter when its
    instant comes, or, if it has gone away by then, the next one. Once it is `over`, nobody waits;
    those who do are to be roused. A worker that is held waits its time out and hears nothing.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    later = False
    with bell.listen(request.handler, request.queue, request.tenant) as ear:
        while True:
            polled = await ask()
            bell.ring(polled.reclaimed)
            bell.bar(ear, polled.barred, deaf=polled.held)
            later = later or polled.next_ms is not None
            if not later:
                ear.heard()
            left = until - loop.time()
            if polled.tasks or left <= 0 or over():
                return polled
            if polled.next_ms is not None:
                left = min(left, max(0.0, (polled.next_ms - now_ms()) / 1000))
            await ear.wait(left)
