"""A worker's shift: it polls while it has room, calls handlers, and ends in good order.

Each handler has a poller, since a poll names one handler; all share the room for calls. A poll
claims only what there is room for. Two that are answered at once may claim more than that: a task
too many waits for room, and is kept alive meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from detent.cli.worker_call import TaskCall
from detent.cli.worker_wire import ClaimedTask, Wire
from detent.handlers.registry import Entry

_LAST_POLLS_S = 0.5  # how long polls that are about to be answered are waited for


class Tally(Struct):
    """What became of the tasks of a shift."""

    reported: int = 0
    lost: int = 0
    left: int = 0  # came to no report here; others get them when their claims are over


class Shift:
    """Everything one worker does between its start and its end."""

    def __init__(
        self, wire: Wire, entries: Sequence[Entry], concurrency: int, tenant: str = ""
    ) -> None:
        self._wire = wire
        self._entries = entries
        self._most = concurrency
        self._tenant = tenant
        self._slots = asyncio.Semaphore(concurrency)
        self._room = asyncio.Event()
        self._room.set()
        self._calls: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.tally = Tally()

    async def work(self, stop: asyncio.Event, hurry: asyncio.Event, grace_s: float) -> None:
        """Work until told to stop; then end what runs, for as long as the grace allows."""
        pollers = [asyncio.create_task(self._poll(entry)) for entry in self._entries]
        told = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*pollers, told], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stopping = True
            await _ended([*pollers, told], _LAST_POLLS_S)
            await self._end_calls(hurry, grace_s)
        for poller in pollers:
            if not poller.cancelled():
                poller.result()  # a refusal by the server is told to whoever started the worker

    async def _poll(self, entry: Entry) -> None:
        while not self._stopping:
            await self._room.wait()
            share = (self._most - len(self._calls)) // len(self._entries)
            tasks, lease_ms = await self._wire.poll(entry.spec.name, max(1, share))
            for task in tasks:
                self._begin(entry, task, lease_ms)

    def _begin(self, entry: Entry, task: ClaimedTask, lease_ms: int) -> None:
        call = TaskCall(self._wire, task, lease_ms, self._tenant)
        running = asyncio.create_task(call.run(entry, self._slots))
        self._calls.add(running)
        running.add_done_callback(lambda ended: self._ended(ended, call))
        self._look_for_room()

    def _ended(self, running: asyncio.Task[None], call: TaskCall) -> None:
        self._calls.discard(running)
        self._look_for_room()
        self.tally.reported += call.reported
        self.tally.lost += call.lost
        self.tally.left += not (call.reported or call.lost)
        if not running.cancelled():
            running.result()  # a fault of ours is told by the loop

    def _look_for_room(self) -> None:
        if len(self._calls) < self._most:
            self._room.set()
        else:
            self._room.clear()

    async def _end_calls(self, hurry: asyncio.Event, grace_s: float) -> None:
        hurried = asyncio.create_task(hurry.wait())
        calls = asyncio.ensure_future(asyncio.wait(self._calls)) if self._calls else None
        if calls is not None:
            await asyncio.wait(
                (calls, hurried), timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
            )
            calls.cancel()
        hurried.cancel()
        await _ended(list(self._calls), 0)


async def _ended(tasks: Sequence[asyncio.Task[object]], seconds: float) -> None:
    """Wait for tasks, and cancel those that are not done by then."""
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for each in late:
        each.cancel()
    if late:
        await asyncio.wait(late, timeout=_LAST_POLLS_S)
