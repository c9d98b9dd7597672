"""A cable between a client and a server on a Unix socket, which can be cut at any byte.

What the client sends after it has begun a transaction is counted. After so many bytes the cable is
cut: both ends see the connection close. `answers=False` lets everything through to the server, and
cuts when it answers the COMMIT; `held=True` keeps what the client sends until `release`.
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
        self.kept = []  # (what was held back, the server's end)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, url):
        """The URL of the server, through the cable."""
        return url.replace(f"host={self._server}", f"host={self._directory}")

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
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
            far.connect(str(self._server / self._name))
            line = _Line(self, near, far)
            for target in (line.up, line.down):
                threading.Thread(target=target, daemon=True).start()


class _Line:
    """One connection."""

    def __init__(self, cable, near, far):
        self.cable = cable
        self.near = near
        self.far = far
        self.begun = False
        self.sent = 0
        self.keeping = None

    def up(self):
        """From the client to the server."""
        with suppress(OSError):
            while data := self.near.recv(65_536):
                if not self._pass(data):
                    return
        self._cut()

    def _pass(self, data):
        cable = self.cable
        if self.keeping is not None:
            self.keeping += data
            return self._keep()
        if not self.begun and BEGIN in data:
            self.begun = True
        if self.begun and cable.held:
            self.keeping = data
            return self._keep()
        if self.begun and cable.limit is not None:
            left = cable.limit - self.sent
            self.sent += len(data)
            if len(data) >= left:
                self.far.sendall(data[:left])
                self._cut()
                return False
        self.far.sendall(data)
        return True

    def _keep(self):
        """Hold back until the whole transaction is here, then cut the client off."""
        if b"pg_notify" not in self.keeping and COMMITTED not in self.keeping:
            return True
        self.cable.kept.append((self.keeping, self.far))
        self.cable.cuts += 1
        self._shut(self.near)
        return False

    def down(self):
        """From the server to the client."""
        with suppress(OSError):
            while data := self.far.recv(65_536):
                if self.begun and not self.cable.answers and COMMITTED in data:
                    break
                self.near.sendall(data)
        if not any(far is self.far for _, far in self.cable.kept):
            self._cut()

    def _cut(self):
        self.cable.cuts += 1
        self._shut(self.near)
        self._shut(self.far)

    def _shut(self, end):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
