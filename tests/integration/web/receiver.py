"""A receiver of pushed tasks, and what tests of pushing share."""

from __future__ import annotations

import asyncio
import threading

from tests.integration.web.following import until
from tests.unit.handlers.network.loopback import Loopback, answer

QUEUE = "q"
SECRET = "whsec_c2VjcmV0LW9mLWEtdGFyZ2V0"


class Receiver:
    """Answers each pushed task with the next of `answers`; the last one stays.

    None is an answer that comes when it is let go on: `then`.
    """

    def __init__(self, *answers, at=0, then=None):
        self.answers = list(answers) or [answer(202)]
        self.then = then or answer(202)
        self.tasks = []
        self.requests = []
        self.there = 0  # how many are being answered now
        self.most = 0
        self._served = Loopback(self._say, at=at)
        self._held = threading.Event()

    def _say(self, seen):
        self.requests.append(seen)
        self.tasks.append(seen.json())
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        said = said(seen) if callable(said) else said
        return self._wait() if said is None else said

    async def _wait(self):
        """Take a task, and say nothing until it is let go on."""
        self.there += 1
        self.most = max(self.most, self.there)
        await asyncio.to_thread(self._held.wait, 20)
        self.there -= 1
        yield self.then

    def go_on(self):
        self._held.set()

    @property
    def url(self):
        return f"{self._served.url}/tasks"

    @property
    def port(self):
        return self._served.port

    def __enter__(self):
        self._served.__enter__()
        return self

    def __exit__(self, *error):
        self._held.set()
        self._served.__exit__(*error)

    def got(self, count=1):
        """Wait for so many tasks; the last of them."""
        until(lambda: len(self.tasks) >= count)
        return self.tasks[count - 1]


def done(output, **more):
    return answer(200, {"output": output, **more})


def pushed_to(server, url, *, tenant="acme", queue=QUEUE, **more):
    """Set a target; its record."""
    body = {"queue_name": queue, "url": url, **more}
    made = server.post("/queues/dispatch", body, tenant=tenant)
    assert made.status_code == 201, made.text
    return made.json()


def history(server, task, tenant="acme"):
    """The history of a task, as (event, epoch)."""
    lines = server.get(f"/workers/tasks/{task}/attempts", tenant=tenant).json()
    return [(line["event"], line["claim_epoch"]) for line in lines]


def task_of(server, instance, tenant="acme"):
    """The newest task of an instance."""
    found = server.get("/workers/tasks", tenant=tenant).json()
    return next(task for task in found if task["instance_id"] == instance)
