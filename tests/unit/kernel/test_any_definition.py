"""Any definition, any order of outcomes, signals and time: it is decided and comes to rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed, EffectReconciled
from tests.unit.kernel import blocks as make
from tests.unit.kernel.driver import World
from tests.unit.kernel.invariants import MOVES, TERMINAL, frames_of

HANDLERS = {
    "plain": {"doubt": "repeatable"},
    "keyed": {"doubt": "keyed"},
    "unmarked": {"doubt": "keyed", "withdrawable": False},
    "asked": {"doubt": "queryable"},
    "once": {"doubt": "once", "timeout_ms": 5000},
    "policy": {},
}


class Names:
    """Ids in the order in which they are asked for."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return f"b{self.count}"


def a_leaf(draw, name, within):
    kinds = ["noop", "fail", "call", "call", "call", "sleep", "wait", "signal", "human", "sub"]
    kind = draw(st.sampled_from([*kinds, "goto"] if within else kinds))
    options = {}
    if draw(st.integers(0, 3)) == 0:
        options["retry"] = make.retry(
            draw(st.integers(1, 3)), first=draw(st.sampled_from([0, 300]))
        )
    if draw(st.integers(0, 5)) == 0:
        options["deadline"] = 2000
    if draw(st.integers(0, 5)) == 0:
        options["cancellable"] = False
    if draw(st.integers(0, 7)) == 0:
        options["delay"] = {"duration": draw(st.sampled_from([0, 500]))}
    match kind:
        case "noop":
            return make.noop(name(), **options)
        case "fail":
            return make.fails(name(), retryable=draw(st.booleans()), **options)
        case "sleep":
            return make.sleep(name(), draw(st.sampled_from([0, 100, 3000])), **options)
        case "wait":
            return make.wait(name(), duration=draw(st.sampled_from([0, 700])))
        case "signal":
            more = {"duration": 4000} if draw(st.booleans()) else {}
            return make.wait(name(), signal=draw(st.sampled_from(["x", "y"])), **more)
        case "human":
            more = {"timeout": 1500} if draw(st.booleans()) else {}
            if more and draw(st.booleans()):
                more["escalation_handler"] = "plain"
            return make.human(name(), handler="once", **more)
        case "sub":
            return make.sub(draw(st.sampled_from(["child", "missing"])), id=name())
        case "goto":
            return make.goto(draw(st.sampled_from(within)), id=name())
    handler = draw(st.sampled_from(["plain", "keyed", "unmarked", "asked", "once"]))
    return make.call(name(), handler, **options)


def a_list(draw, name, depth, within=(), least=0):
    many = draw(st.integers(least, 3 if depth else 2))
    return [a_block(draw, name, depth, within) for _ in range(many)]


def a_block(draw, name, depth, within=()):
    if depth == 0 or draw(st.booleans()):
        return a_leaf(draw, name, within)
    kind = draw(st.sampled_from(KINDS))
    return kind(draw, name, depth - 1, within)


def a_parallel(draw, name, depth, within):
    branches = [a_list(draw, name, depth, within) for _ in range(draw(st.integers(1, 3)))]
    return make.parallel(*branches, id=name())


def a_race(draw, name, depth, within):
    branches = [a_list(draw, name, depth, within) for _ in range(draw(st.integers(1, 3)))]
    semantics = draw(st.sampled_from(["first_to_resolve", "first_to_succeed"]))
    return make.race(*branches, id=name(), semantics=semantics)


def a_loop(draw, name, depth, within):
    options = {"max_iterations": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        options["continue_on_error"] = True
    if draw(st.integers(0, 3)) == 0:
        options["poll_interval"] = 1
    return make.loop(*a_list(draw, name, depth, within, 1), id=name(), **options)


def a_for_each(draw, name, depth, within):
    return make.for_each(*a_list(draw, name, depth, within, 1), id=name())


def a_router(draw, name, depth, within):
    route = (draw(st.sampled_from(["true", "false"])), a_list(draw, name, depth, within))
    return make.router(route, id=name(), default=a_list(draw, name, depth, within))


def a_try(draw, name, depth, within):
    tried = a_list(draw, name, depth, within, 1)
    caught = a_list(draw, name, depth, within)
    last = a_list(draw, name, depth, within) if draw(st.booleans()) else None
    return make.attempt(tried, caught, last, id=name())


def a_split(draw, name, depth, within):
    arms = [(f"v{n}", 1, a_list(draw, name, depth, within)) for n in range(2)]
    return make.split(*arms, id=name())


def a_scope(draw, name, depth, within):
    return make.scope(*a_list(draw, name, depth, within, 1), id=name())


def a_saga(draw, name, depth, within):
    steps = []
    for _ in range(draw(st.integers(0, 3))):
        undo = a_block(draw, name, depth, within) if draw(st.booleans()) else None
        steps.append((a_block(draw, name, depth, within), undo))
    return make.saga(*steps, id=name())


def a_node(draw, name, depth, within):
    """Leaves, and one block whose inner blocks may go to another node."""
    kind = draw(st.sampled_from(KINDS))
    return [*a_list(draw, name, 0), kind(draw, name, max(0, depth - 1), within)]


def a_graph(draw, name, depth, _within):
    # `out` ends the graph and every node has a way there, whatever gotos do
    names = ["one", "two", "out"]
    nodes = {
        "one": a_node(draw, name, depth, ("two", "out")),
        "two": a_node(draw, name, depth, ("out",)),
        "out": [],
    }
    ways = [("one", "two", "data.never == null"), ("one", "out"), ("two", "out")]
    return make.graph(nodes, *ways, id=name(), start=names[0])


KINDS = [
    a_parallel,
    a_race,
    a_loop,
    a_for_each,
    a_router,
    a_try,
    a_split,
    a_scope,
    a_saga,
    a_graph,
]


@st.composite
def definitions(draw):
    name = Names()
    more = {}
    if draw(st.integers(0, 2)) == 0:
        more["on_failure"] = a_list(draw, name, 1, least=1)
    if draw(st.integers(0, 2)) == 0:
        more["on_cancel"] = a_list(draw, name, 1, least=1)
    if draw(st.integers(0, 3)) == 0:
        action = draw(st.sampled_from(["pause", "fail", "skip_with_log"]))
        budget = {"max_effects": draw(st.integers(1, 3)), "action": action}
        more["policies"] = [{"kind": "effect_budget", "params": budget}, {"handler": "policy"}]
    if draw(st.integers(0, 3)) == 0:
        more["sla"] = {"max_runtime": 500, "max_step_runtime": 300}
    if draw(st.integers(0, 3)) == 0:
        moments = ("before_step", "after_step", "on_signal", "on_complete", "on_failure")
        more["interceptors"] = {each: {"handler": "log"} for each in moments}
    return a_list(draw, name, 3, least=1), more


def an_outcome(draw, world):
    """Answer one open call in some way that its class allows."""
    order = world.orders.pop(draw(st.integers(0, len(world.orders) - 1)))
    if order.marked and order.key not in world.marks and draw(st.booleans()):
        world.marks[order.key] = 1
    if order.mode == "reconcile":
        verdict = draw(st.sampled_from(["applied", "failed", "retry"]))
        told = EffectReconciled(key=order.key, verdict=verdict, result={"r": 1})
    elif order.handler == "policy":
        verdicts = [
            {"allowed": True},
            {"allowed": True},
            {"allowed": False, "action": "pause"},
            {"allowed": False, "action": "defer", "for_ms": 100},
            {"allowed": "perhaps"},
            {"allowed": False, "action": "skip_with_log"},
        ]
        told = EffectApplied(key=order.key, result=draw(st.sampled_from(verdicts)))
    else:
        told = draw(
            st.sampled_from(
                [
                    EffectApplied(key=order.key, result={order.block: 1}),
                    EffectApplied(key=order.key, result=None),
                    EffectFailed(key=order.key, message="no", retryable=True),
                    EffectFailed(key=order.key, message="never", retryable=False),
                    EffectDoubted(key=order.key, reason="lost"),
                    EffectDoubted(key=order.key, reason="died", crashed=True),
                ]
            )
        )
    world.tell(told, to=order.instance)
    return told


def a_move(draw, world, told):
    """One thing that may happen to the instance."""
    kinds = [
        "time",
        "time",
        "outcome",
        "outcome",
        "outcome",
        "outcome",
        "signal",
        "human",
        "pause",
        "resume",
        "cancel",
        "resolve",
        "retry",
        "late",
        "steer",
        "steer",
    ]
    match draw(st.sampled_from(kinds)):
        case "time":
            world.tick += draw(st.sampled_from([0, 1, 7, 100, 40_000]))
            for id in list(world.actors):
                world.tell(to=id)
        case "outcome" if world.orders:
            told.append(an_outcome(draw, world))
        case "signal":
            world.signal(
                draw(st.sampled_from(["custom:x", "custom:y", "update_context"])), {"s": 1}
            )
        case "human":
            value = draw(st.sampled_from(["yes", "perhaps"]))
            world.signal(f"custom:human_input:b{draw(st.integers(1, 6))}", {"value": value})
        case "pause" | "resume" | "cancel" | "retry" as verb:
            world.command(verb)
        case "resolve":
            decide(draw, world)
        case "late" if told:
            world.tell(draw(st.sampled_from(told)))
        case "steer":
            steer(draw, world)


def steer(draw, world):
    """What a person may ask for beside that; much of it is refused."""
    id = draw(st.sampled_from(list(world.actors)))
    match draw(st.sampled_from(["set_data", "set_state", "reschedule", "resume_from", "inject"])):
        case "set_data":
            world.command("set_data", {"data": {"items": [3]}}, id)
        case "set_state":
            state = draw(st.sampled_from(list(MOVES)))
            later = state == "scheduled" and draw(st.booleans())
            args = {"state": state, "next_fire_at": world.tick + 20 if later else None}
            world.command("set_state", args, id)
        case "reschedule":
            world.command("reschedule", {"offset_ms": draw(st.sampled_from([-900, 900]))}, id)
        case "resume_from":
            block = draw(st.sampled_from(world.programs[world.actors[id].definition].main)).id
            world.command("resume_from", {"block": block, "data": {"again": True}}, id)
        case "inject":
            added = [make.call(f"in{world.count}", "once"), make.noop(f"then{world.count}")]
            position = draw(st.sampled_from([None, 0, 1]))
            world.command("inject", {"blocks": added, "position": position}, id)


def decide(draw, world):
    for id in list(world.actors):
        for effect in world.snap(id).effects:
            if effect.state == "indeterminate":
                action = draw(st.sampled_from(["happened", "failed", "skip", "again"]))
                world.resolve(effect.key, action, to=id)


def bring_to_rest(world):
    """Give everything what it waits for: whatever happened before, all instances must end."""
    for _ in range(300):
        ids = [
            id
            for id in world.actors
            if world.snap(id).state not in TERMINAL or open_calls(world, id)
        ]
        if not ids:
            return
        for id in ids:
            release(world, id)
        while world.orders:
            order = world.orders.pop(0)
            if order.mode == "reconcile":
                told = EffectReconciled(key=order.key, verdict="applied")
            else:
                told = EffectApplied(key=order.key, result={"allowed": True})
            world.tell(told, to=order.instance)
        dues = [world.actors[id].decision.due for id in ids if world.actors[id].decision.due]
        world.tick = max(world.tick, min(dues, default=0))
        for id in ids:
            world.tell(to=id)
    raise AssertionError("the instances never came to an end")


def check_calls(world):
    """What may not be repeated was called once per key, unless a person said again."""
    calls = [order.key for order in world.history if order.mode == "call" and order.doubt == "once"]
    asked = [
        entry[2]["key"]
        for id in world.actors
        for entry in world.entries("effect.resolved", id)
        if entry[2]["action"] == "again"
    ]
    for key in calls:
        assert calls.count(key) == 1 + asked.count(key)


def open_calls(world, id):
    return world.snap(id).effects


def release(world, id):
    """Resume, decide and answer what stands."""
    if world.snap(id).state == "paused":
        world.command("resume", to=id)
    for effect in open_calls(world, id):
        if effect.state == "indeterminate":
            world.resolve(effect.key, "happened", to=id)
    for frame in frames_of(world.snap(id).root):
        if frame.wait is not None and frame.wait.kind in ("signal", "human"):
            world.signal(f"custom:{frame.wait.name}", {"value": "yes"}, to=id)


@pytest.mark.req("CORE-STM-1", "CORE-STM-4", "CORE-STM-6", "CORE-EFF-3", "CORE-RPL-1")
@settings(max_examples=120)
@given(definitions(), st.data())
def test_whatever_happens_to_whatever_definition_it_never_raises_and_comes_to_rest(made, data):
    blocks, more = made
    world = World(*blocks, handlers=HANDLERS, **more)
    world.define("child", [make.noop("c0"), make.call("c1", "plain"), make.call("c2", "once")])
    budget = data.draw(st.sampled_from([None, None, {"max_steps": 2, "max_total_tokens": 1}]))
    world.start({"items": [1, 2]}, budget=budget)
    told = []
    for _ in range(data.draw(st.integers(0, 20))):
        a_move(data.draw, world, told)
    bring_to_rest(world)
    check_calls(world)
