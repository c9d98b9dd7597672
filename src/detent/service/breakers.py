"""Circuit breakers as they stand: read from the rows of tenants' gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from detent.kernel.gate.breakers import read_breaker
from detent.kernel.gate.config_checks import unknown
from detent.model.limits import BREAKERS_LISTED, NAME_CHARS
from detent.service.arguments import check_text

if TYPE_CHECKING:
    from detent.ports.store import GateRow, Meta, Store


class BreakerView(Struct, frozen=True, kw_only=True):
    """A breaker; there is one for each handler of a tenant that has failed once."""

    tenant: str
    handler: str
    state: str  # closed | open | half_open: the next call is the probe, or it is under way
    failures: int  # since the last success
    threshold: int
    cooldown_ms: int
    opened_ms: int | None = None
    next_call_ms: int | None = None  # while it is open: when a call may pass; None: now


def list_breakers(store: Store, tenant: str | None, now_ms: int) -> list[BreakerView]:
    """The breakers of a tenant, or of all, by tenant and handler."""
    if tenant is not None:
        check_text("tenant", tenant, NAME_CHARS)
    meta = store.meta()
    return [_view(row, meta, now_ms) for row in store.breaker_rows(tenant, BREAKERS_LISTED)]


def find_breaker(store: Store, tenant: str, handler: str, now_ms: int) -> BreakerView:
    """One breaker; a handler that never failed has none."""
    found = {each.handler: each for each in list_breakers(store, tenant, now_ms)}
    if type(handler) is not str or handler not in found:
        raise unknown("breaker.unknown", "circuit breaker", str(handler), found)
    return found[handler]


def has_failures(store: Store, tenant: str, handler: str) -> bool:
    """Whether there is anything to reset."""
    return any(
        row.key == handler and read_breaker(row.body or b"").failures
        for row in store.breaker_rows(tenant, BREAKERS_LISTED)
    )


def _view(row: GateRow, meta: Meta, now_ms: int) -> BreakerView:
    breaker = read_breaker(row.body or b"")
    tick = (now_ms - meta.epoch_ms) // meta.resolution_ms

    def ms_of(at: int) -> int:
        return meta.epoch_ms + at * meta.resolution_ms

    return BreakerView(
        tenant=row.tenant,
        handler=row.key,
        state=breaker.state(tick),
        failures=breaker.failures,
        threshold=breaker.threshold,
        cooldown_ms=breaker.cooldown_ms,
        opened_ms=ms_of(breaker.opened) if breaker.until else None,
        next_call_ms=ms_of(breaker.until) if breaker.until > tick else None,
    )
