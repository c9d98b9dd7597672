"""A small, quick HTTP/1.1 client for load: one connection per task, nothing parsed but lengths."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
HANDLERS = Path(__file__).parent / "load.py"
TENANT = "bench"


class Connection:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Make a request; its status and body."""
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nx-tenant-id: {TENANT}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(answer)
        size = int(found[1]) if found else 0
        return int(answer[9:12]), await self._reader.readexactly(size)

    def close(self) -> None:
        """Let it go."""
        if self._writer is not None:
            self._writer.close()


class Served(NamedTuple):
    """Where a server listens, and its process."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """What the server and its writer have used of the processors so far."""
        own = Path(f"/proc/{self.pid}/task")
        below = [task / "children" for task in own.iterdir()]
        pids = [self.pid, *(int(each) for file in below for each in file.read_text().split())]
        return sum(map(_cpu_ticks, pids)) / os.sysconf("SC_CLK_TCK")


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@contextlib.contextmanager
def server(directory: Path, *arguments: str) -> Iterator[Served]:
    """`detent serve` on a new store in a process of its own."""
    command = [sys.executable, "-m", "detent.cli", "serve", "--port", "0"]
    command += ["--db", str(directory / "serve.db"), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment())
    try:
        line = process.stderr.readline() if process.stderr is not None else ""
        yield Served(int(line.strip().rpartition(":")[2]), process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).parent.parent)
    paths = [root, f"{root}/src", os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


async def many(port: int, connections: int, jobs: list[tuple[str, str, Any]]) -> list[float]:
    """Make all requests over so many connections; sorted milliseconds of each."""
    queue = list(reversed(jobs))
    taken: list[float] = []

    async def work() -> None:
        connection = Connection(port)
        while queue:
            method, path, body = queue.pop()
            began = time.perf_counter()
            status, answer = await connection.call(method, path, body)
            taken.append((time.perf_counter() - began) * 1000)
            if status >= 300:
                raise RuntimeError(f"{method} {path} gave {status}: {answer[:200]!r}")
        connection.close()

    await asyncio.gather(*[work() for _ in range(connections)])
    return sorted(taken)
