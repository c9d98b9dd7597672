"""The calls of a dispatcher: which may start, and what becomes of each. All of it on the loop.

An order is queued in its lane (async or plain). When the lane has room, an order that needs a start
mark asks for it; the others, and those whose mark was won, start while nothing holds and the lease
is valid. A call ends once: by its outcome, its timeout or its recall. What its function says after
that is submitted too, and settles nothing that is settled.

An outcome carries a receipt, and is remembered until that comes back. So when a new writer orders
again what it finds open, those calls that are here, or whose outcome is on its way, are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from detent.model.errors import DetentError
from detent.model.figures import Times
from detent.model.ids import partition_of
from detent.model.link import Control, MarkRequest, Submission
from detent.runtime.dispatch_call import (
    ENDED,
    MARKING,
    QUEUED,
    READY,
    RUNNING,
    Batch,
    Call,
    Lane,
    Place,
)
from detent.runtime.dispatch_outcomes import cancelled, lapsed, not_called
from detent.runtime.dispatch_parking import Parking
from detent.runtime.dispatch_runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from detent.model.decision import Order
    from detent.runtime.dispatch_port import Performers

Item = Submission | MarkRequest | Control
_Name = tuple[str, int, str]  # effect key, try, mode

_LEASE_LOOK_S = 0.05


class Doors(NamedTuple):
    """What a dispatcher reaches: handlers, the writer, and whether its lease is valid."""

    performers: Performers
    submit: Callable[[Sequence[Item]], None]
    lease_valid: Callable[[], bool]
    partitions: int


class Calls:
    """Every call between its order and its outcome."""

    def __init__(self, place: Place, doors: Doors, in_flight: int, threads: int) -> None:
        self._loop, self._context = place
        self._performer = doors.performers.performer
        self._submit = doors.submit
        self._lease_valid = doors.lease_valid
        self._partitions = doors.partitions
        self._runs = Runs(place, doors.lease_valid, threads, self._ended, self._expired)
        self._async = Lane(lambda: (in_flight, in_flight))
        self._plain = Lane(self._runs.plain_rooms)
        self._live: dict[str, Call] = {}
        self._ready: deque[Call] = deque()
        self.parking = Parking()
        self._outcomes: list[Submission] = []
        self._begun: list[Call] = []  # limited calls of which nobody was told that they have begun
        self._receipt = 0  # of the last outcome; they count downwards
        self._told: dict[int, _Name] = {}  # outcomes whose receipt is not back
        self._flushing = False
        self._looking = False
        self._held = ""
        self._drained: asyncio.Event | None = None  # there once the dispatcher closes
        self.times = Times("call")

    def take(self, orders: Sequence[Order]) -> None:
        """Queue orders, but for those sent again that are here or were performed."""
        told: frozenset[_Name] | None = None
        for order in orders:
            if order.again:
                if told is None:
                    told = frozenset(self._told.values())
                call = self._live.get(order.key)
                name = _name_of(order)
                if name in told or (call is not None and _name_of(call.order) == name):
                    continue
            self.accept(order)

    def accept(self, order: Order, batch: Batch | None = None, dispatch: int = 0) -> None:
        """Queue an order; one whose handler is not registered is parked until it is.

        In virtual time it comes with a batch, and with the dispatch number of the mark it has won.
        """
        performer = self._performer(order.handler, order.mode)
        if performer is None:
            self.parking.add(order)
            return
        older = self._live.get(order.key)
        if older is not None:
            self._give_up(older, None)  # the kernel has planned again and waits for this one
        lane = self._async if performer.is_async else self._plain
        call = self._live[order.key] = Call(order, performer, lane, batch)
        call.dispatch = dispatch or order.dispatch
        if batch is not None:
            batch.open += 1
        lane.waiting.append(call)

    def won(self, key: str, dispatch: int) -> None:
        """The start mark of a call is durable."""
        call = self._live.get(key)
        if call is None or call.state != MARKING:
            return
        call.dispatch = dispatch
        if call.recalled:
            self._end(call, not_called(call.order, dispatch))
            return
        call.state = READY
        self._ready.append(call)

    def lost(self, key: str) -> None:
        """The start mark was not won: the effect was withdrawn, or somebody else calls."""
        call = self._live.get(key)
        if call is not None and call.state == MARKING:
            self._end(call, None)

    def recall(self, key: str) -> None:
        """The node of a call was cancelled: stop what can be stopped."""
        call = self._live.get(key)
        if call is None:
            order = self.parking.remove(key)
            if order is not None and not order.marked:
                self._tell(order, cancelled(order, order.dispatch))
        elif call.state == QUEUED:  # a marked one was withdrawn by the very commit that recalls it
            order = call.order
            self._end(call, None if order.marked else cancelled(order, order.dispatch))
        elif call.state == MARKING:
            call.recalled = True
        elif call.state == READY:
            outcome = not_called if call.order.marked else cancelled
            self._end(call, outcome(call.order, call.dispatch))
        elif call.task is not None:
            self._give_up(call, cancelled(call.order, call.dispatch))
        elif call.claimed():
            self._end(call, not_called(call.order, call.dispatch))
        # else a plain function is running: it ends by itself and tells its real outcome

    def drop(self, partitions: Sequence[int]) -> None:
        """These went to another writer: what was not begun is its to call.

        Of a call that has its mark and was not made, the writer is told so in doubt: our lease may
        have been over, and then the new owner has seen the mark and decided about it.
        """
        gone = frozenset(partitions)
        for call in list(self._live.values()):
            order = call.order
            if partition_of(order.instance, self._partitions) not in gone:
                continue
            if call.state == QUEUED:
                self._end(call, None)
            elif call.state == READY:
                self._let_lapse(call)
            elif call.state == RUNNING:
                call.left = True  # if it finds its lease over before it begins, it does not
        for order in self.parking.take_all():
            if partition_of(order.instance, self._partitions) not in gone:
                self.parking.add(order)
        self.renew()

    def renew(self) -> None:
        """Before the lease is known to go on: was it over meanwhile, so that others decided?"""
        if self._lease_valid():
            return
        for call in [call for call in self._live.values() if call.left]:
            if call.task is None and call.claimed():
                self._let_lapse(call)

    def taken(self, receipts: Sequence[int]) -> None:
        """These outcomes need not be remembered any more."""
        for receipt in receipts:
            self._told.pop(receipt, None)

    def hold(self, code: str) -> None:
        """While the writer holds nothing starts and outcomes are kept."""
        if self._held and not code:
            self._flush_soon()
        self._held = code

    def unpark(self, batch: Batch | None = None) -> None:
        """Queue the parked orders whose handler is registered now."""
        for order in self.parking.take_all():
            self.accept(order, batch)

    def counts(self) -> dict[str, int]:
        """Calls under way, waiting in order, and plain ones stuck beyond their timeout."""
        return {
            "under_way": self._async.under_way + self._plain.under_way,
            "waiting": len(self._async.waiting) + len(self._plain.waiting),
            "stuck": self._runs.stuck,
        }

    def pump(self) -> None:
        """Start what may start."""
        if self._held or self._drained is not None:
            return
        if not self._lease_valid():
            self._look_again()
            return
        ready = self._ready
        while ready:
            call = ready.popleft()
            if call.state == READY:
                self._start(call)
        marks = [*self._admit(self._async), *self._admit(self._plain)]
        keys = [order.key for order in marks]
        if keys and not self._hand_over([MarkRequest(keys, [order.instance for order in marks])]):
            for key in keys:
                self.lost(key)  # the writer is gone; its successor orders them again

    async def close(self, grace_s: float) -> None:
        """Start nothing more, wait for running calls up to the grace time, then let go."""
        deadline = time.monotonic() + grace_s
        drained = self._drained = asyncio.Event()
        self._held = ""
        self._flush()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drained.wait(), grace_s)
        left = list(self._live.values())
        for call in left:
            call.state = ENDED  # no outcome: a start mark stays and tells the next start
            if call.batch is not None:
                call.batch.done.set()
        await self._runs.close(left, deadline)

    def _admit(self, lane: Lane) -> list[Order]:
        """Start the calls a lane has room for; those that need a mark first."""
        marks: list[Order] = []
        waiting, start = lane.waiting, self._start
        if not waiting:
            return marks
        rooms = lane.rooms()  # what is started here does not change them
        while waiting and lane.under_way < rooms[waiting[0].order.marked]:
            call = waiting.popleft()
            if call.state != QUEUED:
                continue
            lane.under_way += 1
            if call.order.marked and call.batch is None:
                call.state = MARKING
                marks.append(call.order)
            else:
                start(call)
        return marks

    def _start(self, call: Call) -> None:
        self._runs.start(call)
        if call.order.ticket and call.batch is None:
            self._begun.append(call)
            self._flush_soon()

    def _tell_begun(self) -> None:
        """Limits count a call from its beginning; one that has ended is told by its outcome."""
        begun: list[tuple[str, str]] = []
        later: list[Call] = []
        for call in self._begun:
            if call.state != RUNNING:
                continue
            if call.task is None and call.started is None:  # it waits for a thread
                later.append(call)
            else:
                begun.append((call.order.tenant, call.order.ticket))
        self._begun = later
        if begun:
            self._hand_over([Control("begun", args=begun)])
        if later:
            self._look_again()

    def _ended(self, call: Call, body: bytes | None) -> None:
        """A function has ended, or was not called because the lease ran out."""
        if call.state != RUNNING:
            # Late. In virtual time it would depend on the machine's speed whether it comes.
            if body is not None and call.batch is None and self._drained is None:
                self._tell(call.order, body)
        elif body is None and call.left:
            self._let_lapse(call)
        elif body is None:
            call.state = READY
            call.task = None
            call.claim.clear()
            _disarm(call)
            self._ready.append(call)
            self._look_again()
        else:
            self.times.note(int((time.monotonic() - call.began) * 1_000_000))
            self._end(call, body)

    def _expired(self, call: Call) -> None:
        self._give_up(call, call.performer.timed_out(call.order, call.dispatch))

    def _give_up(self, call: Call, body: bytes | None) -> None:
        """End a call whatever its function is doing."""
        if call.state == RUNNING:
            self._runs.give_up(call)
        self._end(call, body)

    def _end(self, call: Call, body: bytes | None) -> None:
        """Take a call off the books, with its outcome if there is one to tell."""
        order = call.order
        if call.state != QUEUED:
            call.lane.under_way -= 1
        call.state = ENDED
        if call.timer is not None:
            _disarm(call)
        if self._live.get(order.key) is call:
            del self._live[order.key]
        if body is None:
            self._flush_soon()
        elif call.batch is not None:
            call.batch.end_one(order.key, Submission(order.instance, body))
            self._flush_soon()
        else:
            self._tell(order, body)

    def _let_lapse(self, call: Call) -> None:
        """End a call that is another writer's to make, or to decide about if it has its mark."""
        order = call.order
        self._end(call, lapsed(order, call.dispatch) if order.marked else None)

    def _tell(self, order: Order, body: bytes) -> None:
        self._receipt -= 1
        self._told[self._receipt] = _name_of(order)
        self._outcomes.append(Submission(order.instance, body, self._receipt))
        if not self._flushing:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush, context=self._context)

    def _flush(self) -> None:
        """Once per round of the loop: hand over the outcomes of all calls that ended in it."""
        self._flushing = False
        if self._outcomes and not self._held and self._hand_over(self._outcomes):
            self._outcomes = []
        if self._begun:
            self._tell_begun()
        if self._drained is None:
            self.pump()
        elif not any(call.state == RUNNING for call in self._live.values()):
            self._drained.set()

    def _hand_over(self, items: Sequence[Item]) -> bool:
        try:
            self._submit(items)
        except DetentError:
            return False  # the writer is gone
        return True

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self._loop.call_later(_LEASE_LOOK_S, self._look, context=self._context)

    def _look(self) -> None:
        self._looking = False
        self._flush()


def _name_of(order: Order) -> _Name:
    """What tells one try of an effect from another."""
    return order.key, order.dispatch, order.mode


def _disarm(call: Call) -> None:
    if call.timer is not None:
        call.timer.cancel()
        call.timer = None
