"""Callers who wait for the writer: answers by number, and instances on their way somewhere."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from detent.model.decision import Order, Verdict
from detent.model.errors import CODES, DetentError, error_of

ANY = ""  # whoever listens to this is told of every instance


class Callers:
    """Futures by acknowledgement number; each is answered exactly once."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Verdict]] = {}

    def expect(self) -> tuple[int, Future[Verdict]]:
        """A fresh number and the future its answer will be put into."""
        number = next(self._numbers)
        future: Future[Verdict] = Future()
        self._waiting[number] = future
        return number, future

    def answer(self, acks: Iterable[tuple[int, Verdict]]) -> None:
        """Hand answers out."""
        for number, verdict in acks:
            future = self._waiting.pop(number, None)
            if future is not None and future.set_running_or_notify_cancel():
                future.set_result(verdict)

    def forget(self, number: int) -> None:
        """Nobody waits for this number any more."""
        self._waiting.pop(number, None)

    def fail_all(self, error: DetentError) -> None:
        """The writer is gone: nobody will answer."""
        for number in list(self._waiting):
            future = self._waiting.pop(number, None)
            if future is not None and future.set_running_or_notify_cancel():
                future.set_exception(error)


class Watch:
    """Who waits for which instance to reach which state, and who listens to all its moves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[str, list[tuple[Callable[[str], bool], Future[str]]]] = {}
        self._listeners: dict[str, tuple[Callable[[str], None], ...]] = {}

    def add(self, instance: str, wanted: Callable[[str], bool]) -> Future[str]:
        """A future for the state that satisfies `wanted`."""
        future: Future[str] = Future()
        with self._lock:
            self._watchers.setdefault(instance, []).append((wanted, future))
        return future

    def remove(self, instance: str, future: Future[str]) -> None:
        """Stop waiting."""
        with self._lock:
            left = [each for each in self._watchers.get(instance, []) if each[1] is not future]
            if left:
                self._watchers[instance] = left
            else:
                self._watchers.pop(instance, None)

    def listen(self, instance: str, told: Callable[[str], None]) -> Callable[[], None]:
        """Be told of every move of an instance, or of all where it is `ANY`; how to stop."""
        with self._lock:
            self._listeners[instance] = (*self._listeners.get(instance, ()), told)

        def stop() -> None:
            with self._lock:
                here = self._listeners.get(instance, ())
                self._listeners[instance] = tuple(each for each in here if each is not told)
                if not self._listeners[instance]:
                    del self._listeners[instance]

        return stop

    def moved(self, moves: Sequence[tuple[str, str]]) -> None:
        """Tell those who wait for one of these instances, with the state it went to."""
        if self._watchers:
            for instance, state in moves:
                for wanted, future in self._watchers.get(instance, ()):
                    if wanted(state) and not future.done():
                        future.set_result(state)
        if self._listeners and moves:
            self._tell(dict(moves))

    def called(self, orders: Sequence[Order]) -> None:
        """Tell those who listen: an instance that orders a call has moved, if not its state."""
        if self._listeners and orders:
            self._tell(dict.fromkeys((order.instance for order in orders), ""))

    def _tell(self, moves: dict[str, str]) -> None:
        for instance, state in (*moves.items(), (ANY, "")):
            for told in self._listeners.get(instance, ()):
                told(state)

    def fail_all(self, error: DetentError) -> None:
        """The engine closes: nobody will move any more."""
        with self._lock:
            waiting = [future for each in self._watchers.values() for _wanted, future in each]
        for future in waiting:
            if not future.done():
                future.set_exception(error)


def raise_refusal(verdict: Verdict) -> Verdict:
    """The verdict, or its refusal as the error with the same code."""
    if verdict.ok:
        return verdict
    raise error_of(verdict.code if verdict.code in CODES else "request.invalid", verdict.message)
