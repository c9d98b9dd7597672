"""A running dispatcher with real handlers, and the writer's side of its link in the test's hand."""

from __future__ import annotations

import queue
import time

from detent.handlers import Registry
from detent.model.errors import StoreError
from detent.model.inputs import decode_input
from detent.model.link import Decided, MarkRequest
from detent.runtime.dispatcher import Dispatcher
from tests.unit.handlers.calling import order_for

PATIENCE_S = 10.0


class Rig:
    """Gives orders, collects marks and outcomes."""

    def __init__(self, *handlers, **options):
        self.registry = Registry()
        self.registry.collect(handlers)
        self.told = queue.SimpleQueue()
        self.asked = queue.SimpleQueue()
        self.gone = False
        self.dispatcher = Dispatcher(self.registry, self._submit, **options)
        self.dispatcher.start()

    def _submit(self, items):
        if self.gone:
            raise StoreError("store.unavailable", "the writer is gone")
        for item in items:
            (self.asked if isinstance(item, MarkRequest) else self.told).put(item)

    def order(self, handler, key, request=None, **fields):
        spec = self.registry.specs().get(handler)
        if spec is not None:
            fields.setdefault("doubt", spec.doubt)
            fields.setdefault("marked", spec.marked)
            fields.setdefault("timeout_ms", spec.timeout_ms)
        return order_for(handler, request, key=key, **fields)

    def give(self, *orders, **decided):
        self.dispatcher.take(Decided(orders=list(orders), **decided))

    def outcome(self):
        """The next outcome, decoded."""
        return decode_input(self.told.get(timeout=PATIENCE_S).body)

    def outcomes(self, count):
        found = [self.outcome() for _ in range(count)]
        return {each.key: each for each in found}

    def marks(self):
        """The keys of the next request for start marks."""
        return self.asked.get(timeout=PATIENCE_S).keys

    def silent(self):
        """Whether nothing was told or asked, after everything given has gone through the loop."""
        for _ in range(3):  # taken, started, flushed
            self.dispatcher.perform([])
        return self.told.empty() and self.asked.empty()

    def until(self, holds):
        """Wait until something holds, looking each time the loop has gone round."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "it never came to hold"
            self.dispatcher.perform([])

    def idle(self):
        """Wait until everything given has been taken and every call has ended."""
        self.dispatcher.perform([])
        self.until(lambda: not self.dispatcher.counts()["under_way"])

    def close(self, grace_ms=1_000):
        self.dispatcher.close(grace_ms)
