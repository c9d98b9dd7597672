"""Everything that only reads, through any door."""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import encode

from detent import Changes, InputChange, sequence, step, wait
from detent.ports.store import Page
from tests.integration.client.world import NOBODY, REFUSED, greet, well
from tests.integration.doors import fresh


def view(name, of="ended", **more):
    """A view of one instance: what the engine's own gives, through every door."""

    @well(f"inspect.{name}")
    def look(door, world):
        found = getattr(world, of)
        id = found() if callable(found) else found
        shown = getattr(door.inspect, name)(id, tenant="default", **more)
        assert shown == getattr(world.engine.inspect, name)(id, **more)
        return True

    REFUSED[f"inspect.{name}"] = (
        lambda door, _: getattr(door.inspect, name)(NOBODY, **more),
        "instance.not_found",
    )


view("show", "waiting")
view("tree", "waiting")
view("outputs")
view("timeline")
view("audit", action="run.", node="")
view("effects")
view("explain", "waiting", tick=5)
view("replay")
view("recompute")


@well("inspect.instances")
def _instances(door, world):
    tenant = fresh("acme")
    ids = [world.waiting(tenant) for _ in range(3)]
    first = door.inspect.instances(Page(states=("waiting",), limit=2), tenant=tenant)
    rest = door.inspect.instances(Page(after=first.next), tenant=tenant)
    return [ids.index(each.id) for each in (*first.items, *rest.items)]


@well("inspect.calls")
def _calls(door, world):
    return door.inspect.calls([world.ended, "nobody"])


@well("inspect.approvals")
def _approvals(door, world):
    tenant = fresh("people")
    asks = step("ok", "human_review", wait_for_input={"prompt": "Ship it?"})
    id = world.engine.start(sequence(fresh("asks"), asks), tenant=tenant)
    world.engine.wait_for(id, "waiting")
    (found,) = door.inspect.approvals(tenant=tenant, limit=5)
    assert [found] == world.engine.inspect.approvals(tenant=tenant)
    return found.prompt


@well("inspect.doubts")
def _doubts(door, world):
    id = world.doubted()
    (found,) = door.inspect.doubts(id, limit=5)
    assert [found] == world.engine.inspect.doubts(id)
    return found.state


@well("inspect.gated_tenants")
def _gated_tenants(door, world):
    tenant = fresh("gated")
    world.engine.limits.set("mail", max=1, window="1h", tenant=tenant)
    return tenant in door.inspect.gated_tenants(), door.inspect.gated_tenants(tenant="one")


@well("inspect.preview_migration")
def _preview_migration(door, world):
    id = world.waiting()
    name = world.engine.inspect.show(id).summary.name
    other = sequence(name, wait("other", signal="go"), version=2)
    possible = door.inspect.preview_migration(id, f"{name}@1")
    assert possible == world.engine.inspect.preview_migration(id, f"{name}@1")
    return possible, door.inspect.preview_migration(id, other)


@well("inspect.what_if")
def _what_if(door, world):
    made = sequence(fresh("says"), step("a", greet, params={"name": "{{ data.name }}"}))
    id = world.engine.start(made, {"name": "Ada"})
    world.engine.wait_for(id)
    other = sequence(made.name, step("b", greet, params={"name": "x"}), version=2)
    changed = Changes(definition=world.engine.deploy(other))
    found = door.inspect.what_if(id, changed)
    assert found == world.engine.inspect.what_if(id, changed)
    told = Raw(encode({"t": "signal", "name": "custom:more", "payload": {"n": 1}}))
    insert = InputChange(seq=1, index=1, verb="insert", body=told)
    inserted = door.inspect.what_if(id, Changes(inputs=(insert,)), tenant="default")
    assert inserted == world.engine.inspect.what_if(id, Changes(inputs=(insert,)))
    assert not inserted.same
    return found.same, found.state


REFUSED |= {
    "inspect.instances": (
        lambda door, _: door.inspect.instances(Page(limit=0)),
        "request.invalid",
    ),
    "inspect.calls": (lambda door, _: door.inspect.calls(["x"], tenant=""), "request.invalid"),
    "inspect.approvals": (lambda door, _: door.inspect.approvals(tenant=""), "request.invalid"),
    "inspect.doubts": (lambda door, _: door.inspect.doubts(tenant=""), "request.invalid"),
    "inspect.gated_tenants": (
        lambda door, _: door.inspect.gated_tenants(tenant=""),
        "request.invalid",
    ),
    "inspect.preview_migration": (
        lambda door, w: door.inspect.preview_migration(w.waiting(), "nowhere"),
        "definition.unknown",
    ),
    "inspect.what_if": (
        lambda door, w: door.inspect.what_if(w.ended, Changes(definition="0" * 64)),
        "definition.unknown",
    ),
}
