"""`EngineDesk`: the engine as a server's event loop sees it; nothing here blocks the loop.

Reads run on a few threads, each with a connection of its own. Catalogue writes share one thread,
since a file has one writer at a time anyway. Answers of the writer come back to the loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from detent.bootstrap.callers import raise_refusal
from detent.bootstrap.stores import open_reader
from detent.model import limits
from detent.model.errors import DetentError, RequestError
from detent.model.figures import Times
from detent.model.ids import partition_of
from detent.model.link import Control
from detent.service.bell import long_poll
from detent.service.desk import Statistics

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.bootstrap.engine import Engine
    from detent.model.decision import HandlerSpec, Verdict
    from detent.model.link import Submission
    from detent.ports.store import NewArrival, Store
    from detent.service.desk import WorkDoor
    from detent.service.starting import Moment
    from detent.service.vault import Safe
    from detent.service.work import Polled, PollRequest

T = TypeVar("T")

READERS = 4
VERBS = 4
_STATUS_S = 2.0


class EngineDesk:
    """A desk over the parts of an open engine."""

    def __init__(self, engine: Engine, readers: int = READERS) -> None:
        self._engine = engine
        self._parts: Parts = engine._parts  # noqa: SLF001 - of the same layer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hushed = False
        self._own = threading.local()
        self._open: list[Store] = []
        self._readers = ThreadPoolExecutor(readers, "detent-read")
        self._writer = ThreadPoolExecutor(1, "detent-write")
        self._verbs = ThreadPoolExecutor(VERBS, "detent-verb")

    # time and names ------------------------------------------------------------------------------

    def moment(self) -> Moment:
        """Now, with a fresh id and a seed."""
        return self._parts.moment()

    def fresh_id(self) -> str:
        """A new id, ordered by time."""
        return self._parts.fresh_id()

    def now_ms(self) -> int:
        """Logical now as Unix milliseconds."""
        moment = self._parts.moment()
        return moment.epoch_ms + moment.tick * moment.resolution_ms

    def wall_ms(self) -> int:
        """Now by the wall as Unix milliseconds: what expires or was signed goes by it."""
        return self._parts.now_ms()

    def safe(self) -> Safe:
        """What secrets are kept with."""
        return self._parts.safe

    def handlers(self) -> Mapping[str, HandlerSpec]:
        """The handlers of this process."""
        return self._parts.registry.specs()

    def workers(self) -> bool:
        """Whether steps of unknown handlers wait for external workers."""
        return self._parts.settings.workers

    def here(self) -> tuple[str, int]:
        """The host and the process id of this node."""
        return socket.gethostname(), os.getpid()

    def held(self) -> str:
        """Why the writer holds, as an error code; empty while it works."""
        return self._parts.held

    def under_way(self) -> dict[Any, list[str]]:
        """What the servers of this engine are answering now under a caller's key."""
        return self._parts.answering

    def partition(self, instance: str) -> int:
        """The partition an instance belongs to."""
        return partition_of(instance, self._parts.meta.partitions)

    def salt(self) -> bytes:
        """Sixteen random bytes for a new instance."""
        return self._parts.chance(16)

    # reading and writing -------------------------------------------------------------------------

    def look(self, use: Callable[[Any], T]) -> Awaitable[T]:
        """Read, on a connection of a reader's thread."""
        return self._here().run_in_executor(self._readers, partial(self._read, use))

    def write(self, use: Callable[[Any], T]) -> Awaitable[T]:
        """Write rows of the catalogue, one caller at a time."""
        return self._here().run_in_executor(self._writer, partial(self._parts.write, use))

    def verb(self, use: Callable[[Any], T]) -> Awaitable[T]:
        """Use a blocking verb, on a thread of its own; for configuration only."""
        return self._here().run_in_executor(self._verbs, partial(use, self._engine))

    async def ask(self, make: Callable[[int], Submission]) -> Verdict:
        """Submit, and wait for the verdict; a refusal is raised."""
        return raise_refusal((await self.ask_all([make]))[0])

    async def ask_all(self, makes: Sequence[Callable[[int], Submission]]) -> list[Verdict]:
        """Submit many at once, and wait for all the verdicts; a refusal is one of them."""
        waiting = [self._parts.callers.expect() for _ in makes]
        try:
            self._parts.submit(*(make(ack) for make, (ack, _) in zip(makes, waiting, strict=True)))
            answers = asyncio.gather(*(asyncio.wrap_future(each) for _, each in waiting))
            return await asyncio.wait_for(answers, limits.ASK_TIMEOUT_MS / 1000)
        except TimeoutError:
            raise RequestError(
                "request.timeout",
                f"no answer within {limits.ASK_TIMEOUT_MS // 1000} s; ask again with the same id",
            ) from None
        finally:
            for ack, _ in waiting:
                self._parts.callers.forget(ack)

    async def leave(self, arrivals: Sequence[NewArrival]) -> None:
        """Leave arrivals, all or none, and wake the writer."""
        tick = self._parts.moment().tick
        await self.write(lambda store: store.enqueue(arrivals, tick))
        self._parts.submit(Control("wake"))

    # external workers ----------------------------------------------------------------------------

    async def poll_work(self, request: PollRequest, seconds: float) -> Polled:
        """Claim tasks; while there is none, sleep until the bell rings or the time is over."""
        room = self._parts.work

        def ask() -> Awaitable[Polled]:
            return self._here().run_in_executor(self._writer, partial(room.poll, request))

        now_ms = room.now_ms
        return await long_poll(room.bell, request, ask, seconds, now_ms, lambda: self._hushed)

    def rouse(self) -> None:
        """Who may have which task has changed: let everybody who waits for one look again."""
        self._parts.work.bell.rouse()

    def work(self, use: Callable[[WorkDoor], T]) -> Awaitable[T]:
        """Keep or report a task, one caller at a time."""
        return self._here().run_in_executor(self._writer, partial(use, self._parts.work))

    # watching ------------------------------------------------------------------------------------

    def watch(self, instance: str, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told on the loop whenever an instance moved; call what comes back to stop.

        What happens before the loop gets round to it is told once, with the first state.
        """
        return self._parts.watch.listen(instance, _Relay(self._here(), told))

    def listen(self, instance: str, told: Callable[[str, str], None]) -> Callable[[], None]:
        """Be told on the loop what language models write for an instance: block and text."""
        loop = self._here()

        def relay(block: str, text: str) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(told, block, text)

        return self._parts.deltas.listen(instance, relay)

    async def statistics(self) -> Statistics:
        """Counters and levels of the running engine, for metrics."""
        parts = self._parts
        calling = parts._dispatcher  # noqa: SLF001 - of the same layer
        return Statistics(
            counts=dict(parts.figures),
            calls=Times("call") if calling is None else calling.times,
            **({} if calling is None else calling.counts()),
            parked=sum(parts.parked().values()),
            queued=await self._queued(),
        )

    async def _queued(self) -> int | None:
        """How much waits for the next turn; None when the writer does not say so at once."""
        ack, future = self._parts.callers.expect()
        try:
            self._parts.submit(Control("status", ack))
            verdict = await asyncio.wait_for(asyncio.wrap_future(future), _STATUS_S)
        except (TimeoutError, DetentError):
            return None
        finally:
            self._parts.callers.forget(ack)
        return int(verdict.result["queued"]) if verdict.ok else None

    # closing -------------------------------------------------------------------------------------

    def hush(self) -> None:
        """Let everybody who waits go, so that their requests can be answered."""
        self._hushed = True
        self._parts.work.bell.rouse()

    def close(self) -> None:
        """Let running reads end, and close their connections."""
        self._readers.shutdown(wait=True)
        self._writer.shutdown(wait=True)
        self._verbs.shutdown(wait=True)
        for store in self._open:
            store.close()

    def _here(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _read(self, use: Callable[[Any], T]) -> T:
        store = getattr(self._own, "store", None)
        if store is None:
            store = self._own.store = open_reader(self._parts.settings.path)
            self._open.append(store)
        return use(store)


class _Relay:
    """Brings news from the writer's thread to a loop, without filling its queue."""

    __slots__ = ("_loop", "_on_its_way", "_told")

    def __init__(self, loop: asyncio.AbstractEventLoop, told: Callable[[str], None]) -> None:
        self._loop = loop
        self._told = told
        self._on_its_way = False

    def __call__(self, state: str) -> None:
        if self._on_its_way:
            return
        self._on_its_way = True
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._arrive, state)

    def _arrive(self, state: str) -> None:
        self._on_its_way = False
        self._told(state)
