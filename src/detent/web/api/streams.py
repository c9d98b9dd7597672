"""Streams of server-sent events: how many there are, how one is sent, and how it ends.

A stream is pulled: the next part is made when the one before it has left, so a slow reader holds
up nobody and costs no memory beyond one part. One that takes nothing for a minute is dropped, and
whatever was begun for a client is over as soon as it goes away.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from detent.model.errors import RequestError
from detent.model.limits import STREAM_BEAT_MS, STREAM_GAP_MS, STREAM_STALL_MS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import Receive, Scope, Send

    from detent.service.desk import Desk

MEDIA = "text/event-stream"
ABORT = "detent.abort"  # in the scope: drops the connection with what it still holds
BEAT = b": alive\n\n"
RECONNECT = b"retry: 2000\n\n"

_PULSE_S = 0.1
_encode = msgspec.json.Encoder().encode


def event(name: str, data: Any, id: str = "") -> bytes:
    """One event; its data is JSON, which has no line breaks."""
    told = f"id: {id}\n" if id else ""
    return f"event: {name}\n{told}data: ".encode() + _encode(data) + b"\n\n"


class Streams:
    """The open streams of a server."""

    def __init__(self, desk: Desk, most: int) -> None:
        self._most = most
        self._open: set[EventStream] = set()
        self._closing = False
        self.pulse = Pulse(desk)

    def open(self, parts: AsyncGenerator[bytes, None]) -> EventStream:
        """A stream of these parts; `stream.full` when there are too many."""
        if self._closing or len(self._open) >= self._most:
            raise RequestError(
                "stream.full", f"{self._most} streams are open; close one, or try again later"
            )
        stream = EventStream(parts, self._open.discard)
        self._open.add(stream)
        return stream

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End all streams, and begin no more."""
        self._closing = True
        for stream in list(self._open):
            stream.end()


class EventStream(Response):
    """An answer that goes on until its parts end, its reader is gone, or the server closes."""

    def __init__(
        self, parts: AsyncGenerator[bytes, None], ended: Callable[[EventStream], None]
    ) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self.headers["content-type"] = MEDIA
        del self.headers["content-length"]
        self._parts = parts
        self._ended = ended
        self._sending: asyncio.Task[None] | None = None
        self._over = False

    def end(self) -> None:
        """Send nothing more."""
        self._over = True
        if self._sending is not None:
            self._sending.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the parts."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] != "HEAD" and not self._over:
                await self._send_while_read(scope, receive, send)
            else:
                await _send(send, b"", more=False)
        finally:
            self._ended(self)

    async def _send_while_read(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = self._sending = asyncio.ensure_future(self._send_all(send))
        reading = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
            gone = reading.done()
        finally:
            for task in (sending, reading):
                task.cancel()
            outcome, _ = await asyncio.gather(sending, reading, return_exceptions=True)
        if gone:
            return
        if isinstance(outcome, TimeoutError):
            scope.get(ABORT, _nothing)()
            await asyncio.sleep(0)  # the server learns that the connection is gone
            return
        if isinstance(outcome, Exception):
            raise outcome
        with suppress(TimeoutError):
            await _send(send, b"", more=False)

    async def _send_all(self, send: Send) -> None:
        try:
            await _send(send, RECONNECT)
            async for part in self._parts:
                await _send(send, part)
        finally:
            await self._parts.aclose()


class Pace:
    """When a stream looks again: woken by a move, or when its time has come; never in a rush."""

    def __init__(self, poll_ms: int) -> None:
        self._moved = asyncio.Event()
        self._poll_s = poll_ms / 1000
        self._silent_since = asyncio.get_running_loop().time()

    def wake(self, _state: str = "") -> None:
        """Something moved."""
        self._moved.set()

    def looking(self) -> None:
        """A look begins: what moves from now on needs another one."""
        self._moved.clear()

    def spoke(self) -> None:
        """Something was sent."""
        self._silent_since = asyncio.get_running_loop().time()

    async def rest(self) -> bytes:
        """Wait until it is time to look; the comment of a living stream when that is due."""
        await asyncio.sleep(STREAM_GAP_MS / 1000)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await self._moved.wait()
        now = asyncio.get_running_loop().time()
        if now - self._silent_since < STREAM_BEAT_MS / 1000:
            return b""
        self._silent_since = now
        return BEAT


class Pulse:
    """One ear for all who follow everything: however much moves, they are woken ten times a second.

    Without it each turn of a busy engine would wake each of hundreds of streams.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ears: list[Callable[[], None]] = []
        self._stop: Callable[[], None] | None = None
        self._pending = False
        self._last = 0.0

    def listen(self, told: Callable[[], None]) -> Callable[[], None]:
        """Be told that something moved; call what comes back to stop."""
        self._ears.append(told)
        if self._stop is None:
            self._stop = self._desk.watch("", self._moved)

        def stop() -> None:
            self._ears.remove(told)
            if not self._ears and self._stop is not None:
                self._stop()
                self._stop = None

        return stop

    def _moved(self, _state: str) -> None:
        if not self._pending:
            self._pending = True
            loop = asyncio.get_running_loop()
            loop.call_at(max(loop.time(), self._last + _PULSE_S), self._beat)

    def _beat(self) -> None:
        self._pending = False
        self._last = asyncio.get_running_loop().time()
        for told in list(self._ears):
            told()


async def _send(send: Send, part: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(STREAM_STALL_MS / 1000):
        await send({"type": "http.response.body", "body": part, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _nothing() -> None:
    """A server that lends no hold on its connections."""
