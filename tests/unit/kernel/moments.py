"""One step at one moment: what the kernel's timing says of it, without running anything."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from detent.definition import normalize
from detent.kernel import timing
from detent.kernel.program import compile_program
from detent.kernel.run import Facts, Run
from detent.model.snapshot import Frame, Snapshot

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def ms_of(text, zone="UTC"):
    """The instant of a local time, by Python's own rules."""
    local = dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return round(local.timestamp() * 1000)


def text_of(ms, zone="UTC"):
    """The wall time of an instant, by Python's own rules."""
    return dt.datetime.fromtimestamp(ms / 1000, ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")


class Moment:
    """A step, its instance and the instant of its turn; tick 0 is one day before the instant."""

    def __init__(self, now, *, zone="UTC", resolution_ms=100, **options):
        self.now_ms = ms_of(now, zone) if isinstance(now, str) else now
        self.resolution_ms = resolution_ms
        self.zone = zone
        self.calendars = options.pop("calendars", {})
        self.instance = {"id": "i1", "seed": "s1", "config": None, "generation": 0}
        self.instance |= {key: options.pop(key) for key in [*self.instance] if key in options}
        self.given = options.pop("given", {})
        block = {"type": "step", "id": "s", "handler": "work", **options}
        raw = {"name": "n", "version": 1, "blocks": [block], "calendars": self.calendars}
        self.program = compile_program(normalize(raw))
        self.node = self.program.nodes["s"]
        self.path = "s"
        self.at(self.now_ms)

    def at(self, now):
        """Move to another instant; the epoch stays where it was."""
        epoch_ms = self.now_ms - self.now_ms % self.resolution_ms - DAY_MS
        now_ms = ms_of(now, self.zone) if isinstance(now, str) else now
        tick = (now_ms - epoch_ms) // self.resolution_ms
        facts = Facts(
            handlers={}, given=self.given, epoch_ms=epoch_ms, resolution_ms=self.resolution_ms
        )
        snapshot = Snapshot(timezone=self.zone, **self.instance)
        self.run = Run(self.program, snapshot, tick, facts)
        return self

    def tick_of(self, text):
        return self.run.at_ms(ms_of(text, self.zone))

    def delay(self):
        """The instant at which the delay ends, or the failure."""
        due = timing.delay_due(self.run, self.node, Frame(b="s"), self.path)
        return self.run.ms_of(due) if isinstance(due, int) else due

    def delay_text(self, zone=None):
        return text_of(self.delay(), zone or self.zone)

    def window(self, wanted=None):
        """None when it may act, else the instant of the opening, or the failure."""
        tick = self.run.tick if wanted is None else self._earlier(wanted)
        due = timing.window_due(self.run, self.node, Frame(b="s"), self.path, tick)
        return self.run.ms_of(due) if isinstance(due, int) else due

    def window_text(self, wanted=None):
        return text_of(self.window(wanted), self.zone)

    def _earlier(self, wanted):
        wanted_ms = ms_of(wanted, self.zone) if isinstance(wanted, str) else wanted
        return (wanted_ms - self.run.facts.epoch_ms) // self.resolution_ms

    @property
    def facts(self):
        """What the turn recorded."""
        return self.run.used
