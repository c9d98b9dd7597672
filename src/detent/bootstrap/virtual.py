"""Virtual time: turns are taken inline, the clock moves only when nothing is left to do.

`settle` repeats: a turn, the calls it ordered (performed together, outcomes in the order of their
keys), and what other instances were told meanwhile in the order of their ids; so equal seeds give
equal bytes. `run_until_idle` then moves the clock to the next due tick in one move.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from detent.model.decision import Order, Verdict
from detent.model.errors import RequestError
from detent.model.link import Control, Decided, MarkRequest, Submission, Submit
from detent.runtime.clock import VirtualClock
from detent.runtime.dispatch_outcomes import cancelled
from detent.runtime.dispatch_port import Performers
from detent.runtime.writer import Writer
from detent.service.arguments import instant_ms, span_ms


class Performs(Protocol):
    """The part of the dispatcher that virtual time needs."""

    def perform(self, orders: Sequence[Order], won: Mapping[str, int]) -> list[Submission]:
        """Perform orders to their end, with the start marks won for them."""

    def close(self, grace_ms: int = ...) -> None:
        """Stop."""


class Claims(Protocol):
    """What is held by external workers; its leases end by the clock, without any input."""

    def due_tick(self) -> int | None:
        """The tick at which the first lease is over."""

    def reap(self) -> int | None:
        """Deal with those that are over."""


class VirtualDriver:
    """Drives one writer; used by one thread."""

    def __init__(
        self,
        writer: Writer,
        clock: VirtualClock,
        dispatcher: Performs,
        hears: tuple[Callable[[Decided], None], Claims],
        performers: Performers,
    ) -> None:
        """`hears` are told what a turn decided, and asked about the claims of workers."""
        self._writer = writer
        self._clock = clock
        self._dispatcher = dispatcher
        self._decided, self._claims = hears
        self._performers = performers
        self._orders: list[Order] = []
        self._parked: dict[str, Order] = {}  # of handlers that nobody has registered; not marked
        self._told: list[Submission] = []

    def open(self) -> None:
        """Own the store and recover."""
        self._take(self._writer.open())

    def handlers_changed(self) -> None:
        """A handler was registered: the next settle looks at the parked orders again."""
        parked, self._parked = self._parked, {}
        self._orders = [*parked.values(), *self._orders]

    def parked(self) -> dict[str, int]:
        """How many orders wait for a handler to be registered, by its name."""
        return dict(sorted(Counter(order.handler for order in self._parked.values()).items()))

    def tick(self) -> int:
        """The tick the clock stands at."""
        return self._clock.tick()

    def submit(self, items: Sequence[Any]) -> None:
        """Queue items for the next turn."""
        self._writer.submit(_batch(items))

    def tell(self, submission: Submission) -> None:
        """From a handler that is being performed: taken in when the calls of this turn are done."""
        self._told.append(submission)

    def settle_until(self, future: Future[Verdict]) -> None:
        """Take turns until an answer is there; orders wait for the next settle."""
        while not future.done():
            decided = self._writer.turn()
            if decided is None:
                return
            self._take(decided)

    def settle(self) -> None:
        """Do everything that can be done at this tick."""
        while True:
            self._turns()
            orders = self._performable()
            if not orders:
                return
            won = self._mark(orders)
            orders = [order for order in orders if not order.marked or order.key in won]
            outcomes = self._dispatcher.perform(orders, won)
            told, self._told = sorted(self._told, key=lambda each: each.id), []
            self.submit([*outcomes, *told])

    def run_until_idle(self, enough: Callable[[], bool] = lambda: False) -> int:
        """Settle, move to the next due tick, and so on until nothing is due, or it is enough.

        A schedule has a next fire for ever: time moves on only while somebody else waits for it.
        Nor does it move on for a task that a worker holds, but passing its lease ends the claim.
        """
        while True:
            self.settle()
            due = self._writer.next_due()
            if due is None or enough() or not self._writer.any_due():
                return self.tick()
            self._move_on(due)

    def advance(self, by: dt.timedelta | int | None, to: dt.datetime | int | None) -> int:
        """Move to an instant, settling at every due tick on the way."""
        target = self._target(by, to)
        while True:
            self.settle()
            dues = (self._writer.next_due(), self._claims.due_tick())
            due = min((each for each in dues if each is not None), default=None)
            if due is None or due > target:
                break
            self._move_on(due)
        self._move(target)
        self.settle()
        return self.tick()

    def close(self) -> None:
        """Release the store."""
        self._writer.close()

    def _turns(self) -> None:
        while True:
            decided = self._writer.turn()
            if decided is None:
                return
            self._take(decided)

    def _performable(self) -> list[Order]:
        """The orders whose handler is here; the others are parked before they are marked."""
        orders, self._orders = self._orders, []
        ready: list[Order] = []
        for order in orders:
            if self._performers.performer(order.handler, order.mode) is None:
                self._parked[order.key] = order
            else:
                ready.append(order)
        return ready

    def _take(self, decided: Decided) -> None:
        self._orders += decided.orders
        if decided.recalled:
            self._recall(dict.fromkeys(decided.recalled))
        self._decided(decided)

    def _recall(self, keys: dict[str, None]) -> None:
        """Marked orders were withdrawn by the commit that recalls them; others are performed."""
        self._orders = [each for each in self._orders if each.key not in keys or not each.marked]
        for key in keys:
            order = self._parked.pop(key, None)
            if order is not None and not order.marked:  # nobody may ever perform it
                outcome = cancelled(order, order.dispatch)
                self.submit([Submission(order.instance, outcome)])

    def _mark(self, orders: list[Order]) -> dict[str, int]:
        """Win the start marks of the orders that need one; those lost are not performed."""
        marked = [order for order in orders if order.marked]
        won: dict[str, int] = {}
        if not marked:
            return won
        keys, instances = [order.key for order in marked], [order.instance for order in marked]
        self.submit([MarkRequest(keys, instances)])
        while True:
            decided = self._writer.turn()
            if decided is None:
                return won
            won.update(decided.marked)
            self._take(decided)

    def _move_on(self, due: int) -> None:
        """Move to a due tick, or only to the end of a worker's lease before it."""
        over = self._claims.due_tick()
        if over is None or over > due:
            self._move(due)
            return
        self._move(over)
        self._claims.reap()

    def _move(self, tick: int) -> None:
        if tick > self._clock.tick():
            self._clock.advance(tick)

    def _target(self, by: dt.timedelta | int | None, to: dt.datetime | int | None) -> int:
        clock = self._clock
        if (by is None) == (to is None):
            raise RequestError(
                "request.invalid", "advance needs either a span or `to`, and not both"
            )
        now_ms = clock.wall_ms()
        if by is not None:
            ms = now_ms + span_ms("a span", by)
        elif type(to) is int:
            ms = clock.epoch_ms + to * clock.resolution_ms
        else:
            ms = instant_ms("to", to)
        if ms < now_ms:
            raise RequestError("request.invalid", "time cannot go back; advance to a later instant")
        span_ms("a span", ms - now_ms)
        return -(-(ms - clock.epoch_ms) // clock.resolution_ms)


def _batch(items: Sequence[Any]) -> Submit:
    return Submit(
        [each for each in items if isinstance(each, Submission)],
        [each for each in items if isinstance(each, MarkRequest)],
        [each for each in items if isinstance(each, Control)],
    )
