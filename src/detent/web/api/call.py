"""One call of a route: who calls, for which tenant, and the engine behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from detent.model.errors import RequestError
from detent.model.ids import derived_id
from detent.model.limits import KEY_CHARS
from detent.service.arguments import check_text
from detent.service.inbound import PeerRates
from detent.web.api.known import KnownSequences
from detent.web.api.known_keys import KnownKeys
from detent.web.api.meters import Meters
from detent.web.api.settings import ApiSettings
from detent.web.api.streams import Streams

if TYPE_CHECKING:
    from starlette.requests import Request

    from detent.service.desk import Desk

DEFAULT_TENANT = "default"


class Principal(Struct, frozen=True, kw_only=True):
    """Who calls: the root (`admin`), or the holder of a tenant's key."""

    admin: bool = False
    tenant: str | None = None  # fixed by the key, or named in the header
    capabilities: tuple[str, ...] = ()
    key: str = ""  # id of the API key


class House(Struct, frozen=True):
    """What all calls of one server share."""

    settings: ApiSettings
    sequences: KnownSequences
    description: Any
    keys: KnownKeys
    peers: PeerRates
    streams: Streams
    meters: Meters


class Call:
    """What a route's function is given."""

    __slots__ = (
        "_ids",
        "description",
        "desk",
        "id_seed",
        "keys",
        "meters",
        "path",
        "peers",
        "principal",
        "query",
        "request",
        "sequences",
        "server",
        "streams",
    )

    def __init__(self, request: Request, desk: Desk, house: House) -> None:
        self.request = request
        self.desk = desk
        self.server = house.settings
        self.sequences = house.sequences
        self.description = house.description
        self.keys = house.keys
        self.peers = house.peers
        self.streams = house.streams
        self.meters = house.meters
        self.principal = Principal()
        self.path: dict[str, str] = {}
        self.query: Any = None
        self.id_seed = ""  # with an Idempotency-Key: what fresh ids derive from
        self._ids = 0

    @property
    def tenant(self) -> str | None:
        """The tenant whose objects exist for this call; None is the operator, who sees all."""
        return self.principal.tenant

    def owner(self, named: str) -> str:
        """The tenant of something new: the caller's, else the one named, else the default."""
        own = self.principal.tenant
        if own is not None and named and named != own:
            raise RequestError(
                "request.forbidden", f"the body names tenant {named!r}, the call is for {own!r}"
            )
        return own or named or DEFAULT_TENANT

    def scope(self, named: str | None) -> str | None:
        """The tenant of a list: the caller's, else the one asked for, else all."""
        return self.principal.tenant or named or None

    def needed_scope(self, named: str | None) -> str:
        """The tenant of what cannot be done for all at once."""
        found = self.scope(named)
        if not found:
            raise RequestError(
                "request.invalid",
                "tenant_id query parameter is required, or the header X-Tenant-Id",
            )
        return found

    def fresh_id(self) -> str:
        """A new id; under an Idempotency-Key the same one again when the request comes again."""
        if not self.id_seed:
            return self.desk.fresh_id()
        self._ids += 1
        return derived_id(self.tenant or "", "request", f"{self.id_seed}:{self._ids}")

    def own_id(self, instance: str, chosen: str | None) -> str:
        """The id of an input: a fresh one, or one that only this tenant can use again."""
        if chosen is None:
            return self.fresh_id()
        check_text("id", chosen, KEY_CHARS)
        if self.tenant is None:
            return chosen
        return derived_id(self.tenant, "signal", f"{instance}:{chosen}")
