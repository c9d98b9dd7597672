"""A plan to the definition it stands for: one graph, a node per step, strict expressions.

`send_email` and `send_voice` become steps of the handlers `email` and `voice`; a branch becomes an
empty node whose transitions are its conditions; linear transitions lead from each step to the next,
but never from a branch or an end, which say themselves where they lead.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from detent.definition.places import below, did_you_mean, item, quoted
from detent.definition.shapes.fields import members
from detent.definition.shapes.plan import CALENDAR, EMAIL, PLAN, UNITS_MS, VOICE
from detent.definition.walk import Walk
from detent.definition.ways import Edges, check_ways, spread
from detent.model.plan import DEFAULT, GRAPH, ROOTS, SENDS

Move = dict[str, Any]

_PARAMS = {
    "send_email": tuple(field.name for field in EMAIL),
    "send_voice": tuple(field.name for field in VOICE),
}
_LEADING = ("branch", "end")  # they say themselves where they lead
_PASSED_ON = ("name", "version", "calendars", "input_schema", "policies", "sla", "pool", "sticky")


def is_plan(raw: dict[str, Any]) -> bool:
    """Whether raw data is a plan as authors write it."""
    return "steps" in raw and "blocks" not in raw


def compiled(walk: Walk, raw: dict[str, Any]) -> dict[str, Any]:
    """Check a plan, noting every fault with its place in it, and give the wire form of its graph.

    What is given is complete only if no fault was noted.
    """
    walk.strict, walk.face, walk.roots = True, "plan", ROOTS
    walk.steps = _ids(raw.get("steps"))
    walk.ids[GRAPH] = "the plan itself"
    plan = members(walk, "", raw, PLAN)
    steps = _standing(raw.get("steps"), plan.get("steps", ()))
    moves = [*_branches(steps), *_transitions(walk, plan, steps)]
    _check_names(walk, moves, steps)
    if steps:
        _check_ways(walk, moves, steps)
    return {} if walk.faults else _wire(plan, [move for _, move in moves])


class Standing(NamedTuple):
    """A step that can be named in questions about ways, whatever else is wrong with it."""

    key: str  # its id; of a second one with that id, one that nobody can name
    at: str
    type: str
    conditions: Any


def _ids(steps: Any) -> tuple[str, ...]:
    listed = steps if type(steps) is list else []
    ids = (step.get("id") for step in listed if type(step) is dict)
    return tuple(id for id in ids if type(id) is str)


def _standing(raw: Any, checked: Any) -> list[Standing]:
    found: dict[str, Standing] = {}
    for index, out in enumerate(checked):
        given = raw[index]
        id = given.get("id") if type(given) is dict else None
        if type(id) is not str or type(out) is not dict:
            continue
        key = id if id not in found else f"{id}#{index}"
        conditions = out.get("conditions", ())
        found[key] = Standing(key, item("steps", index), given["type"], conditions)
    return list(found.values())


def _branches(steps: list[Standing]) -> list[tuple[str, Move]]:
    """The ways out of branches, each with its place."""
    moves: list[tuple[str, Move]] = []
    for step in steps:
        for at, each in enumerate(step.conditions):
            if type(each) is dict and "goto" in each:
                place = below(item(below(step.at, "conditions"), at), "goto")
                moves.append((place, _move(step.key, each["goto"], each.get("when", DEFAULT))))
    return moves


def _transitions(walk: Walk, plan: dict[str, Any], steps: list[Standing]) -> list[tuple[str, Move]]:
    given = plan.get("transitions", "linear")
    if given == "linear":
        return [
            (step.at, _move(step.key, following.key, DEFAULT))
            for step, following in pairwise(steps)
            if step.type not in _LEADING
        ]
    moves: list[tuple[str, Move]] = []
    kinds = {step.key: step.type for step in steps}
    for at, each in enumerate(given):
        if type(each) is not dict or "from" not in each or "to" not in each:
            continue
        place, origin = item("transitions", at), each["from"]
        if kinds.get(origin) in _LEADING:
            message = (
                f"{quoted(origin)} is a {kinds[origin]}, which no transition leaves; remove it"
            )
            walk.fault(below(place, "from"), "definition.exclusive", message)
        moves.append((place, _move(origin, each["to"], each.get("when", DEFAULT))))
    return moves


def _move(origin: str, to: str, when: str) -> Move:
    move = {"from": origin, "to": to}
    return move if when == DEFAULT else {**move, "when": when}


def _check_names(walk: Walk, moves: list[tuple[str, Move]], steps: list[Standing]) -> None:
    keys = [step.key for step in steps]
    for place, move in moves:
        for end in ("from", "to"):
            if move[end] in keys:
                continue
            near = did_you_mean(move[end], keys) or "; add the step or correct the name"
            message = f"expected a step of this plan, found {quoted(move[end])}{near}"
            if place.endswith(".goto"):
                walk.fault(place, "definition.goto", message)
            else:
                walk.fault(below(place, end), "definition.node", message)


def _check_ways(walk: Walk, moves: list[tuple[str, Move]], steps: list[Standing]) -> None:
    """Ask about ways as the plan stands; a way to nowhere may lead anywhere, so it is a way out."""
    edges: Edges = {step.key: [] for step in steps}
    always = dict.fromkeys(edges, False)
    lost: list[str] = []
    for _, move in moves:
        origin, to = move["from"], move["to"]
        if origin not in edges or always[origin]:
            continue
        if to in edges:
            edges[origin].append(to)
        else:
            lost.append(origin)
        always[origin] = "when" not in move
    ends = [key for key, certain in always.items() if not certain]
    places = {step.key: step.at for step in steps}
    twice = [step.key for step in steps if step.key not in walk.steps]
    check_ways(walk, [steps[0].key, *twice], edges, [*ends, *lost], places.__getitem__)
    _check_branches(walk, edges, {step.key: step.at for step in steps if step.type == "branch"})


def _check_branches(walk: Walk, edges: Edges, branches: dict[str, str]) -> None:
    """Note a branch that leads back to itself by branches alone: no time passes on that way."""
    only = {key: [to for to in edges[key] if to in branches] for key in branches}
    for key, place in branches.items():
        if any(key in spread([to], only) for to in only[key]):
            message = f"{quoted(key)} leads back to itself by branches alone; put a wait between"
            walk.fault(place, "definition.cycle", message)


def _wire(plan: dict[str, Any], moves: list[Move]) -> dict[str, Any]:
    nodes = {step["id"]: _body(step) for step in plan["steps"]}
    graph = {"type": "graph", "id": GRAPH, "start": plan["steps"][0]["id"]}
    about = {name: plan[name] for name in ("description", "created_by") if name in plan}
    return {
        **{name: plan[name] for name in _PASSED_ON if name in plan},
        "face": "plan",
        "mode": "strict",
        "blocks": [{**graph, "nodes": nodes, "transitions": moves}],
        "exits": plan.get("exit_conditions", []),
        "metadata": {**plan.get("metadata", {}), **about},
    }


def _body(step: dict[str, Any]) -> list[dict[str, Any]]:
    kind = step["type"]
    if kind == "branch":
        return []
    if kind == "wait":
        return [_wait(step)]
    if kind not in SENDS:
        return [step]
    own = _PARAMS[kind]
    params = {name: step[name] for name in own if name in step}
    options = {name: value for name, value in step.items() if name not in own}
    return [{**options, "type": "step", "handler": SENDS[kind], "params": params}]


def _wait(step: dict[str, Any]) -> dict[str, Any]:
    wait = {"type": "wait", "id": step["id"]}
    units = [name for name in UNITS_MS if name in step]
    if units:
        wait["duration"] = sum(round(step[name] * UNITS_MS[name]) for name in units)
    elif "duration" in step:
        wait["duration"] = step["duration"]
    calendar = {name: step[name] for name in CALENDAR if name in step}
    until = {**step.get("until", {}), **calendar}
    return {**wait, "until": until} if until else wait
