"""The guard: which addresses a target may be called at.

A host's addresses are asked for once per request, every one of them is judged, and one that may not
be called refuses the whole: a name with a public and a private address is an attack, not a choice.
What comes out are addresses, and only these are called.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from detent.handlers.network.addresses import INTERNAL, PUBLIC, Address, kind_of, read_address
from detent.handlers.network.settings import Allowed, NetworkSettings
from detent.handlers.network.targets import Target, Unsent, refused

_CURE: Final = "if it may be called, add it to allowed_internal_hosts"

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

# Names that are never public, whatever a resolver says.
_INSIDE: Final = ("localhost", "localdomain", "local", "internal", "lan", "home.arpa", "onion")

# Ports of protocols in which a request could be taken for commands, by the Fetch standard.
_BAD_PORTS: Final = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
        *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161),
        *(179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563),
        *(587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060),
        *(5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    )
)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses of a host as this machine knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in found))


class Guard:
    """Judges targets by the operator's settings."""

    def __init__(self, settings: NetworkSettings, resolve: Resolver = system_resolver) -> None:
        self._resolve = resolve
        self._internal = settings.allow_internal
        self._allowed = Allowed(settings.allowed_hosts)
        self._timeout_s = settings.connect_timeout_ms / 1000

    async def addresses(self, target: Target) -> list[Address]:
        """The addresses at which the target may be called, at least one; or a refusal."""
        trusted = self.check_written(target)
        if target.address is not None:
            return [target.address]
        found = [self._read(target, text) for text in await self._ask(target)]
        return [self._judged(target, address, trusted=trusted) for address in found]

    def check_written(self, target: Target) -> bool:
        """Refuse a target by what is written; whether the operator trusts it by its name."""
        trusted = self._internal or self._allowed.by_name(target.host, target.port)
        if target.address is not None:
            self._judged(target, target.address, trusted=trusted)
        else:
            self._check_name(target, trusted=trusted)
            self._check_port(target, trusted=trusted)
        return trusted

    async def _ask(self, target: Target) -> Sequence[str]:
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._resolve(target.host, target.port)
        except TimeoutError:
            text = f"the name server did not answer for {target.host} in time"
            raise Unsent(text, code="network.timeout") from None
        except (OSError, UnicodeError):
            found = ()
        if not found:
            text = f"the host {target.host} has no address; check the name"
            raise Unsent(text, code="network.unreachable") from None
        return found

    def _check_name(self, target: Target, *, trusted: bool) -> None:
        """Names of the inside, and bare ones that a search list completes, are not asked for."""
        name = f".{target.host}"
        inside = "." not in target.host or any(name.endswith(f".{end}") for end in _INSIDE)
        if inside and not trusted:
            raise refused(f"{target.host} is a name of the inside; {_CURE}")

    def _check_port(self, target: Target, *, trusted: bool) -> None:
        if not trusted and target.port in _BAD_PORTS:
            raise refused(f"port {target.port} belongs to another protocol than HTTP")

    def _read(self, target: Target, text: str) -> Address:
        try:
            return read_address(text)
        except ValueError:
            raise refused(f"the name server gave no address for {target.host}") from None

    def _judged(self, target: Target, address: Address, *, trusted: bool) -> Address:
        kind = kind_of(address)
        trusted = trusted or self._allowed.by_address(address, target.port)
        self._check_port(target, trusted=trusted)
        if kind == PUBLIC or (kind in INTERNAL and trusted):
            return address
        # Which address it was is not told: a tenant could map the inside by it.
        raise refused(f"{target.host} leads to an address that is {kind}, not public; {_CURE}")
