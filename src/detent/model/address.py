"""Addresses of stores: the path of a file, `:memory:`, or the URL of a database server."""

from __future__ import annotations

import re

MEMORY = ":memory:"
POSTGRES = ("postgresql", "postgres")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Up to the last @: a password that was not escaped may hold any character.
_LOGIN = re.compile(r"(^[^:]+://[^:@/?]*):.*@", re.DOTALL)
_SECRETS = re.compile(r"([?&](?:password|sslpassword)=)[^&#]*", re.IGNORECASE)


def scheme_of(address: str) -> str:
    """The scheme of a URL in lower case; empty for a path."""
    found = _SCHEME.match(address)
    return "" if found is None else found[1].lower()


def is_file(address: str) -> bool:
    """Whether the address names a file, or a store in memory."""
    return not scheme_of(address)


def shown_address(address: str) -> str:
    """The address for people: without the passwords in it."""
    if is_file(address):
        return address
    return _SECRETS.sub(r"\1***", _LOGIN.sub(r"\1:***@", address))
