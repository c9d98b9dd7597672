"""One served engine with everything that a verb can be tried on, and three doors to it."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from functools import cached_property

import httpx2

import detent
from detent import sequence, step, wait
from tests.integration.doors import doors, fresh
from tests.integration.web.following import until
from tests.integration.web.house import VAULT
from tests.integration.web.test_deliveries import Receiver

NOBODY = "01a1ee28-56ee-7e9b-abcc-544bcf47cf0a"
LATER = dt.timedelta(hours=2)

WELL = {}  # verb -> what it does when all is well: (door, world) -> something to compare
REFUSED = {}  # verb -> (a call that is refused, its code)


def well(name):
    """Say what a verb does; what it gives is the same through every door."""

    def keep(run):
        assert name not in WELL, name
        WELL[name] = run
        return run

    return keep


@detent.handler
def greet(name: str) -> dict:
    return {"hello": name}


@detent.handler(on_doubt="once")
def charge(order: str) -> dict:
    raise TimeoutError(order)  # so nobody knows whether it happened


@detent.handler
def broken() -> dict:
    raise detent.Failed("no such thing", retryable=False)


async def post(url, headers, body, timeout_ms):
    async with httpx2.AsyncClient(timeout=timeout_ms / 1000) as client:
        answer = await client.post(url, headers=dict(headers), content=body)
    return answer.status_code, answer.headers, answer.text


class World:
    """What verbs are tried on; each thing is made by the engine itself."""

    def __init__(self, house, receiver):
        self.house = house
        self.engine = house.engine
        self.receiver = receiver

    def greeting(self, version=1, **fields):
        """A step, then a wait for a signal."""
        hello = step("hi", greet, params={"name": "{{ data.name }}"})
        return sequence(fresh("greets"), hello, wait("w", signal="go"), version=version, **fields)

    def waiting(self, tenant="default"):
        """An instance that waits for a signal."""
        id = self.engine.start(self.greeting(), {"name": "Ada"}, tenant=tenant)
        self.engine.wait_for(id, "waiting")
        return id

    def asleep(self, tenant="default"):
        """An instance that begins in two hours."""
        return self.engine.start(self.greeting(), {"name": "Ada"}, tenant=tenant, at=LATER)

    def failed(self):
        """An instance of two steps whose second one failed."""
        made = sequence(fresh("fails"), step("a", greet, params={"name": "x"}), step("b", broken))
        id = self.engine.start(made)
        assert self.engine.wait_for(id) == "failed"
        return id

    @cached_property
    def ended(self):
        """An instance that has completed."""
        id = self.engine.start(sequence(fresh("ends"), step("a", greet, params={"name": "x"})))
        assert self.engine.wait_for(id) == "completed"
        return id

    def doubted(self):
        """An instance with an effect that nobody knows the outcome of."""
        made = sequence(fresh("charges"), step("pay", charge, params={"order": "9"}))
        id = self.engine.start(made)
        until(lambda: [each.state for each in self.engine.inspect.doubts(id)] == ["indeterminate"])
        return id

    def task(self, **options):
        """A handler of external workers with a task of it; the handler's name."""
        job = fresh("job")
        id = self.engine.start(sequence(fresh("works"), step("s", job, **options)))
        self.engine.wait_for(id, "waiting")
        return job

    def claim(self, worker="w1"):
        """A task that a worker holds."""
        (task,) = self.engine.work.poll(self.task(), worker)
        return task

    def breaker(self):
        """A handler that has failed once, and so has a breaker."""
        handler, tenant = fresh("flaky"), fresh("breaks")
        id = self.engine.start(sequence(fresh("works"), step("s", handler)), tenant=tenant)
        self.engine.wait_for(id, "waiting")
        (task,) = self.engine.work.poll(handler, "w1")
        self.engine.work.fail(task.id, "w1", task.claim_epoch, "no")
        self.engine.wait_for(id, "failed")
        return handler, tenant

    def delivery(self, status=500):
        """A delivery that has ended: parked, or with status 204 delivered; and its tenant."""
        self.receiver.status = status
        tenant = fresh("told")
        id = self.engine.start(
            sequence(fresh("ends"), step("a", greet, params={"name": "x"})), tenant=tenant
        )
        self.engine.wait_for(id)
        until(lambda: self.engine.webhooks.list(tenant=tenant))
        (sent,) = self.engine.webhooks.list(tenant=tenant)
        self.engine.wait_for(sent.id)
        return sent.id, tenant


@contextmanager
def world(path):
    """A world with its doors open."""
    receiver = Receiver()
    settings = {
        "workers": True,
        "vault_key": VAULT,
        "breaker_threshold": 1_000,  # of all that fails here, nothing is to stop
        "webhooks": [{"url": receiver.url}],
        "webhook_delivery": {"backoff_ms": 1, "retries": 0},
        "webhook_post": post,
    }
    try:
        with doors(path, handlers=[greet, charge, broken], **settings) as house:
            yield World(house, receiver)
    finally:
        receiver.close()
