"""Circuit breakers of handlers (contract §25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from detent.model.errors import RequestError
from detent.service.breakers import find_breaker, list_breakers
from detent.web.api.call import Call
from detent.web.api.reply import instant, json_reply, seconds
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.service.breakers import BreakerView

table = Table("circuit-breakers")


@table.route("GET", "/circuit-breakers", gives={200: list[Any]}, tenantless=True)
async def list_all(call: Call) -> Response:
    """The breakers of all tenants; of its own, for the caller of one."""
    tenant, now_ms = call.tenant, call.desk.now_ms()
    found = await call.desk.look(lambda store: list_breakers(store, tenant, now_ms))
    return json_reply([_breaker(each) for each in found])


@table.route("GET", "/tenants/{tenant}/circuit-breakers", gives={200: list[Any]}, tenantless=True)
async def list_of_tenant(call: Call) -> Response:
    """The breakers of a tenant."""
    tenant, now_ms = _tenant(call), call.desk.now_ms()
    found = await call.desk.look(lambda store: list_breakers(store, tenant, now_ms))
    return json_reply([_breaker(each) for each in found])


@table.route(
    "GET", "/tenants/{tenant}/circuit-breakers/{handler}", gives={200: Any}, tenantless=True
)
async def show(call: Call) -> Response:
    """One breaker; a handler that never failed has none."""
    tenant, handler, now_ms = _tenant(call), call.path["handler"], call.desk.now_ms()
    found = await call.desk.look(lambda store: find_breaker(store, tenant, handler, now_ms))
    return json_reply(_breaker(found))


@table.route(
    "POST", "/tenants/{tenant}/circuit-breakers/{handler}/reset", gives={200: Any}, tenantless=True
)
async def reset(call: Call) -> Response:
    """Close a breaker and forget its failures; where there is none, none is made."""
    tenant, handler = _tenant(call), call.path["handler"]
    await call.desk.verb(lambda verbs: verbs.breakers.reset(handler, tenant=tenant))
    body = {"tenant_id": tenant, "handler": handler, "state": "closed", "failure_count": 0}
    return json_reply(body)


def _tenant(call: Call) -> str:
    """The tenant of the path; another's does not exist for the caller of one."""
    named = call.path["tenant"]
    if call.tenant is not None and call.tenant != named:
        raise RequestError("breaker.unknown", f"there is no tenant {named!r}")
    return named


def _breaker(view: BreakerView) -> dict[str, Any]:
    return {
        "tenant_id": view.tenant,
        "handler": view.handler,
        "state": view.state,
        "failure_count": view.failures,
        "failure_threshold": view.threshold,
        "cooldown_secs": seconds(view.cooldown_ms),
        "opened_at": instant(view.opened_ms),
        "next_call_at": instant(view.next_call_ms),
    }
