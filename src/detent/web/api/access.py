"""The gate before every route: the key, then the tenant, then what the key may do.

Who is not let in gets a status and an empty body, and learns nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.model.limits import NAME_CHARS
from detent.service.api_keys import allowed, same_secret
from detent.service.arguments import storable
from detent.web.api.call import Principal
from detent.web.api.known_keys import KnownKeys
from detent.web.api.refusals import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

    from detent.service.desk import Desk
    from detent.web.api.routes import Route
    from detent.web.api.settings import ApiSettings

ROOT_NEEDED = "API key management requires the root API key"


class Access:
    """Lets callers in by the root key, or by a key of a tenant's own."""

    def __init__(self, settings: ApiSettings, desk: Desk) -> None:
        self._settings = settings
        self.keys = KnownKeys(desk)

    async def admit(self, request: Request, route: Route) -> Principal:
        """Who calls, or a refusal."""
        if route.public:
            return Principal()
        caller = await self._known(request)
        caller = self._for_tenant(request, route, caller)
        if not caller.admin:
            if route.admin:
                raise Refusal(403, ROOT_NEEDED, "request.forbidden")
            if not allowed(caller.capabilities, request.method, route.path):
                raise Refusal(403, code="request.forbidden")
        return caller

    async def _known(self, request: Request) -> Principal:
        root = self._settings.api_key
        if not root:
            return Principal(admin=True)
        given = request.headers.get("x-api-key", "") or _bearer(request)
        if not given:
            raise Refusal(401, code="request.unauthorized")
        if same_secret(given, root):
            return Principal(admin=True)
        found = await self.keys.find(given)
        if found is None:
            raise Refusal(401, code="request.unauthorized")
        return Principal(tenant=found.tenant, capabilities=found.capabilities, key=found.key)

    def _for_tenant(self, request: Request, route: Route, caller: Principal) -> Principal:
        named = request.headers.get("x-tenant-id", "")
        if named and (len(named) > NAME_CHARS or not storable(named)):
            raise Refusal(400, code="request.invalid")
        if caller.tenant is not None:
            if named and named != caller.tenant:
                raise Refusal(403, code="request.forbidden")
            return caller
        if named:
            return Principal(admin=caller.admin, tenant=named)
        if self._settings.require_tenant_header and not (route.tenantless or route.admin):
            raise Refusal(400, code="request.tenant")
        return caller


def _bearer(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
