"""Connections that go to one checked address and to no other.

The pool of httpcore keeps connections by scheme, host and port. We hand it a *pin* for a host:
`address|name`. So a connection is reused only for a request of the same name whose addresses were
checked again and still hold that one, and the backend, which gets the pin, has nothing to resolve.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import httpcore2

from detent.handlers.network.addresses import Address, read_address
from detent.handlers.network.targets import Target
from detent.model.errors import invariant

Dial = Callable[[Address, int, float | None], Awaitable[httpcore2.AsyncNetworkStream]]


def pin_of(target: Target, address: Address) -> bytes:
    """The host under which the pool keeps connections to this address for this name."""
    return f"{address}|{target.host}".encode("ascii")


async def dial(
    address: Address, port: int, timeout_s: float | None
) -> httpcore2.AsyncNetworkStream:
    """Open a TCP connection to an address, and make sure that it is the one."""
    backend = httpcore2.AnyIOBackend()
    stream = await backend.connect_tcp(str(address), port, timeout=timeout_s)
    peer = stream.get_extra_info("server_addr")
    if peer is None or read_address(str(peer[0])) != address:
        await stream.aclose()
        invariant(False, "a connection was opened to another address than the one checked")
    return stream


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections by pin."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the pool's own way to say it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the address of a pin."""
        del local_address, socket_options
        text, found, _name = host.partition("|")
        invariant(found, "the pool asked for a host that was not checked")
        return await self._dial(read_address(text), port, timeout)
