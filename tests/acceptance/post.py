"""What acceptance tests of limits share: a handler that logs each send, and what must be true."""

from __future__ import annotations

import zlib
from collections import Counter
from contextlib import contextmanager
from typing import NamedTuple

import detent
from detent.ports.store import Page
from detent.service.gates import gate_id
from tests.acceptance.stage import virtual

TICK_MS = 100
GATE = gate_id("default")


class Sent(NamedTuple):
    """One call of the handler, as the handler itself saw it."""

    at: int  # tick
    who: str
    by: str


class Post:
    """An engine in virtual time with the handler `send`, and the log that the handler keeps."""

    def __init__(self):
        self.log = []
        self.trouble = []  # what the next calls raise, one after another
        self.engine = None

        # On the dispatcher's loop, where calls begin in the order of dispatch: threads would race.
        @detent.handler("send")
        async def send(ctx, to: str = ""):
            self.log.append(Sent(self.tick, to or ctx.node, ctx.resource))
            if self.trouble:
                raise self.trouble.pop(0)
            return {}

        self.send = send

    @contextmanager
    def open(self, path=":memory:", **settings):
        """Open the engine; when it is closed the whole story is proved."""
        with virtual(path, [self.send], **settings) as self.engine:
            yield self
            self.prove()

    @property
    def tick(self):
        now_ms = round(self.engine.now().timestamp() * 1000)
        return (now_ms - EPOCH_MS) // TICK_MS

    def letter(self, block="send", **options):
        """A step that sends `data.to`."""
        return detent.step(block, "send", params={"to": "{{data.to}}"}, **options)

    def mail(self, *keys, **options):
        """A sequence of one send under these limits."""
        return define(self.letter(rate_limit_key=list(keys), **options))

    def start(self, definition, *names, **options):
        """Start one instance for each name, in this order."""
        return [self.engine.start(definition, {"to": name}, **options) for name in names]

    def advance(self, ticks):
        self.engine.advance(ticks * TICK_MS)

    def times(self):
        return [(sent.at, sent.who) for sent in self.log]

    def state(self, instance):
        return self.engine.inspect.show(instance).summary.state

    def prove(self):
        """The chain is whole, and every record gives the same again."""
        assert self.engine.inspect.verify().valid
        for row in self.engine.inspect.instances(Page(limit=1_000)).items:
            replayed = self.engine.replay(row.id)
            assert replayed.identical, (row.id, replayed)

    def keeps_its_promise(self, instance, rule):
        """Explain names the rule, nothing moves before its instant, and at its instant it does."""
        told = self.engine.explain(instance)
        assert rule in told.summary
        before = len(self.engine.inspect.audit(instance))
        self.advance(told.earliest - 1 - self.tick)
        assert len(self.engine.inspect.audit(instance)) == before
        assert self.engine.explain(instance).earliest == told.earliest
        self.advance(1)
        assert len(self.engine.inspect.audit(instance)) > before
        return told.earliest


EPOCH_MS = 1_767_225_600_000  # virtual time begins on Thursday, 1 January 2026, at midnight in UTC


def define(*blocks, **options):
    """A sequence whose name is its content, so that a test may have as many as it likes."""
    content = repr((blocks, sorted(options.items())))
    return detent.sequence(f"s{zlib.crc32(content.encode())}", *blocks, **options)


def most_in_a_window(ticks, window_ms):
    """The most calls in any span of that many milliseconds, wherever in their ticks they were."""
    span = -(-window_ms // TICK_MS)  # a call late in its tick and one early in another: + one tick
    ticks = sorted(ticks)
    return max(
        (sum(1 for tick in ticks if first <= tick <= first + span) for first in ticks), default=0
    )


def share(log):
    """How often each resource was used."""
    return Counter(sent.by for sent in log)
