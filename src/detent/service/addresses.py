"""Addresses that callers give us to send secrets to: only public ones, unless allowed.

The name of a host says nothing about where it leads; whoever connects checks that again.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from detent.model import limits
from detent.model.errors import RequestError
from detent.service.arguments import storable

_LOCAL = (".localhost", ".local", ".internal", ".localdomain")


def check_url(code: str, name: str, url: object, *, internal: bool = False) -> None:
    """Refuse what is no http address of a public host; its text may hold a secret, so it stays."""
    if not storable(url) or len(str(url)) > limits.URL_CHARS:
        raise RequestError(code, f"{name} must be text of {limits.URL_CHARS} characters at most")
    try:
        parts = urlsplit(str(url))
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise RequestError(code, f"{name} cannot be read as an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise RequestError(code, f"{name} must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise RequestError(code, f"{name} must not hold a user or password")
    if not internal and is_private(host):
        raise RequestError(code, f"{name} must lead to a public host; {host} is a private one")


def is_private(host: str) -> bool:
    """Whether a host is, by its own text, one that the public cannot reach."""
    plain = host.rstrip(".").lower()
    if plain == "localhost" or plain.endswith(_LOCAL) or ("." not in plain and ":" not in plain):
        return True
    try:
        address: ipaddress.IPv4Address | ipaddress.IPv6Address
        address = ipaddress.ip_address(plain.partition("%")[0])
    except ValueError:
        try:  # 127.1 and 0x7f.1 are addresses to the system, though to nobody else
            address = ipaddress.IPv4Address(socket.inet_aton(plain))
        except OSError:
            return False
    mapped = getattr(address, "ipv4_mapped", None)
    return not (mapped or address).is_global
