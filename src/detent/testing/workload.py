"""The workload of a seed: definitions, and what callers do at which hour. All of it is data.

Instances start some minutes apart and everything they wait for takes whole hours, so that callers,
each of whom comes at a minute of its own, never meet anybody in the middle of something. In wild
worlds they do.
"""

from __future__ import annotations

from random import Random
from typing import Any

from detent.definition import sequence, step
from detent.model.definition import Definition
from detent.model.ids import derived_id
from detent.model.limits import INSTANCES_PER_TURN
from detent.testing.authoring import Author, Piece, Traits
from detent.testing.authoring_limits import Limiter
from detent.testing.workload_limits import limited_actions, places_of
from detent.testing.world import (
    APART,
    HOUR_TICKS,
    LATE_HOURS,
    MINUTE_TICKS,
    Action,
    World,
    command,
    in_order,
)

LIMITED = 3  # every third world asks gates


def world_of(seed: int) -> World:
    """The world of a seed, always the same."""
    rng = Random(f"detent world {seed}")
    if seed % LIMITED == 0:
        return _limited_world(seed, rng)
    count = rng.choice((1, 1, 1, 2, 2, 3))
    instances = tuple(derived_id("default", "instance", f"w{seed}-{i}") for i in range(count))
    wild = rng.random() < 0.25
    traits = Traits(
        wild=wild,
        pausing=rng.random() < 0.4,
        children=("kid",),
        targets=instances if count > 1 else (),
    )
    definitions = _definitions(rng, traits, count)
    script = _script(rng, traits, instances, seed)
    return World(seed, traits, definitions, script, instances)


def _limited_world(seed: int, rng: Random) -> World:
    """A world whose steps ask gates, of one tenant or several."""
    places = places_of(rng, seed)
    instances = tuple(place.instance for place in places)
    wild = rng.random() < 0.4
    traits = Traits(
        wild=wild,
        pausing=rng.random() < 0.3,
        children=("kid",) if rng.random() < 0.3 else (),
        targets=instances if wild else (),
        limited=True,
    )
    limiter = Limiter(rng)
    count = rng.choice((1, 1, 2))
    definitions = _definitions(rng, traits, count, limiter)
    base, actions = limited_actions(rng, traits, places, count)
    if wild:
        for number in range(10, 10 + rng.randint(0, 3)):
            at = base + rng.choice((0, 1, MINUTE_TICKS, rng.randint(0, 5) * HOUR_TICKS))
            actions += _deeds(rng, traits, rng.choice(instances), at, number)
    room = rng.choice((1, 2, 3, INSTANCES_PER_TURN, INSTANCES_PER_TURN))
    if any(rule.windows for rule in limiter.rules.values()):
        room = INSTANCES_PER_TURN  # one called too late comes back before others have been called
    return World(seed, traits, definitions, in_order(actions), instances, limiter.rules, room)


def _definitions(
    rng: Random, traits: Traits, count: int, limiter: Limiter | None = None
) -> dict[str, Definition]:
    kid = Author(rng, traits._replace(children=(), targets=()), "_kid", limiter).body(2)
    made = {"kid": _sequence(rng, traits, "kid", kid)}
    for index in range(count):
        body = Author(rng, traits, f"_{index}", limiter).body(rng.randint(2, 4))
        made[f"d{index}"] = _sequence(rng, traits, f"d{index}", body)
    return made


def _sequence(rng: Random, traits: Traits, name: str, body: Piece) -> Definition:
    options: dict[str, Any] = {}
    if rng.random() < 0.2:
        options["on_failure"] = [step("sorry", "post", params={"act": "ok"})]
    if rng.random() < 0.2:
        options["on_cancel"] = [step("bye", "pay", params={"act": "ok"})]
    if traits.pausing:
        options["policies"] = [{"handler": "guard"}]
        if rng.random() < 0.3:
            budget = {"max_effects": 500, "action": "pause"}
            options["policies"].append({"kind": "effect_budget", "params": budget})
    return sequence(name, *body.blocks, **options)


def _script(
    rng: Random, traits: Traits, instances: tuple[str, ...], seed: int
) -> tuple[Action, ...]:
    actions = [Action(0, "deploy:kid", "deploy", args={"name": "kid"})]
    for index, instance in enumerate(instances):
        data: dict[str, Any] = {"n": rng.randint(0, 9), "items": [1, 2]}
        if rng.random() < 0.1:
            data["big"] = "y" * 50_000
        args = {
            "name": f"d{index}",
            "data": data,
            "priority": rng.choice(("Normal", "High")),
            "key": f"w{seed}-{index}",
        }
        actions.append(Action(index * APART, f"start:{index}", "start", instance, args))
    for number in range(rng.randint(0, 4)):
        at = rng.randint(0, 5) * HOUR_TICKS + (25 + 8 * number) * MINUTE_TICKS
        if traits.wild and rng.random() < 0.5:
            at = rng.randint(0, 2) * APART
        actions += _deeds(rng, traits, rng.choice(instances), at, number)
    for number in range(rng.choice((0, 0, 1))):
        at = rng.choice((0, APART, HOUR_TICKS // 2, 3 * HOUR_TICKS))
        actions.append(Action(at, f"restart:{number}", "restart"))
    actions.append(Action(LATE_HOURS * HOUR_TICKS, "late", "idle"))
    return in_order(actions)


def _deeds(rng: Random, traits: Traits, instance: str, at: int, number: int) -> list[Action]:
    name = f"{number}:{instance}"
    signal = Action(at, f"signal:{name}", "signal", instance, {"name": f"s{rng.randint(1, 2)}"})
    update = {"name": "update_context", "payload": {f"told{number}": number, "healed": True}}
    deeds = [[signal], [signal], [Action(at, f"update:{name}", "signal", instance, update)]]
    deeds.append([command(at, "cancel", name, instance)])
    deeds.append([deeds[2][0], command(at + 1, "retry", name, instance)])
    if traits.pausing or traits.wild:
        later = at + rng.randint(1, 3) * HOUR_TICKS
        pause = command(at, "pause", name, instance)
        resume = command(later, "resume", name, instance)
        deeds += [[pause, resume], [pause, resume], [pause]]
    return rng.choice(deeds)
