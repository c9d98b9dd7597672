"""The outside world as another process: an append-only file behind a Unix socket.

`python -m detent.testing.bookkeeper SOCKET FILE` serves it. Each request is one JSON line and each
answer too. A deed is on the disk before it is answered, so nothing a killed engine has caused is
lost, and doubles are counted in the file.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from detent.testing.outside import Deed, Outside


class BooksByWire:
    """The books as an engine's handlers see them; one connection per thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()

    def add(self, deed: Deed) -> None:
        """Write one line."""
        self._ask("add", list(deed))

    def apply(self, deed: Deed) -> Any:
        """Let a call take effect, once per key for a keyed provider."""
        return self._ask("apply", list(deed))

    def count(self, what: str, key: str) -> int:
        """How often something happened to a key."""
        return int(self._ask("count", [what, key]))

    def happened(self, key: str) -> bool:
        """Whether a call with this key took effect."""
        return bool(self._ask("happened", [key]))

    def result(self, key: str) -> Any:
        """What the effective call with this key answered."""
        return self._ask("result", [key])

    def close(self) -> None:
        """Close the connection of this thread."""
        stream: Any = getattr(self._local, "stream", None)
        if stream is not None:
            stream.close()
            self._local.stream = None

    def _ask(self, verb: str, args: list[Any]) -> Any:
        stream: Any = getattr(self._local, "stream", None)
        if stream is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self._path)
            stream = self._local.stream = connection.makefile("rwb")
            connection.close()  # the stream keeps it open
        stream.write(json.dumps([verb, args]).encode() + b"\n")
        stream.flush()
        return json.loads(stream.readline())


class Bookkeeper(socketserver.ThreadingUnixStreamServer):
    """Serves the books; one thread per connection, one writer at a time."""

    daemon_threads = True

    def __init__(self, address: str, file: Path) -> None:
        super().__init__(address, _Desk)
        self._outside = read_books(file)
        self._file = file.open("ab")
        self._lock = threading.Lock()

    def answer(self, verb: str, args: list[Any]) -> Any:
        """Carry one request out."""
        with self._lock:
            before = len(self._outside.deeds)
            given = [Deed(*args)] if verb in ("add", "apply") else args
            answer = getattr(self._outside, verb)(*given)
            for deed in self._outside.deeds[before:]:
                self._file.write(json.dumps(list(deed)).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
        return answer


class _Desk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        with suppress(OSError):  # a client that is killed says no farewell
            for line in self.rfile:
                verb, args = json.loads(line)
                self.wfile.write(json.dumps(server.answer(verb, args)).encode() + b"\n")


def read_books(file: Path) -> Outside:
    """The record kept in a file."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return Outside(Deed(*json.loads(line)) for line in lines)


def main() -> None:
    """Serve until killed."""
    with Bookkeeper(sys.argv[1], Path(sys.argv[2])) as server:
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
