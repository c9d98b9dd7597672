"""Which addresses are public, and what the others are. Pure.

The tables are the special-purpose registries of IANA and what clouds put beside them, written out,
so that the answer does not change with the Python release. Of IPv6 only 2000::/3 is public. Forms
that carry an IPv4 address inside are judged by what they carry, or refused as a whole where nobody
uses them any more.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PUBLIC: Final = ""

# What an operator can allow; every other kind is refused whatever the settings say.
INTERNAL: Final = frozenset(
    {"private", "loopback", "link-local", "carrier-grade NAT", "cloud service", "benchmarking"}
)

_IPV4: Final = tuple(
    (IPv4Network(text), kind)
    for text, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud service"),  # Azure's own, under a public address
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "private"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "tunnel"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),  # with 255.255.255.255, broadcast
    )
)

_IPV6: Final = tuple(
    (IPv6Network(text), kind)
    for text, kind in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/8", "reserved"),  # IPv4-compatible and translated forms among them
        ("64:ff9b:1::/48", "private"),  # NAT64 of a site's own
        ("100::/64", "reserved"),  # discard
        ("2001::/23", "tunnel"),  # Teredo, ORCHID, benchmarking
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "tunnel"),  # 6to4
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)

_GLOBAL: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
_LOW: Final = 0xFFFF_FFFF


def kind_of(address: Address) -> str:
    """What an address is: `PUBLIC`, or a word for why it is not."""
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _IPV4 if address in network), PUBLIC)
    if address.scope_id is not None:
        return "link-local"
    if address in _NAT64:
        return kind_of(IPv4Address(int(address) & _LOW))
    kind = next((kind for network, kind in _IPV6 if address in network), PUBLIC)
    if kind == PUBLIC and address not in _GLOBAL:
        return "reserved"
    if kind == PUBLIC and (int(address) >> 32) & _LOW in _ISATAP:
        return kind_of(IPv4Address(int(address) & _LOW))
    return kind


def read_address(text: str) -> Address:
    """An address in the form in which it is called: a mapped one is the IPv4 address inside."""
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.scope_id is None and address.ipv4_mapped:
        return address.ipv4_mapped
    return address
