"""One call on its way, and the lanes in which calls wait for room."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from contextvars import Context

    from detent.model.decision import Order
    from detent.model.link import Submission
    from detent.runtime.dispatch_port import Performer

# Life of a call: queued -> (marking ->) ready -> running -> ended; each of them -> ended.
QUEUED: Final = 0
MARKING: Final = 1  # its start mark is asked for
READY: Final = 2  # may be called as soon as nothing holds
RUNNING: Final = 3
ENDED: Final = 4  # its outcome is out; what the function still says comes late


_NO_CLAIM: list[None] = []  # of every call that is no plain one, or has not been handed over


class Place(NamedTuple):
    """The loop of a dispatcher, and the context in which all its calls begin."""

    loop: asyncio.AbstractEventLoop
    context: Context


class Call:
    """An order and where it stands; belongs to the loop, but for `claim` and `started`."""

    __slots__ = (
        "batch",
        "began",
        "claim",
        "dispatch",
        "lane",
        "left",
        "order",
        "performer",
        "recalled",
        "started",
        "state",
        "task",
        "timer",
    )

    def __init__(self, order: Order, performer: Performer, lane: Lane, batch: Batch | None) -> None:
        self.order = order
        self.performer = performer
        self.lane = lane
        self.batch = batch
        self.dispatch = order.dispatch
        self.state = QUEUED
        self.recalled = False
        self.left = False  # its partition went to another writer while it was about to begin
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.began = 0.0  # when the dispatcher let it begin
        self.started: float | None = None
        self.claim: list[None] = _NO_CLAIM

    def claimed(self) -> bool:
        """Take the right to begin or drop a plain call; one side only, thread or loop, gets it."""
        try:
            self.claim.pop()
        except IndexError:
            return False
        return True


class Lane:
    """Calls of one kind: those waiting, in order, and how many are under way."""

    __slots__ = ("rooms", "under_way", "waiting")

    def __init__(self, rooms: Callable[[], tuple[int, int]]) -> None:
        self.rooms = rooms  # for how many there is room: when the next one is unmarked, and marked
        self.waiting: deque[Call] = deque()
        self.under_way = 0


class Batch:
    """The calls of one turn in virtual time, performed together while the caller waits."""

    __slots__ = ("done", "open", "outcomes")

    def __init__(self) -> None:
        self.open = 0
        self.outcomes: list[tuple[str, Submission]] = []
        self.done = threading.Event()

    def end_one(self, key: str, outcome: Submission) -> None:
        """Keep an outcome; the last one releases the caller."""
        self.outcomes.append((key, outcome))
        self.open -= 1
        if not self.open:
            self.done.set()
