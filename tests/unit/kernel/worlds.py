"""One instance driven in memory: `step` is called as the runtime calls it, and rows are kept."""

from __future__ import annotations

import hashlib
from types import MappingProxyType

from detent.definition import normalize
from detent.kernel.chain import GENESIS, digest_of, head_of, snapshot_digest_of
from detent.kernel.program import compile_program
from detent.kernel.recording import Recording, Timing
from detent.kernel.step import Facts, step
from detent.kernel.survey import next_due
from detent.model.inputs import (
    Commanded,
    EffectApplied,
    EffectFailed,
    SignalReceived,
    Started,
    encode_input,
)
from detent.model.snapshot import decode_snapshot
from detent.ports.store import JournalRow

SALT = bytes(16)
TERMINAL = ("completed", "failed", "cancelled")


def a_program(blocks, **more):
    """The program of a sequence with these blocks."""
    return compile_program(normalize({"name": "story", "version": 1, "blocks": blocks, **more}))


def a_step(id="a", handler="work", **more):
    return {"type": "step", "id": id, "handler": handler, **more}


class World:
    """An instance, its rows so far and the orders nobody has answered."""

    def __init__(self, program, *more, handlers=MappingProxyType({}), children=(), id="i1"):
        self.program = program
        self.programs = {each.hash: each for each in (program, *more)}
        self.handlers = dict(handlers)
        self.children = dict(children)
        self.id = id
        self.rows = []
        self.body = None
        self.head = GENESIS
        self.blobs = {}
        self.orders = {}
        self.tick = 0
        self.decision = None

    def start(self, data=None, tick=1, **more):
        told = Started(instance=self.id, definition=self.program.hash, data=data, **more)
        return self.tell(told, tick=tick)

    def tell(self, *inputs, tick=None):
        """Run one turn; inputs are values or bytes."""
        self.tick = self.tick if tick is None else tick
        bodies = [each if isinstance(each, bytes) else encode_input(each) for each in inputs]
        facts = Facts(handlers=self.handlers, given={}, epoch_ms=0, resolution_ms=100)
        program = self.programs[self.decision.definition] if self.decision else self.program
        decision = step(program, self.body, bodies, self.tick, facts)
        while isinstance(decision, list):
            for need in decision:
                self._give(need, facts.given)
            decision = step(program, self.body, bodies, self.tick, facts)
        if decision.journal:
            self._keep(decision)
        return decision

    def _give(self, need, given):
        if need.kind == "child":
            given[f"child:{need.name}:{need.extra}"] = self.children.get(need.name)
        elif need.kind == "blob":
            given[f"blob:{need.name}"] = self.blobs[need.name]
        elif need.kind == "program":
            given[f"program:{need.name}"] = self.programs[need.name]
        else:
            given[f"flight:{need.name}"] = 1 if seeded(need.name) % 2 else None  # some were called

    def _keep(self, decision):
        assert decision.due == next_due(decode_snapshot(decision.snapshot), self.tick)
        self.decision = decision
        self.body = decision.snapshot
        self.blobs.update(decision.blobs)
        digest, snapshot_digest = digest_of(SALT, decision.journal), snapshot_digest_of(self.body)
        self.head = head_of(self.head, decision.version, self.tick, snapshot_digest, digest)
        number = len(self.rows) + 1
        self.rows.append(
            JournalRow(
                number,
                1,
                decision.version,
                number,
                self.tick,
                snapshot_digest,
                digest,
                decision.journal,
                self.head,
            )
        )
        for key in [*decision.withdrawn, *decision.settled]:
            self.orders.pop(key, None)
        for order in decision.orders:
            self.orders[order.key] = order

    def apply(self, result=None, node="", tick=None):
        """Answer one open order, the first or that of a node."""
        key = self._take(node)
        return self.tell(EffectApplied(key=key, dispatch=1, result=result), tick=tick)

    def fail(self, message="no", node="", tick=None, **more):
        key = self._take(node)
        return self.tell(EffectFailed(key=key, dispatch=1, message=message, **more), tick=tick)

    def _take(self, node):
        for key, order in self.orders.items():
            if not node or order.node == node:
                del self.orders[key]
                return key
        raise LookupError(f"no open order of {node!r}")

    def signal(self, name, payload=None, tick=None):
        return self.tell(SignalReceived(name=name, payload=payload), tick=tick)

    def command(self, verb, args=None, tick=None):
        return self.tell(Commanded(verb=verb, id=f"c{self.tick}", args=args), tick=tick)

    def finish(self, result=None, most=200):
        """Answer every order and pass every due tick until the instance ends or stands."""
        for _ in range(most):
            if self.decision.state in TERMINAL:
                return self
            if self.orders:
                self.apply({"n": len(self.rows)} if result is None else result)
            elif self.decision.due is not None:
                self.tell(tick=max(self.tick, self.decision.due))
            else:
                return self
        return self

    @property
    def snapshot(self):
        return decode_snapshot(self.body)

    @property
    def recording(self):
        return Recording(rows=self.rows, programs=self.programs, blobs=self.blobs, timing=Timing())


def seeded(text):
    """A number from a text, the same for ever."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
