"""A gate with its rows kept beside it, as a store would; and shorthand for what tests configure."""

from __future__ import annotations

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.config import Config, Limit, Pool, Resource
from detent.kernel.gate.gate import Gate
from detent.kernel.gate.meters import Timing
from detent.kernel.gate.rows import Row
from tests.unit.kernel.gate.brute import EPOCH_MS, RESOLUTION_MS

TIMING = Timing(EPOCH_MS, RESOLUTION_MS)
ROOM = 10_000
DAY = 86_400_000 // RESOLUTION_MS  # in ticks


def limited(**limits):
    """Limits as (max, window in seconds)."""
    return {key: Limit(max=most, window_ms=int(s * 1000)) for key, (most, s) in limits.items()}


def pooled(strategy="weighted", **resources):
    """A pool whose resources have these fields; the key of each is its id."""
    made = {
        id: Resource(resource_key=fields.pop("key", id), name=id, **fields)
        for id, fields in resources.items()
    }
    return Pool(strategy=strategy, resources=made)


class Hall:
    """One gate, with the rows a store would hold of it."""

    def __init__(self, *, limits=None, pools=None, config=None, rows=None, tick=0):
        self.config = config or Config(limits=limits or {}, pools=pools or {})
        self.rows = dict(rows or {})
        stored = [Row(*key, body) for key, body in self.rows.items()]
        self.gate = Gate(TIMING, self.config, stored, tick)

    def commit(self):
        """Write what changed."""
        for key, body in self.gate.take_rows().items():
            if body is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = body

    def restarted(self, tick):
        """The gate as the next process reads it."""
        self.commit()
        return Hall(config=self.config, rows=self.rows, tick=tick)

    def configure(self, tick, *, limits=None, pools=None):
        config = self.config
        self.config = Config(
            limits=config.limits if limits is None else limits,
            pools=config.pools if pools is None else pools,
        )
        self.gate.configure(self.config, tick)

    def ask(self, name, tick=0, **wanted):
        """Ask under an instance's name and a token, `name` or `name:token`."""
        instance, _, token = name.partition(":")
        return self.gate.ask(Ask(instance=instance, token=int(token or 1), **wanted), tick)

    def call(self, tick, room=ROOM):
        """Who is called, by name; they take it at once."""
        return [name for name, _ in self.answers(tick, room)]

    def answers(self, tick, room=ROOM):
        named = [(call.instance, call.token) for call in self.gate.call(tick, room)]
        return [(name, self.gate.take(f"{name}:{token}", tick)) for name, token in named]

    def drain(self, until=10**9, most=10**9):
        """Everything that happens by itself, as (tick, name, resource)."""
        seen = []
        while len(seen) < most:
            due = self.gate.next_due()
            if due is None or due > until:
                return seen
            seen += [(due, name, answer.resource) for name, answer in self.answers(due)]
        return seen
