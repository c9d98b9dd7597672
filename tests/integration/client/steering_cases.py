"""Starting, telling, asking and steering, through any door."""

from __future__ import annotations

import datetime as dt

import detent
from detent import sequence, step, wait
from detent.kernel.explain import Explanation
from detent.service.bulk import BulkFilter
from detent.service.starting import StartRequest
from tests.integration.client.world import LATER, NOBODY, REFUSED, greet, well
from tests.integration.doors import fresh

HOUR_MS = 3_600_000
MORE = step("more", greet, params={"name": "more"})


@well("start")
def _start(door, world):
    id = door.start(world.greeting(), {"name": "Ada"}, metadata={"by": "me"}, priority="High")
    assert door.wait_for(id, "waiting") == "waiting"
    view = world.engine.inspect.show(id)
    return view.outputs, view.metadata, view.summary.priority


@well("start_request")
def _start_request(door, world):
    request = StartRequest(
        data={"name": "Bo"}, key=fresh("key"), tenant=fresh("acme"), timezone="Europe/Rome"
    )
    made = world.greeting()
    id = door.start_request(made, request)
    assert door.start_request(made, request) == id
    view = world.engine.inspect.show(id)
    assert view.summary.tenant == request.tenant
    return view.timezone, view.data["name"]


@well("start_many")
def _start_many(door, world):
    ids = door.start_many(world.greeting(), [{"name": str(n)} for n in range(3)])
    for id in ids:
        door.wait_for(id, "waiting")
    return [world.engine.inspect.show(id).data["name"] for id in ids]


@well("signal")
def _signal(door, world):
    id, told = world.waiting(), fresh("signal")
    assert door.signal(id, "go", {"n": 1}, id=told) == told
    return door.wait_for(id)


@well("pause")
def _pause(door, world):
    id = world.asleep()
    assert door.pause(id) is None
    return world.engine.inspect.show(id).summary.state


@well("resume")
def _resume(door, world):
    id = world.asleep()
    world.engine.pause(id)
    assert door.resume(id) is None
    return world.engine.inspect.show(id).summary.state


@well("cancel")
def _cancel(door, world):
    id = world.asleep()
    assert door.cancel(id) is None
    return door.wait_for(id)


@well("retry")
def _retry(door, world):
    id = world.failed()
    assert door.retry(id) is None
    assert door.wait_for(id) == "failed"
    return [each.target for each in door.inspect.timeline(id).transitions].count("failed")


@well("resolve")
def _resolve(door, world):
    id = world.doubted()
    (call,) = door.inspect.doubts(id)
    assert door.resolve(id, call.effect, "happened", {"paid": True}) is None
    return door.wait_for(id), world.engine.inspect.show(id).outputs


@well("migrate")
def _migrate(door, world):
    id = world.waiting()
    name = world.engine.inspect.show(id).summary.name
    hi = step("hi", greet, params={"name": "{{ data.name }}"})
    newer = sequence(name, hi, wait("w", signal="go"), MORE, version=2)
    assert door.migrate(id, newer) is None
    door.migrate(id, undo=True)
    door.migrate(id, f"{name}@2")
    return world.engine.inspect.show(id).summary.version


@well("set_data")
def _set_data(door, world):
    id = world.waiting()
    assert door.set_data(id, {"name": "Eve", "n": [1, None]}) is None
    return world.engine.inspect.show(id).data


@well("set_state")
def _set_state(door, world):
    id, now_ms = world.asleep(), int(world.engine.now().timestamp() * 1000)
    states = [door.set_state(id, "paused"), door.set_state(id, "scheduled", at=LATER)]
    first = world.engine.inspect.show(id).summary.due_ms - now_ms
    door.set_state(id, "paused")
    instant = world.engine.now() + 2 * LATER
    door.set_state(id, "scheduled", at=instant)
    due_ms = world.engine.inspect.show(id).summary.due_ms
    assert abs(due_ms - instant.timestamp() * 1000) <= 1
    return states, round(first / HOUR_MS), door.set_state(id, "cancelled")


@well("reschedule")
def _reschedule(door, world):
    id = world.asleep()
    before = world.engine.inspect.show(id).summary.due_ms
    assert door.reschedule(id, dt.timedelta(hours=1)) is None
    door.reschedule(id, -60_000)
    return world.engine.inspect.show(id).summary.due_ms - before


@well("resume_from")
def _resume_from(door, world):
    id = world.failed()
    signals = [{"name": "go", "payload": {"n": 1}}]
    told = door.resume_from(id, "a", data={"more": True}, signals=signals)
    assert door.wait_for(id) == "failed"
    assert world.engine.inspect.show(id).data["more"] is True
    return told


@well("inject")
def _inject(door, world):
    id = world.waiting()
    told = door.inject(id, [MORE], position=0)
    door.signal(id, "go")
    assert door.wait_for(id) == "completed"
    return told, sorted(world.engine.inspect.show(id).outputs)


@well("bulk")
def _bulk(door, world):
    tenant = fresh("many")
    ids = [world.asleep(tenant) for _ in range(3)]
    mine = {"tenant": tenant}
    counted = door.bulk("pause", BulkFilter(**mine), dry_run=True)
    paused = door.bulk("pause", mine, limit=2)
    moved = door.bulk("set_state", mine, {"state": "scheduled", "at": 2 * LATER})
    spans = door.bulk("reschedule", mine, {"offset": dt.timedelta(hours=1)})
    told = door.bulk("signal", {**mine, "states": ["scheduled"]}, {"name": "go", "payload": 1})
    assert {world.engine.inspect.show(id).summary.state for id in ids} == {"scheduled"}
    return counted, paused, moved, spans, told


@well("command")
def _command(door, world):
    id = world.asleep()
    asked = fresh("ask")
    first = door.command(id, "set_state", {"state": "paused", "next_fire_at": None}, id=asked)
    door.command(id, "resume")
    again = door.command(id, "set_state", {"state": "paused", "next_fire_at": None}, id=asked)
    assert (first.ok, first.result) == (again.ok, again.result)
    digest = world.engine.inspect.show(id).summary.definition
    refused = _refusal(lambda: door.command(id, "migrate", {"to": "0" * 64}))
    assert refused in ("definition.unknown", "migrate.refused"), refused
    assert world.engine.inspect.show(id).summary.definition == digest
    return first.result, world.engine.inspect.show(id).summary.state


def _refusal(call):
    try:
        call()
    except detent.DetentError as error:
        return error.code
    return ""


@well("wait_for")
def _wait_for(door, world):
    return door.wait_for(world.ended), door.wait_for(world.waiting(), ["waiting", "failed"])


@well("deploy")
def _deploy(door, world):
    made, tenant = world.greeting(), fresh("acme")
    assert door.deploy(made, tenant=tenant) == door.deploy(made, tenant=tenant) == made.hash
    return world.engine.definition(made.name, tenant=tenant) == made


@well("definition")
def _definition(door, world):
    made = world.greeting(version=3)
    world.engine.deploy(made)
    return door.definition(made.name) == door.definition(made.name, 3) == made


@well("deprecate")
def _deprecate(door, world):
    made = world.greeting()
    world.engine.deploy(made)
    assert door.deprecate(made.name, 1) is None
    return _refusal(lambda: door.start(made.name))


@well("now")
def _now(door, world):
    return abs(door.now() - world.engine.now()) < dt.timedelta(seconds=30)


@well("explain")
def _explain(door, world):
    found = door.explain(world.waiting())
    assert isinstance(found, Explanation)
    return found.state, [wait.kind for wait in found.waits]


@well("replay")
def _replay(door, world):
    return door.replay(world.ended)


@well("fork")
def _fork(door, world):
    id = world.waiting()
    other = door.fork(id, before="w", data={"more": 1})
    late = door.fork(id, seq=1, dry_run=True)
    assert len({id, other, late}) == 3
    door.wait_for(other, "waiting")
    door.signal(other, "go")
    assert door.wait_for(other) == "completed"
    views = [world.engine.inspect.show(each) for each in (other, late)]
    return [(view.data, view.dry_run) for view in views]


REFUSED |= {
    "start": (lambda door, _: door.start("nowhere"), "definition.unknown"),
    "start_request": (
        lambda door, world: door.start_request(world.greeting(), StartRequest(priority="Urgent")),
        "request.invalid",
    ),
    "start_many": (lambda door, world: door.start_many(world.greeting(), "ab"), "request.invalid"),
    "signal": (lambda door, world: door.signal(world.ended, "go"), "instance.terminal"),
    "pause": (lambda door, world: door.pause(world.ended), "instance.transition"),
    "resume": (lambda door, world: door.resume(world.waiting()), "instance.transition"),
    "cancel": (lambda door, world: door.cancel(world.ended), "instance.transition"),
    "retry": (lambda door, world: door.retry(world.ended), "instance.transition"),
    "resolve": (lambda door, w: door.resolve(w.ended, "none", "skip"), "effect.not_found"),
    "migrate": (lambda door, w: door.migrate(w.waiting(), "nowhere"), "definition.unknown"),
    "set_data": (lambda door, w: door.set_data(w.ended, {"x": object()}), "payload.invalid"),
    "set_state": (lambda door, w: door.set_state(w.ended, "paused"), "instance.transition"),
    "reschedule": (lambda door, w: door.reschedule(w.ended, 5), "instance.transition"),
    "resume_from": (lambda door, w: door.resume_from(w.failed(), "none"), "request.invalid"),
    "inject": (
        lambda door, w: door.inject(w.waiting(), [{"type": "step", "id": "x"}]),
        "definition.invalid",
    ),
    "bulk": (lambda door, _: door.bulk("explode", {}), "request.invalid"),
    "command": (
        lambda door, w: door.command(w.failed(), "resume_from", {"block": "a", "signals": ["x"]}),
        "request.invalid",
    ),
    "wait_for": (
        lambda door, w: door.wait_for(w.asleep(), "failed", timeout=0.05),
        "request.timeout",
    ),
    "deploy": (
        lambda door, w: door.deploy(sequence(_deployed(w), wait("x", signal="y"))),
        "definition.conflict",
    ),
    "definition": (lambda door, _: door.definition("nowhere"), "definition.unknown"),
    "deprecate": (lambda door, _: door.deprecate("nowhere", 1), "definition.unknown"),
    "now": None,  # it can always be told
    "explain": (lambda door, _: door.explain(NOBODY), "instance.not_found"),
    "replay": (lambda door, _: door.replay(NOBODY), "instance.not_found"),
    "fork": (lambda door, w: door.fork(w.waiting(), before="never"), "fork.refused"),
}


def _deployed(world):
    made = world.greeting()
    world.engine.deploy(made)
    return made.name
