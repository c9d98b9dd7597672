"""The gate before every route: the key, then the tenant, then what the key may do.

Who is not let in gets a status and an empty body, and learns nothing else.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from detent.model.limits import NAME_CHARS
from detent.service.arguments import storable
from detent.web.api.call import Principal
from detent.web.api.refusals import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

    from detent.web.api.routes import Route
    from detent.web.api.settings import ApiSettings

FindKey = Callable[[str], Awaitable[Principal | None]]
Allowed = Callable[[tuple[str, ...], str, str], bool]

ROOT_NEEDED = "API key management requires the root API key"


class Access:
    """Lets callers in; `find_key` knows the stored keys, `allowed` what their words permit."""

    def __init__(self, settings: ApiSettings, find_key: FindKey, allowed: Allowed) -> None:
        self._settings = settings
        self._find_key = find_key
        self._allowed = allowed

    async def admit(self, request: Request, route: Route) -> Principal:
        """Who calls, or a refusal."""
        if route.public:
            return Principal()
        caller = await self._known(request)
        caller = self._for_tenant(request, route, caller)
        if not caller.admin:
            if route.admin:
                raise Refusal(403, ROOT_NEEDED, "request.forbidden")
            if not self._allowed(caller.capabilities, request.method, route.path):
                raise Refusal(403, code="request.forbidden")
        return caller

    async def _known(self, request: Request) -> Principal:
        root = self._settings.api_key
        if not root:
            return Principal(admin=True)
        given = request.headers.get("x-api-key", "") or _bearer(request)
        if not given:
            raise Refusal(401, code="request.unauthorized")
        if hmac.compare_digest(given.encode(), root.encode()):
            return Principal(admin=True)
        found = await self._find_key(given)
        if found is None:
            raise Refusal(401, code="request.unauthorized")
        return found

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
