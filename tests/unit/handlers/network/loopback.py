"""A real HTTP server on loopback that says what a test wants, byte by byte if need be."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from dataclasses import dataclass, field

FOREVER = 3600


@dataclass
class Seen:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict
    body: bytes
    connection: int

    def json(self):
        return json.loads(self.body)


def answer(status=200, body=b"", headers=(), *, length=True):
    """The bytes of an answer; a body that is no bytes is sent as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Said", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass
class Loopback:
    """Answers each request with what `say(seen)` gives: bytes, or an async iterator of them."""

    say: object
    host: str = "127.0.0.1"
    at: int = 0
    tls: object = None
    seen: list = field(default_factory=list)
    connections: int = 0

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(self._open())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _open(self):
        self._tasks, self._writers = set(), set()
        return await asyncio.start_server(self._accept, self.host, self.at, ssl=self.tls)

    def _accept(self, reader, writer):
        self._writers.add(writer)
        self._tasks.add(self._loop.create_task(self._serve(reader, writer)))

    async def _close(self):
        """Drop every connection, also those that are just being accepted."""
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        while accepting := asyncio.all_tasks() - self._tasks - {asyncio.current_task()}:
            await asyncio.gather(*accepting, return_exceptions=True)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        self.connections += 1
        number = self.connections
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                seen = await _read(reader, number)
                self.seen.append(seen)
                said = self.say(seen)
                if isinstance(said, bytes):
                    writer.write(said)
                    await writer.drain()
                    continue
                async for piece in said:
                    writer.write(piece)
                    await writer.drain()
                break
        writer.close()


async def _read(reader, number):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body, number)


async def pieces(*parts, then_wait=False):
    """Parts of an answer one by one, and then the end or nothing ever."""
    for part in parts:
        yield part
    if then_wait:
        await asyncio.sleep(FOREVER)
