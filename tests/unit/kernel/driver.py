"""A world in memory: several instances, their calls and their time, driven as the runtime would.

After every step the invariants of `invariants.py` are checked. Messages between instances are
delivered at once, each as a turn of its own.
"""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from detent.definition import check_blocks, normalize
from detent.kernel.program import compile_program
from detent.kernel.spill import unpack
from detent.kernel.step import Facts, step
from detent.model.decision import HandlerSpec
from detent.model.errors import DefinitionError
from detent.model.inputs import (
    Commanded,
    EffectApplied,
    EffectDoubted,
    EffectFailed,
    EffectReconciled,
    SignalReceived,
    Started,
    encode_input,
)
from detent.model.snapshot import decode_snapshot
from tests.unit.kernel.invariants import TERMINAL, check, journal_of

RESOLUTION_MS = 100


def ticks(ms):
    """How many ticks a wait of so many milliseconds takes."""
    return -(-ms // RESOLUTION_MS)


def names_of(order):
    """What a test may call an open call: its handler, its node, or the end of its node."""
    return order.handler, order.node, order.node.rpartition("/")[2]


class Actor:
    """One instance: its stored bytes and everything it ever wrote."""

    def __init__(self, id, definition):
        self.id = id
        self.definition = definition
        self.body = None
        self.decision = None
        self.entries = []
        self.facts = []
        self.blobs = {}


class World:
    """Definitions, instances, open calls, start marks and the clock."""

    def __init__(self, *blocks, handlers=MappingProxyType({}), **more):
        self.programs = {}
        self.names = {}
        self.actors = {}
        self.orders = []  # every open call, in the order in which it was ordered
        self.history = []  # every order ever made
        self.marks = {}
        self.recalled = []
        self.tick = 1
        self.count = 0
        self.handlers = {
            name: HandlerSpec(name=name, **spec) if isinstance(spec, dict) else spec
            for name, spec in dict(handlers).items()
        }
        self.program = self.define("main", blocks, **more)

    def define(self, name, blocks, version=1, **more):
        """Add a definition; the newest version is what a child of that name starts."""
        raw = {"name": name, "version": version, "blocks": list(blocks), **more}
        program = compile_program(normalize(raw))
        self.programs[program.hash] = program
        self.names.setdefault(name, {})[version] = program.hash
        return program

    # turns ---------------------------------------------------------------------------------------

    def start(self, data=None, id="i1", program=None, **more):
        """Start an instance and run it to its first wait."""
        definition = (program or self.program).hash
        self.actors[id] = Actor(id, definition)
        told = Started(instance=id, definition=definition, data=data, **more)
        self.tell(told, to=id)
        return self

    def tell(self, *inputs, to="i1"):
        """One turn of an instance; gives its decision."""
        actor = self.actors[to]
        bodies = [each if isinstance(each, bytes) else encode_input(each) for each in inputs]
        decision, given = self._decide(actor, bodies)
        program = self.programs[actor.definition]
        again = step(program, actor.body, bodies, self.tick, self._facts(dict(given)))
        check(actor.body, decision, again, bodies, self.tick)
        self._commit(actor, decision)
        for message in decision.messages:
            self._deliver(message)
        return decision

    def _decide(self, actor, bodies):
        given = {}
        for _ in range(100):
            program = self.programs[actor.definition]
            result = step(program, actor.body, bodies, self.tick, self._facts(given))
            if not isinstance(result, list):
                return result, given
            for need in result:
                self._give(actor, need, given)
        raise AssertionError("a need was never satisfied")

    def _facts(self, given):
        return Facts(handlers=self.handlers, given=given, epoch_ms=0, resolution_ms=RESOLUTION_MS)

    def _give(self, actor, need, given):
        if need.kind == "child":
            versions = self.names.get(need.name, {})
            version = need.extra or max(versions, default=None)
            given[f"child:{need.name}:{need.extra}"] = versions.get(version)
        elif need.kind == "blob":
            given[f"blob:{need.name}"] = actor.blobs[need.name]
        elif need.kind == "program":
            given[f"program:{need.name}"] = self.programs.get(need.name)
        elif need.kind == "blocks":
            given[f"blocks:{need.name}"] = self._checked(actor, need.extra)
        else:
            assert need.kind == "flight"
            given[f"flight:{need.name}"] = self.marks.get(need.name)

    def _checked(self, actor, raw):
        """Blocks that a step has made, as the runtime has them checked."""
        try:
            made = check_blocks(
                msgspec.json.decode(raw), self.programs[actor.definition].definition
            )
        except DefinitionError as error:
            return {"error": error.message}
        body = msgspec.json.decode(made.canonical)
        return {name: body[name] for name in ("blocks", "calendars") if name in body}

    def _commit(self, actor, decision):
        actor.body = decision.snapshot
        actor.definition = decision.definition
        actor.decision = decision
        actor.blobs.update(decision.blobs)
        if decision.journal:
            row = journal_of(decision)
            actor.entries += [(*entry, None)[:3] for entry in row["entries"]]
            actor.facts.append(row["facts"])
        for key in [*decision.settled, *decision.withdrawn]:
            self.marks.pop(key, None)
        self.recalled += decision.recalled
        self.history += decision.orders
        self.orders += decision.orders
        gone = decision.withdrawn
        self.orders = [order for order in self.orders if order.key not in gone]

    def _deliver(self, message):
        if message.start is not None and message.to not in self.actors:
            self.actors[message.to] = Actor(message.to, message.start.definition)
        if message.to in self.actors:
            self.tell(message.body, to=message.to)

    # the outside ---------------------------------------------------------------------------------

    def order(self, name="", to=None):
        """The first open call of a handler or block."""
        for order in self.orders:
            if name in ("", *names_of(order)) and (to is None or order.instance == to):
                return order
        raise LookupError(f"no open call {name!r}; open are {[o.node for o in self.orders]}")

    def has(self, name):
        """Whether a call of a handler or block is open."""
        return any(name in names_of(order) for order in self.orders)

    def mark(self, name=""):
        """Commit the start mark of a call, as a dispatcher does just before calling."""
        order = self.order(name)
        assert order.marked, f"{order.node} is not marked"
        self.count += 1
        self.marks[order.key] = self.count
        return order

    def _answered(self, name):
        order = self.order(name)
        self.orders.remove(order)
        return order

    def apply(self, name="", result=None):
        order = self._answered(name)
        return self.tell(EffectApplied(key=order.key, result=result), to=order.instance)

    def fail(self, name="", message="no", **more):
        order = self._answered(name)
        told = EffectFailed(key=order.key, message=message, **more)
        return self.tell(told, to=order.instance)

    def doubt(self, name="", reason="lost", *, crashed=False):
        order = self._answered(name)
        told = EffectDoubted(key=order.key, reason=reason, crashed=crashed)
        return self.tell(told, to=order.instance)

    def reconciled(self, name="", verdict="retry", **more):
        order = self._answered(name)
        assert order.mode == "reconcile"
        told = EffectReconciled(key=order.key, verdict=verdict, **more)
        return self.tell(told, to=order.instance)

    def signal(self, name, payload=None, id="", to="i1"):
        return self.tell(SignalReceived(name=name, payload=payload, id=id), to=to)

    def command(self, verb, args=None, to="i1"):
        """Ask, and give the verdict."""
        self.count += 1
        told = Commanded(verb=verb, id=f"c{self.count}", args=args)
        decision = self.tell(told, to=to)
        (verdict,) = [each for each in decision.verdicts if each.id == told.id]
        return verdict

    def resolve(self, key, action, to="i1", **more):
        return self.command("resolve", {"key": key, "action": action, **more}, to)

    # time ----------------------------------------------------------------------------------------

    def at(self, tick, to="i1"):
        """Move the clock and give one instance a turn."""
        assert tick >= self.tick
        self.tick = tick
        return self.tell(to=to)

    def after(self, ms, to="i1"):
        return self.at(self.tick + ticks(ms), to)

    def due(self, to="i1"):
        """Move to the next due tick of an instance and let it fire."""
        due = self.actors[to].decision.due
        assert due is not None, "nothing is due"
        return self.at(max(due, self.tick), to)

    def finish(self, most=300, result=None):
        """Answer calls with an object and pass due ticks until all has ended or stands."""
        for _ in range(most):
            if self.orders:
                self.apply(result={} if result is None else result)
                continue
            moving = [
                actor.decision.due
                for actor in self.actors.values()
                if actor.decision.due is not None and actor.decision.state not in TERMINAL
            ]
            if not moving:
                return self
            self.tick = max(self.tick, min(moving))
            for id, actor in list(self.actors.items()):
                if actor.decision.due is not None and actor.decision.due <= self.tick:
                    self.tell(to=id)
        raise AssertionError("the world did not come to rest")

    # looking -------------------------------------------------------------------------------------

    def snap(self, to="i1"):
        """The snapshot with its blobs put back."""
        actor = self.actors[to]
        snapshot = decode_snapshot(actor.body)
        unpack(snapshot, actor.blobs)
        return snapshot

    def spilled(self, to="i1"):
        """The digests of the blobs that the stored snapshot needs."""
        return decode_snapshot(self.actors[to].body).blobs

    @property
    def state(self):
        return self.snap().state

    @property
    def data(self):
        return self.snap().data

    @property
    def outputs(self):
        return self.snap().outputs

    @property
    def error(self):
        return self.snap().error

    @property
    def decision(self):
        return self.actors["i1"].decision

    @property
    def children(self):
        """The ids of all instances but the first, in the order of their birth."""
        return [id for id in self.actors if id != "i1"]

    def entries(self, action="", to="i1"):
        """Entries (action, node, detail), all or those of one action."""
        return [each for each in self.actors[to].entries if action in ("", each[0])]

    def nodes(self, action, to="i1"):
        """The node paths of an action, in order."""
        return [entry[1] for entry in self.entries(action, to)]

    @property
    def executed(self):
        """The paths of the steps executed so far, in order."""
        return self.nodes("step.executed")

    def states(self, to="i1"):
        """Every state the instance went through, in order."""
        return ["scheduled"] + [
            entry[2]["to"]
            for entry in self.entries(to=to)
            if entry[0].startswith("run.") and isinstance(entry[2], dict) and "to" in entry[2]
        ]

    def planned(self):
        """What was asked of handlers so far: (node, attempt)."""
        return [(order.node, order.attempt) for order in self.history if order.mode == "call"]

    def request(self, name=""):
        return msgspec.json.decode(self.order(name).request)


def run(*blocks, data=None, handlers=MappingProxyType({}), **more):
    """A world with one instance, started."""
    return World(*blocks, handlers=handlers, **more).start(data)
