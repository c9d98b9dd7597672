"""A datagram to the owner of a store: look at your arrivals now.

Fire and forget. A lost datagram costs latency and nothing else: the owner looks again by itself.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WAKE = b"wake"


class Waker:
    """Sends wake-ups through one socket that never blocks."""

    __slots__ = ("_sockets",)

    def __init__(self) -> None:
        self._sockets: dict[socket.AddressFamily, socket.socket] = {}

    def wake(self, addresses: Iterable[str]) -> None:
        """Send one datagram to each "host:port"; an empty or dead address is passed over."""
        for address in addresses:
            host, _, port = address.rpartition(":")
            if host and port.isdecimal():
                with suppress(OSError, OverflowError):
                    self._socket(host).sendto(WAKE, (host.strip("[]"), int(port)))

    def close(self) -> None:
        """Close the sockets."""
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()

    def _socket(self, host: str) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = self._sockets.get(family)
        if opened is None:
            opened = self._sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
            opened.setblocking(False)
        return opened
