"""What a URL means: read once and strictly, so that nobody can read it in another way. Pure.

Parsers differ over odd URLs, and attacks live in the differences. So a URL is either plain, and
then it is taken apart here and never parsed again, or it is refused: no user names, no percent
signs, brackets or other scripts in the host, no number that is not an IPv4 address in its usual
form, nothing that cannot be seen.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Final
from urllib.parse import quote, urljoin

from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.network.addresses import Address, read_address
from detent.model.limits import URL_CHARS

_PORTS: Final = {"http": 80, "https": 443}
_WHOLE = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?:#.*)?",
    re.DOTALL,
)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_IPV6 = re.compile(r"[0-9a-f:.]+")
_UNSEEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
_PATH_SAFE: Final = "!\"$%&'()*+,-./:;<=>@[]^_`{|}~?"
_NAME_CHARS: Final = 253


class Target(Struct, frozen=True, kw_only=True):
    """Where a request goes; `address` is there when the host was written as one."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None = None

    @property
    def place(self) -> str:
        """Host and port as the Host header has them; also how failures name the other side."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What must be equal for credentials to be sent again."""
        return self.scheme, self.host, self.port


def read_target(url: Any) -> Target:
    """Take a URL apart, or refuse it."""
    if not isinstance(url, str) or not url:
        raise refused(f"url must be a text such as https://example.org/path, got {url!r:.80}")
    if len(url) > URL_CHARS:
        raise refused(f"the url must have at most {URL_CHARS:,} characters, got {len(url):,}")
    if _UNSEEN.search(url) or "\\" in url:
        raise refused("the url holds a space, a backslash or a character that cannot be seen")
    parts = _WHOLE.fullmatch(url)
    scheme = parts["scheme"].lower() if parts else ""
    if parts is None or scheme not in _PORTS:
        raise refused("the url must begin with http:// or https://; nothing else is called")
    host, port = _authority(parts["authority"], _PORTS[scheme])
    name, address = _host(host)
    path = (parts["path"] or "/") + (parts["query"] or "")
    return Target(
        scheme=scheme, host=name, port=port, path=quote(path, safe=_PATH_SAFE), address=address
    )


def next_url(url: str, location: str) -> str:
    """Where a redirect leads; what comes out is read like any other URL."""
    if _UNSEEN.search(location) or "\\" in location:
        raise refused("it was redirected to a url with characters that no url has")
    if _ABSOLUTE.match(location):
        return location
    try:
        return urljoin(url, location)
    except ValueError:
        raise refused("it was redirected to a url that cannot be read") from None


class Unsent(Failed):
    """No connection came about: nothing of the request has left."""


def refused(problem: str) -> Failed:
    """The failure of a call that must not be made."""
    return Failed(problem, retryable=False, code="network.refused")


def _authority(text: str, default: int) -> tuple[str, int]:
    if "@" in text:
        raise refused("the url must not hold a user name or password; send a header instead")
    if "%" in text or not text.isascii():
        raise refused("the host must be plain ASCII without % escapes; write xn--… for other names")
    parts = _AUTHORITY.fullmatch(text.lower())
    if parts is None or not parts["host"]:
        raise refused("the url must name a host, and a port must be a number behind one colon")
    port = int(parts["port"]) if parts["port"] else default
    if not 0 < port < 2**16:
        raise refused(f"the port must be 1 to 65535, got {port}")
    return parts["host"], port


def _host(text: str) -> tuple[str, Address | None]:
    """The host's name without its trailing dot, or its address."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    name = text.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        if text != name or not _DECIMAL.fullmatch(name):
            raise refused("an address must be written as four decimal numbers, such as 192.0.2.1")
        return _ipv4(name)
    if (
        len(name) > _NAME_CHARS
        or labels[-1][:1].isdigit()
        or not all(map(_LABEL.fullmatch, labels))
    ):
        raise refused("the host is no name: letters, digits and hyphens between single dots")
    return name, None


def _ipv4(text: str) -> tuple[str, Address]:
    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise refused("each number of an IPv4 address must be 0 to 255") from None
    return str(address), address


def _ipv6(text: str) -> tuple[str, Address]:
    try:
        address = read_address(str(IPv6Address(text))) if _IPV6.fullmatch(text) else None
    except AddressValueError:
        address = None
    if address is None:
        raise refused("what stands in brackets must be an IPv6 address without a zone")
    return str(address), address
