"""A schedule and what it starts, in a world in memory; tick 0 is the first hour of 1970 in UTC."""

from __future__ import annotations

from detent.definition.system import CRON
from detent.kernel.explain import explain
from detent.kernel.program import compile_program
from detent.kernel.recording import Timing
from detent.kernel.step import Facts
from detent.model.inputs import Configured, decode_input
from tests.unit.kernel.driver import RESOLUTION_MS, World

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WAITING = {"type": "wait", "id": "w", "signal": "go"}


class Scheduled(World):
    """One schedule, `i1`, of the sequence `work`, whose instances stand until a signal comes."""

    def __init__(self, expr="0 * * * *", *, epoch_ms=0, **settings):
        self.epoch_ms = epoch_ms
        super().__init__(WAITING)
        self.work = self.define("work", [WAITING])
        program = compile_program(CRON)
        self.programs[program.hash] = program
        self.tick = 0
        asked = {"id": "s1", "cron_expr": expr, "sequence": "work", **settings}
        self.start(asked, program=program, namespace="detent", seed="seed")

    def _facts(self, given):
        return Facts(handlers={}, given=given, epoch_ms=self.epoch_ms, resolution_ms=RESOLUTION_MS)

    def _give(self, actor, need, given):
        if need.kind == "sequence":
            versions = self.names.get(need.name, {})
            place = f"sequence:{need.name}:{need.extra}"
            given[place] = versions.get(max(versions, default=None))
        else:
            super()._give(actor, need, given)

    @property
    def kept(self):
        return self.snap().kv

    @property
    def now_ms(self):
        return self.epoch_ms + self.tick * RESOLUTION_MS

    def at_ms(self, ms):
        """Give the schedule a turn at the first tick that is not before an instant."""
        return self.at(-(-(ms - self.epoch_ms) // RESOLUTION_MS))

    def fires(self):
        """The instants whose fires started something, in order."""
        return [entry[2]["fire_ms"] for entry in self.entries("cron.fired")]

    def skipped(self):
        return [
            (entry[2]["why"], entry[2].get("count", 1)) for entry in self.entries("cron.skipped")
        ]

    def started(self):
        """The first input of everything it started."""
        return [
            decode_input(message.body)
            for message in self.decision.messages
            if message.start is not None
        ]

    def end(self, child):
        """Let something it started come to its end."""
        self.signal("custom:go", to=child)

    def change(self, **args):
        """Ask for a change, and give the verdict."""
        self.count += 1
        told = Configured(verb="cron.update", id=f"c{self.count}", args=args)
        (verdict,) = self.tell(told).verdicts
        return verdict


def told(world):
    """What explain says of the schedule."""
    program = world.programs[world.actors["i1"].definition]
    return explain(world.snap(), program, Timing(), world.tick)
