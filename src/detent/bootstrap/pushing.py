"""The pusher: a server brings the tasks of pushed queues to their URLs.

It sleeps until a task of such a queue is made, a target is changed, or a pause is over. What it
claims it sends at once, a bounded number at a time for each target; what the answer means is done
in the store before the place is free for the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from detent.bootstrap.own import network_of
from detent.handlers.network import NotSentError, Outside, Posting
from detent.kernel.webhooks import signed_headers
from detent.model import limits
from detent.model.errors import RequestError
from detent.runtime import failpoints
from detent.service.pushing import Again, Look, Meaning, Push, Unsure, meaning
from detent.web.api.worker_shapes import task_wire

if TYPE_CHECKING:
    from detent.bootstrap.desk import EngineDesk
    from detent.bootstrap.push_room import PushRoom
    from detent.bootstrap.settings import Settings
    from detent.service.bell import WorkBell
    from detent.service.work import Topic

_GRACE_S = 5.0
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("detent.pushing")


class Reply(Protocol):
    """A whole answer."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


Send = Callable[[str, Mapping[str, str], bytes, int], Awaitable[Reply]]


def guarded_send(settings: Settings) -> Send:
    """How tasks are sent: by the guarded client, where an engine's calls may go."""
    reach = replace(network_of(settings), max_body_bytes=limits.PUSH_ANSWER_BYTES)
    return Posting(Outside(reach)).send


class Pusher:
    """Pushes until it is cancelled; lives on one loop."""

    def __init__(self, desk: EngineDesk, bell: WorkBell, room: PushRoom, send: Send) -> None:
        self._desk = desk
        self._bell = bell
        self._room = room
        self._send = send
        self._busy: Counter[str] = Counter()  # by target
        self._queues: frozenset[tuple[str, str]] = frozenset()
        self._troubles: tuple[tuple[str, str], ...] = ()
        self._sending: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Push what is due, and wait for more."""
        loop = asyncio.get_running_loop()

        def heard(topic: Topic | None) -> None:
            """On any thread: there is a new task, or something else has changed."""
            if topic is None or (topic[2], topic[1]) in self._queues:
                with suppress(RuntimeError):  # the loop is closed: nobody pushes any more
                    loop.call_soon_threadsafe(self._news.set)

        stop = self._bell.attend(heard)
        try:
            while True:
                self._news.clear()
                await self._rest(await self._look())
        finally:
            stop()
            await self._finish()

    async def _look(self) -> Look:
        """Claim and send what is due; a store in trouble is looked at again later."""
        busy = dict(self._busy)
        try:
            found = await self._desk.work(lambda _door: self._room.claim(busy))
        except Exception as error:  # noqa: BLE001 - whatever it was, the server goes on
            _log.warning("tasks could not be claimed for a push: %s", error)
            return Look(next_ms=self._desk.now_ms() + limits.LEASE_RETRY_MS)
        if found.queues != self._queues:
            self._queues = found.queues
            self._news.set()  # a task of a new one may have come before anybody listened for it
        self._tell(found.troubles)
        for push in found.pushes:
            self._busy[push.target.id] += 1
            task = asyncio.create_task(self._push(push))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return found

    def _tell(self, troubles: tuple[tuple[str, str], ...]) -> None:
        if troubles != self._troubles:
            for id, why in troubles:
                _log.warning("nothing is pushed to target %s: %s", id, why)
        self._troubles = troubles

    async def _rest(self, found: Look) -> None:
        seconds = limits.PUSH_LOOK_MS / 1000
        if found.next_ms is not None:
            seconds = min(seconds, max(0.0, (found.next_ms - self._desk.now_ms()) / 1000))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, limits.REAPER_PAUSE_MS / 1000)):
                await self._news.wait()

    async def _push(self, push: Push) -> None:
        try:
            failpoints.hit("before_push")
            said = await self._sent(push)
            failpoints.hit("after_push")
            await self._desk.work(lambda _door: self._room.settle(push, said))
        except Exception as error:  # noqa: BLE001 - the claim stays, and ends by its lease
            _log.warning("the push of task %s could not be settled: %s", push.task.id, error)
        finally:
            self._busy[push.target.id] -= 1
            self._busy += Counter()  # leaves out those that have none
            self._news.set()

    async def _sent(self, push: Push) -> Meaning:
        """Send a task once; what came of it."""
        body = envelope(push)
        now_s = self._desk.wall_ms() // 1000
        headers = {
            "content-type": "application/json",
            "user-agent": "detent-push",
            **signed_headers(push.keys, message_id(push), now_s, body),
        }
        try:
            reply = await self._send(push.target.kept.url, headers, body, limits.PUSH_TIMEOUT_MS)
        except NotSentError as error:
            return Again(reason=str(error))
        except RequestError as error:
            if error.code == "network.refused":
                return Again(reason=error.message, final=True)
            return Unsure(reason=error.message)  # it answered, and nobody can read what
        except ConnectionError as error:
            return Unsure(reason=str(error))
        return meaning(reply.status, reply.headers, reply.body)

    async def _finish(self) -> None:
        """Let what is on its way arrive; what takes longer ends by its lease."""
        if self._sending:
            _done, left = await asyncio.wait(self._sending, timeout=_GRACE_S)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)


def message_id(push: Push) -> str:
    """What a receiver tells repetitions by: a task that is claimed anew is another message."""
    return f"{push.task.id}-{push.task.claim_epoch}"


def envelope(push: Push) -> bytes:
    """A task as a poll would give it, with the names that its reports need."""
    told: dict[str, Any] = msgspec.to_builtins(task_wire(push.task))
    return _encode({"task_id": push.task.id, "tenant_id": push.task.tenant, **told})
