"""Events, webhooks and the work of others, through any door."""

from __future__ import annotations

from detent import sequence, step
from detent.ports.work import WorkQuery
from tests.integration.client.world import NOBODY, REFUSED, well
from tests.integration.doors import fresh
from tests.integration.web.following import until

LINE = {"ts": "2030-01-01T00:00:00Z", "level": "info", "message": "half way"}


def listener(world):
    """An instance that waits for an event; its tenant and key."""
    tenant, key = fresh("acme"), fresh("order")
    params = {"events": ["paid"], "correlation_key": key}
    waits = step("w", "wait_for_event", params=params, wait_for_input={"prompt": "?"})
    id = world.engine.start(sequence(fresh("waits"), waits), tenant=tenant)
    world.engine.wait_for(id, "waiting")
    return id, tenant, key


def event(world):
    tenant = fresh("acme")
    told = world.engine.events.send("paid", "o1", "p1", {"n": 1}, tenant=tenant)
    return told.event_id, tenant


# events ------------------------------------------------------------------------------------------


@well("events.send")
def _send(door, world):
    id, tenant, key = listener(world)
    first = door.events.send("paid", key, "p1", {"eur": 9}, tenant=tenant)
    again = door.events.send("paid", key, "p1", {"eur": 9}, tenant=tenant)
    assert first.event_id == again.event_id
    assert door.wait_for(id) == "completed"
    return [(each.duplicate, each.satisfied, each.matched_wait is None) for each in (first, again)]


@well("events.send_many")
def _send_many(door, world):
    told = [
        {"event_name": "paid", "correlation_key": "o", "producer_event_id": str(n), "payload": n}
        for n in range(3)
    ]
    tenant = fresh("acme")
    outcomes = door.events.send_many([*told, told[0]], tenant=tenant)
    kept = sorted(each.payload for each in world.engine.events.list(tenant=tenant))
    return [each.duplicate for each in outcomes], kept


@well("events.list")
def _list_events(door, world):
    id, tenant = event(world)
    (found,) = door.events.list("pending", tenant=tenant, limit=5)
    assert list(door.events.list("consumed", tenant=tenant)) == []
    assert found == world.engine.events.show(id)
    return found.status


@well("events.show")
def _show_event(door, world):
    id, tenant = event(world)
    found = door.events.show(id, tenant=tenant)
    assert found == door.events.show(id) == world.engine.events.show(id)
    return found.payload


# webhooks ----------------------------------------------------------------------------------------


@well("webhooks.outbox")
def _outbox(door, world):
    id, tenant = world.delivery(status=500)
    (found,) = door.webhooks.outbox(5, tenant=tenant)
    assert found == world.engine.webhooks.show(id)
    return found.state, found.delivered


@well("webhooks.list")
def _list_deliveries(door, world):
    id, tenant = world.delivery(status=204)
    assert list(door.webhooks.list(tenant=tenant, delivered=False)) == []
    (found,) = door.webhooks.list(5, tenant=tenant, delivered=True, url=world.receiver.url)
    assert found.id == id
    return found.state


@well("webhooks.show")
def _show_delivery(door, world):
    id, tenant = world.delivery(status=500)
    found = door.webhooks.show(id, tenant=tenant)
    assert found == world.engine.webhooks.show(id)
    return found.status


@well("webhooks.preview")
def _preview_delivery(door, world):
    id, tenant = world.delivery(status=500)
    found = door.webhooks.preview(id, tenant=tenant)
    assert found == world.engine.webhooks.preview(id)
    return found.disabled is None


@well("webhooks.redeliver")
def _redeliver(door, world):
    id, tenant = world.delivery(status=500)
    world.receiver.status = 204
    assert door.webhooks.redeliver(id, tenant=tenant) is None
    until(lambda: world.engine.webhooks.show(id).delivered)
    return world.engine.webhooks.show(id).state


@well("webhooks.drop")
def _drop(door, world):
    id, tenant = world.delivery(status=500)
    assert door.webhooks.drop(id, tenant=tenant) is None
    return world.engine.webhooks.show(id).state


@well("webhooks.disabled")
def _disabled(door, world):
    world.delivery(status=410)
    found = [each.url == world.receiver.url for each in door.webhooks.disabled()]
    world.engine.webhooks.enable(world.receiver.url)
    return found, list(door.webhooks.disabled())


@well("webhooks.enable")
def _enable(door, world):
    world.delivery(status=410)
    assert door.webhooks.enable(world.receiver.url) is None
    return list(world.engine.webhooks.disabled())


# work --------------------------------------------------------------------------------------------


@well("work.poll")
def _poll(door, world):
    job = world.task(params={"n": 1})
    (task,) = door.work.poll(job, "w1", limit=5, version="2", tenant="default")
    assert task == world.engine.work.show(task.id)
    queued = world.task(queue_name="quick")
    assert list(door.work.poll(queued, "w1", queue="slow")) == []
    (other,) = door.work.poll(queued, "w1", queue="quick")
    return task.params, task.state, task.claim_epoch, other.queue


@well("work.heartbeat")
def _heartbeat(door, world):
    task = world.claim()
    held = (task.id, "w1", task.claim_epoch)
    assert door.work.heartbeat(*held) == 0
    numbers = [door.work.heartbeat(*held, checkpoint={"at": n}, seq=n) for n in range(2)]
    return numbers, world.engine.work.show(task.id).checkpoint


@well("work.complete")
def _complete(door, world):
    task = world.claim()
    assert door.work.complete(task.id, "w1", task.claim_epoch, {"n": 7}, logs=[LINE]) is None
    state = door.wait_for(task.instance)
    return state, world.engine.inspect.show(task.instance).outputs


@well("work.fail")
def _fail(door, world):
    task = world.claim()
    assert door.work.fail(task.id, "w1", task.claim_epoch, "no paper", retryable=True) is None
    state = door.wait_for(task.instance)
    return state, world.engine.inspect.show(task.instance).error["message"]


@well("work.show")
def _show_task(door, world):
    task = world.claim()
    assert door.work.show(task.id, tenant="default") == world.engine.work.show(task.id)
    return door.work.show(task.id).state


@well("work.list")
def _list_tasks(door, world):
    task = world.claim()
    query = WorkQuery(states=("claimed", "failed"), handler=task.handler, worker="w1", limit=3)
    assert list(door.work.list(query)) == [world.engine.work.show(task.id)]
    return len(door.work.list()) > 0


@well("work.stats")
def _stats(door, world):
    task = world.claim("somebody")
    found = door.work.stats(tenant="default")
    assert found == world.engine.work.stats(tenant="default")
    return found.by_handler[task.handler], "somebody" in found.active_workers


@well("work.attempts")
def _attempts(door, world):
    task = world.claim()
    found = door.work.attempts(task.id, limit=5)
    assert list(found) == list(world.engine.work.attempts(task.id))
    return [each.event for each in found]


@well("work.workers")
def _workers(door, world):
    name = fresh("worker")
    task = world.claim(name)
    (found,) = [each for each in door.work.workers(include_stale=True) if each.id == name]
    return found.handlers == (task.handler,), found.in_flight, found.alive


REFUSED |= {
    "events.send": (lambda door, _: door.events.send("paid", " ", "p1"), "event.invalid"),
    "events.send_many": (lambda door, _: door.events.send_many([]), "event.invalid"),
    "events.list": (lambda door, _: door.events.list("lost"), "request.invalid"),
    "events.show": (lambda door, _: door.events.show(NOBODY), "event.not_found"),
    "webhooks.outbox": (lambda door, _: door.webhooks.outbox(0), "request.invalid"),
    "webhooks.list": (lambda door, _: door.webhooks.list(tenant=""), "request.invalid"),
    "webhooks.show": (lambda door, _: door.webhooks.show(NOBODY), "webhook.not_found"),
    "webhooks.preview": (lambda door, _: door.webhooks.preview("x"), "webhook.not_found"),
    "webhooks.redeliver": (
        lambda door, w: door.webhooks.redeliver(w.delivery(status=204)[0]),
        "webhook.state",
    ),
    "webhooks.drop": (
        lambda door, w: door.webhooks.drop(w.delivery(status=204)[0]),
        "webhook.state",
    ),
    "webhooks.disabled": None,  # there is always a list
    "webhooks.enable": (lambda door, _: door.webhooks.enable(""), "request.invalid"),
    "work.poll": (lambda door, _: door.work.poll("", "w1"), "request.invalid"),
    "work.heartbeat": (
        lambda door, w: door.work.heartbeat(w.claim().id, "w2", 1),
        "work.lost",
    ),
    "work.complete": (lambda door, _: door.work.complete(NOBODY, "w1", 1), "work.not_found"),
    "work.fail": (lambda door, w: door.work.fail(w.claim().id, "w1", 9, "no"), "work.lost"),
    "work.show": (lambda door, _: door.work.show("nobody"), "work.not_found"),
    "work.list": (lambda door, _: door.work.list(WorkQuery(states=("x",))), "request.invalid"),
    "work.stats": (lambda door, _: door.work.stats(tenant=""), "request.invalid"),
    "work.attempts": (lambda door, _: door.work.attempts(""), "work.not_found"),
    "work.workers": (lambda door, _: door.work.workers(tenant=""), "request.invalid"),
}
