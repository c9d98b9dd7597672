"""Waking: a datagram on loopback tells the owner that somebody left arrivals."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class WakeListener:
    """Calls back when a datagram comes; what it holds does not matter."""

    def __init__(self, woken: Callable[[], None]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._woken = woken
        self._closed = False
        self._thread = threading.Thread(target=self._listen, name="detent-wake", daemon=True)

    @property
    def address(self) -> str:
        """Where to send the datagram."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                self._socket.recv(64)
            except OSError:
                return
            if self._closed:
                return
            self._woken()
