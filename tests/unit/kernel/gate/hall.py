"""A gate with its rows kept beside it, as a store would; and shorthand for what tests configure."""

from __future__ import annotations

from detent.kernel.gate.asks import Ask
from detent.kernel.gate.config import Config, Limit, Pool, Resource
from detent.kernel.gate.gate import Gate
from detent.kernel.gate.hours import Opening, digest_of
from detent.kernel.gate.lines import PATIENCE
from detent.kernel.gate.meters import Timing
from detent.kernel.gate.rows import Row
from tests.unit.kernel.gate.brute import EPOCH_MS, MINUTES, RESOLUTION_MS

TIMING = Timing(EPOCH_MS, RESOLUTION_MS)
ROOM = 10_000
DAY = 86_400_000 // RESOLUTION_MS  # in ticks
_HOURS = (Opening(tuple((day, m, m + 1) for day in range(7) for m in MINUTES), "UTC"),)
IN_HOURS = {"window": digest_of(_HOURS), "hours": _HOURS}  # `brute.in_hours`


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
    """One gate, with the rows a store would hold of it; `prompt` calls begin when granted."""

    def __init__(self, *, limits=None, pools=None, config=None, rows=None, tick=0, prompt=True):
        self.prompt = prompt
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
        return Hall(config=self.config, rows=self.rows, tick=tick, prompt=self.prompt)

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
        answer = self.gate.ask(Ask(instance=instance, token=int(token or 1), **wanted), tick)
        if answer.state == "granted" and self.prompt:
            self.begin(name, tick)
        return answer

    def begin(self, name, tick):
        """The call that was granted under a name begins."""
        instance, _, token = name.partition(":")
        self.gate.begin(f"{instance}:{token or 1}", tick)

    def call(self, tick, room=ROOM):
        """Who is called, by name; they take it at once."""
        return [name for name, _ in self.answers(tick, room)]

    def answers(self, tick, room=ROOM):
        named = [(call.instance, call.token) for call in self.gate.call(tick, room)]
        answers = [(name, self.gate.take(f"{name}:{token}", tick)) for name, token in named]
        for name, token in named if self.prompt else ():
            self.begin(f"{name}:{token}", tick)
        return answers

    def drain(self, until=10**9, most=10**9, since=0):
        """Everything that happens by itself from a tick on, as (tick, name, resource)."""
        seen = []
        while len(seen) < most:
            due = self.gate.next_due()
            if due is None or due > until:
                return seen
            due = max(due, since)
            seen += [(due, name, answer.resource) for name, answer in self.answers(due)]
        return seen


def names(seen):
    """Who was served, in order."""
    return [name for _, name, _ in seen]


def holding(*, b_window=6):
    """A gate that keeps limit a, and b when it frees, for the ticket `both`."""
    hall = Hall(limits=limited(a=(1, 4), b=(1, b_window)))
    hall.ask("b", 0, limits=("b",))
    hall.ask("both", 0, limits=("a", "b"))
    ticket = hall.gate._line.tickets["both:1"]
    ticket.passed = PATIENCE + 1
    line = hall.gate._line._lines[ticket.needs]
    hall.gate._line._hold(line, ticket, b_window - 2, b_window + 1)
    return hall
