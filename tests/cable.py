"""A cable between a client and a server on a Unix socket, which can be cut at any byte.

What the client sends after it has first begun a transaction is counted; after so many bytes
(`limit`) both ends see the connection close. Without `answers` everything gets to the server, and
the cable is cut when it answers the COMMIT. What is `held` back gets to the server when it is
released, while the client was cut off long ago.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

BEGIN = b"BEGIN\x00"
COMMITTED = b"COMMIT\x00"
SYNC = b"S\x00\x00\x00\x04"  # the last message of a pipeline


class Cable:
    """Connections made through its own socket go on to the server's."""

    def __init__(self, server, port):
        self._name = f".s.PGSQL.{port}"
        self._server = Path(server)
        self._directory = Path(tempfile.mkdtemp(prefix="cable-"))  # short: sockets' names are
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._directory / self._name))
        self._listening.listen()
        self.limit = None  # bytes after BEGIN
        self.answers = True
        self.held = False
        self.cuts = 0
        self.on_cut = None  # called once, before the ends are closed
        self.kept = []  # (what was held back, the server's end)
        self._lines, self._threads = [], []
        self._start(self._accept)

    def url(self, url):
        """The URL of the server, through the cable."""
        return url.replace(f"host={self._server}", f"host={self._directory}")

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self.on_cut = None
        for line in self._lines:
            line.cut()
        for thread in self._threads:
            thread.join()
        self._listening.close()
        for line in self._lines:
            line.near.close()
            line.far.close()
        shutil.rmtree(self._directory)

    def release(self):
        """Let the server have what was held back, and wait until it has done with it."""
        for data, far in self.kept:
            far.sendall(data)
            far.shutdown(socket.SHUT_WR)
            while far.recv(65_536):
                pass
            far.close()
        self.kept.clear()

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(self._server / self._name))
            except OSError:
                near.close()
                far.close()
                continue
            line = _Line(self, near, far)
            self._lines.append(line)
            self._start(line.up)
            self._start(line.down)

    def _start(self, target):
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()


class _Line:
    """One connection."""

    def __init__(self, cable, near, far):
        self.cable = cable
        self.near = near
        self.far = far
        self.begun = False
        self.sent = 0
        self.keeping = None
        self.ended = False

    def up(self):
        """From the client to the server."""
        with suppress(OSError):
            while data := self.near.recv(65_536):
                if not self._pass(data):
                    return
        self.cut()

    def _pass(self, data):
        cable = self.cable
        if self.keeping is not None:
            self.keeping += data
            return self._keep()
        if BEGIN in data:
            self.begun = cable.held or cable.limit is not None
        if self.begun and cable.held:
            self.keeping = data
            return self._keep()
        if self.begun and cable.limit is not None:
            left = cable.limit - self.sent
            self.sent += len(data)
            if len(data) >= left:
                self.far.sendall(data[:left])
                self.cut()
                return False
        self.far.sendall(data)
        return True

    def _keep(self):
        """Hold back until the whole transaction is here, then cut the client off."""
        if COMMITTED not in self.keeping or not self.keeping.endswith(SYNC):
            return True
        self.cable.kept.append((self.keeping, self.far))
        self.cable.cuts += 1
        self._shut(self.near)
        return False

    def down(self):
        """From the server to the client."""
        with suppress(OSError):
            while data := self.far.recv(65_536):
                if not self.cable.answers and COMMITTED in data:
                    break
                self.near.sendall(data)
        if not any(far is self.far for _, far in self.cable.kept):
            self.cut()

    def cut(self):
        if self.ended:
            return
        self.ended = True
        self.cable.cuts += 1
        act, self.cable.on_cut = self.cable.on_cut, None
        if act is not None:
            act()
        self._shut(self.near)
        self._shut(self.far)

    def _shut(self, end):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
