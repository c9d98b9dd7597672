"""What acceptance tests of circuit breakers share: a provider that may be down, and its orders."""

from __future__ import annotations

import datetime as dt

import detent
from detent import sequence, step
from tests.acceptance.stage import state

COOLDOWN_MS = 60_000
SECOND = dt.timedelta(seconds=1)


class Provider:
    """What stands behind `pay`: it works, or it is down; and `cheque`, which stands in for it."""

    def __init__(self):
        self.down = True
        self.called = []  # handler, data, in order
        provider = self

        @detent.handler("pay")
        async def pay(n: int = 0):
            provider.called.append(("pay", n))
            if provider.down:
                raise provider.trouble()
            return {"paid": n}

        @detent.handler("cheque")
        async def cheque(n: int = 0):
            provider.called.append(("cheque", n))
            return {"posted": n}

        self.handlers = [pay, cheque]
        self.trouble = lambda: detent.Failed("down", retryable=False)

    @property
    def count(self):
        return len(self.called)


PAY = sequence("order", step("pay", "pay", params={"n": "{{ data.n }}"}))
OR_CHEQUE = sequence(
    "order", step("pay", "pay", params={"n": "{{ data.n }}"}, fallback_handler="cheque")
)


def orders(engine, count, definition=PAY, first=0, **options):
    """Instances, started one after the other, each as far as it gets."""
    made = []
    for n in range(first, first + count):
        made.append(engine.start(definition, {"n": n}, **options))
        engine.advance(0)
    return made


def states(engine, instances):
    return [state(engine, each) for each in instances]


def at(engine, instance):
    """The instant that `explain` promises, as seconds from now."""
    told = engine.explain(instance).earliest_ms
    return None if told is None else (told - round(engine.now().timestamp() * 1000)) / 1000
