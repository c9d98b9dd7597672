"""What a server is told when it starts."""

from __future__ import annotations

from msgspec import Struct

from detent.model.limits import STREAMS


class ApiSettings(Struct, frozen=True, kw_only=True):
    """Who may call, and how much they may send."""

    api_key: str = ""  # the root key; empty lets everybody in as admin, on loopback only
    require_tenant_header: bool = True
    body_bytes: int = 10 * 1024 * 1024
    version: str = ""
    environment: str = ""
    color: str = ""
    streams: int = STREAMS
