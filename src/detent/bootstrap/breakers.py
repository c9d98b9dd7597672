"""`engine.breakers`: circuit breakers, looked at and reset, for owner and visitor."""

from __future__ import annotations

from collections.abc import Sequence

from detent.bootstrap.gates import Gatehouse
from detent.model.limits import NAME_CHARS
from detent.service import breakers
from detent.service.arguments import check_text
from detent.service.breakers import BreakerView


class Breakers(Gatehouse):
    """Circuit breakers: one for each (tenant, handler) that has failed once."""

    def list(self, *, tenant: str | None = None) -> Sequence[BreakerView]:
        """The breakers of a tenant, or of all, by tenant and handler."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: breakers.list_breakers(store, tenant, now_ms))

    def show(self, handler: str, *, tenant: str = "default") -> BreakerView:
        """One breaker; `breaker.unknown` for a handler that never failed."""
        now_ms = self._now_ms()
        return self._door.look(lambda store: breakers.find_breaker(store, tenant, handler, now_ms))

    def reset(self, handler: str, *, tenant: str = "default") -> None:
        """Close a breaker and forget its failures; whoever waits for it goes on."""
        check_text("handler", handler, NAME_CHARS)
        check_text("tenant", tenant, NAME_CHARS)
        if self._door.look(lambda store: breakers.has_failures(store, tenant, handler)):
            self._change(tenant, "breaker.reset", {"handler": handler})
