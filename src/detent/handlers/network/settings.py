"""Settings of the network handlers: what an operator allows beyond the public internet."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Final

from msgspec import Struct

from detent.handlers.network.addresses import Address, Network
from detent.model import limits
from detent.model.errors import RequestError

_ENTRY = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[^:\s\[\]]+)|(?P<bare>[0-9a-fA-F:./]+))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_ANY_PORT: Final = 0


class NetworkSettings(Struct, frozen=True, kw_only=True):
    """What the network handlers may reach and for how long.

    An entry of `allowed_hosts` is a name, `*.name`, an address or a network such as 10.0.0.0/8,
    each perhaps with `:port`. `api_key_envs` are patterns of environment variables that `llm_call`
    may read keys from.
    """

    allow_internal: bool = False
    allowed_hosts: tuple[str, ...] = ()
    max_redirects: int = limits.REDIRECTS
    max_body_bytes: int = limits.RESPONSE_BYTES
    connect_timeout_ms: int = limits.CONNECT_TIMEOUT_MS
    api_key_envs: tuple[str, ...] = ("*_API_KEY",)


class Allowed:
    """The hosts that may have an internal address."""

    def __init__(self, entries: tuple[str, ...]) -> None:
        self._names: set[tuple[str, int]] = set()
        self._suffixes: list[tuple[str, int]] = []
        self._networks: list[tuple[Network, int]] = []
        for entry in entries:
            self._add(entry)

    def by_name(self, host: str, port: int) -> bool:
        """Whether the name itself is allowed."""
        if (host, port) in self._names or (host, _ANY_PORT) in self._names:
            return True
        return any(host.endswith(end) and at in (port, _ANY_PORT) for end, at in self._suffixes)

    def by_address(self, address: Address, port: int) -> bool:
        """Whether the address is allowed, whatever name has it."""
        return any(
            address.version == network.version and address in network and at in (port, _ANY_PORT)
            for network, at in self._networks
        )

    def _add(self, entry: str) -> None:
        parts = _ENTRY.fullmatch(entry)
        port = int(parts["port"] or _ANY_PORT) if parts else -1
        if parts is None or not 0 <= port < 2**16:
            raise _bad(entry)
        text = (parts["ipv6"] or parts["host"] or parts["bare"]).lower().removesuffix(".")
        try:
            self._networks.append((ip_network(text, strict=False), port))
        except ValueError:
            if not _NAME.fullmatch(text) or text.rpartition(".")[2].isdigit():
                raise _bad(entry) from None
            if text.startswith("*."):
                self._suffixes.append((text[1:], port))
            else:
                self._names.add((text, port))


def _bad(entry: str) -> RequestError:
    expected = "a host name, *.name, an address or a network, each perhaps with :port"
    return RequestError(
        "request.invalid", f"allowed_internal_hosts must hold {expected}; got {entry!r}"
    )
