"""Random stories: any definition, driven by any events, the same for the same seed."""

from __future__ import annotations

import random

from detent.model.decision import HandlerSpec
from detent.model.inputs import EffectDoubted, EffectReconciled
from tests.unit.kernel.worlds import TERMINAL, World, a_program

HANDLERS = {
    "work": HandlerSpec(name="work", timeout_ms=2_000),
    "pay": HandlerSpec(name="pay", doubt="once"),
    "book": HandlerSpec(name="book", doubt="queryable"),
    "mail": HandlerSpec(name="mail", doubt="keyed"),
}


class Writer:
    """Writes a random definition; every block has an id of its own."""

    def __init__(self, chance):
        self.chance = chance
        self.count = 0

    def blocks(self, depth, most=3):
        return [self.block(depth) for _ in range(self.chance.randint(1, most))]

    def block(self, depth):
        simple = (self.step, self.step, self.step, self.wait)
        deep = (
            self.parallel,
            self.race,
            self.loop,
            self.for_each,
            self.router,
            self.try_catch,
            self.scope,
            self.saga,
            self.split,
            self.graph,
        )
        return self.chance.choice(simple if depth <= 0 else (*simple, *deep))(depth - 1)

    def id(self):
        self.count += 1
        return f"b{self.count}"

    def step(self, _depth):
        chance = self.chance
        made = {
            "type": "step",
            "id": self.id(),
            "handler": chance.choice(
                ("work", "work", "pay", "book", "mail", "noop", "sleep", "fail", "transform")
            ),
        }
        if made["handler"] == "sleep":
            made["params"] = {"duration_ms": chance.choice((0, 50, 1_000))}
        options = (
            ("retry", {"max_attempts": 3, "initial_backoff": 300, "max_backoff": 5_000}, 0.3),
            ("delay", {"duration": chance.choice((0, 700))}, 0.15),
            ("deadline", 4_000, 0.1),
            ("when", chance.choice(("true", "false")), 0.1),
            ("wait_for_input", {"prompt": "ok?", "timeout": 6_000}, 0.1),
            ("cancellable", False, 0.1),
        )
        return made | {name: value for name, value, rate in options if chance.random() < rate}

    def wait(self, _depth):
        made = {"type": "wait", "id": self.id()}
        kind = self.chance.randrange(3)
        if kind != 1:
            made["duration"] = self.chance.choice((0, 100, 2_500))
        if kind != 0:
            made["signal"] = "go"
        return made

    def parallel(self, depth):
        branches = [self.blocks(depth, 2) for _ in range(2)]
        return {"type": "parallel", "id": self.id(), "branches": branches}

    def race(self, depth):
        branches = [self.blocks(depth, 2) for _ in range(2)]
        semantics = self.chance.choice(("first_to_resolve", "first_to_succeed"))
        return {"type": "race", "id": self.id(), "branches": branches, "semantics": semantics}

    def loop(self, depth):
        made = {
            "type": "loop",
            "id": self.id(),
            "condition": "true",
            "max_iterations": 2,
            "body": self.blocks(depth, 2),
        }
        if self.chance.random() < 0.3:
            made["poll_interval"] = 1
        return made

    def for_each(self, depth):
        return {
            "type": "for_each",
            "id": self.id(),
            "collection": "items",
            "body": self.blocks(depth, 2),
        }

    def router(self, depth):
        condition = self.chance.choice(("true", "false"))
        routes = [{"condition": condition, "blocks": self.blocks(depth, 2)}]
        return {"type": "router", "id": self.id(), "routes": routes, "default": self.blocks(depth)}

    def try_catch(self, depth):
        return {
            "type": "try_catch",
            "id": self.id(),
            "try_block": self.blocks(depth, 2),
            "catch_block": self.blocks(depth, 1),
            "finally_block": self.blocks(0, 1),
        }

    def scope(self, depth):
        return {"type": "cancellation_scope", "id": self.id(), "blocks": self.blocks(depth, 2)}

    def saga(self, _depth):
        steps = [
            {"id": self.id(), "action": self.step(0), "compensation": self.step(0)}
            for _ in range(2)
        ]
        return {"type": "saga", "id": self.id(), "steps": steps}

    def split(self, depth):
        variants = [{"name": n, "weight": 1, "blocks": self.blocks(depth, 1)} for n in "xy"]
        return {"type": "a_b_split", "id": self.id(), "variants": variants}

    def graph(self, depth):
        return {
            "type": "graph",
            "id": self.id(),
            "start": "one",
            "nodes": {"one": self.blocks(depth, 1), "two": self.blocks(depth, 1)},
            "transitions": [{"from": "one", "to": "two"}],
        }


def a_story(seed):
    """A world with a random definition, not started yet, and the chance that goes on with it."""
    chance = random.Random(seed)
    writer = Writer(chance)
    more = {}
    if chance.random() < 0.3:
        more["on_failure"] = writer.blocks(0, 1)
    if chance.random() < 0.3:
        more["on_cancel"] = writer.blocks(0, 1)
    program = a_program(writer.blocks(2, 3), **more)
    return World(program, handlers=HANDLERS), chance


def tell_story(seed, events=40):
    """Run a story to its end or through so many events, yielding the world after each."""
    world, chance = a_story(seed)
    world.start({"items": [1, 2], "n": 0}, tick=1, seed=str(seed))
    yield world
    for _ in range(events):
        if world.decision.state in TERMINAL and not world.orders:
            return
        EVENTS[chance.choice(NAMES)](world, chance)
        yield world


def _settle(world, chance):
    if not world.orders:
        return _pass(world, chance)
    key = chance.choice(list(world.orders))
    kind = chance.random()
    if kind < 0.7:
        return world.apply({"n": world.tick}, world.orders[key].node)
    if kind < 0.85:
        retryable = chance.random() < 0.5
        return world.fail("no", world.orders[key].node, retryable=retryable)
    order = world.orders.pop(key)
    if order.mode == "reconcile":
        verdict = chance.choice(("applied", "failed", "retry"))
        return world.tell(EffectReconciled(key=key, verdict=verdict, result={"n": 1}))
    crashed = chance.random() < 0.5
    return world.tell(EffectDoubted(key=key, reason="lost", crashed=crashed))


def _pass(world, chance):
    due = world.decision.due
    if due is not None:
        world.tell(tick=max(world.tick, due) + chance.choice((0, 0, 3)))


def _signal(world, chance):
    world.signal(chance.choice(("custom:go", "pause", "resume", "update_context")), {"m": 1})


def _answer(world, chance):
    for id in (node.id for node in world.program.nodes.values() if node.kind == "step"):
        if world.program.nodes[id].block.wait_for_input and chance.random() < 0.5:
            world.signal(f"custom:human_input:{id}", {"value": "yes"})
            return


def _answer_safely(world, chance):
    if not any("/" in key for key in world.program.nodes):
        _answer(world, chance)


def _decide(world, chance):
    for effect in world.snapshot.effects:
        if effect.state == "indeterminate":
            action = chance.choice(("happened", "failed", "skip", "again"))
            world.command("resolve", {"key": effect.key, "action": action, "result": {"n": 2}})
            return


def _command(world, chance):
    world.command(chance.choice(("pause", "resume", "retry", "cancel")))


EVENTS = {
    "settle": _settle,
    "pass": _pass,
    "signal": _signal,
    "answer": _answer_safely,
    "decide": _decide,
    "command": _command,
}
NAMES = (
    ("settle",) * 8 + ("pass",) * 5 + ("signal",) * 2 + ("answer", "decide", "decide", "command")
)
