"""Addresses that callers give us to send secrets to: only public ones, unless allowed.

The name of a host says nothing about where it leads; whoever connects checks that again.
"""

from __future__ import annotations

from detent.handlers.answers import Failed
from detent.handlers.network.guard import Guard
from detent.handlers.network.settings import NetworkSettings
from detent.handlers.network.targets import read_target
from detent.model import limits
from detent.model.errors import RequestError
from detent.service.arguments import storable
from detent.service.vault import Safe


def check_url(code: str, name: str, url: object, safe: Safe) -> None:
    """Refuse what is no http address of a public host; its text may hold a secret, so it stays."""
    if not storable(url) or len(str(url)) > limits.URL_CHARS:
        raise RequestError(code, f"{name} must be text of {limits.URL_CHARS} characters at most")
    try:
        target = read_target(url)
    except Failed:
        raise RequestError(
            code, f"{name} must be a plain https:// or http:// address without user or password"
        ) from None
    try:
        reach = NetworkSettings(
            allow_internal=safe.internal_urls, allowed_hosts=safe.internal_hosts
        )
        Guard(reach).check_written(target)
    except Failed:
        raise RequestError(
            code,
            f"{name} must lead to a public host; {target.host} is a private one: "
            "the operator may add it to allowed_internal_hosts",
        ) from None
