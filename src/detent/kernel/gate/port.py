"""What a step may say to its tenant's gate while it decides; the writer stands behind it.

Answers are facts: recorded by the step that asked and, on replay, taken from there. The other
methods only give back, may be said twice, and answer nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from detent.kernel.gate.asks import Answer, Ask
from detent.kernel.gate.breakers import Breaker


class BreakerPort(Protocol):
    """Circuit breakers as one step sees them."""

    @property
    def shaky(self) -> Mapping[tuple[str, str], Breaker]:
        """Those with failures, by tenant and handler."""

    def choose(self, tenant: str, handler: str, name: str) -> Any:
        """What an open breaker says to a step with a fallback; None while it is closed."""

    def report(self, tenant: str, handler: str, effect: str, *, worked: bool) -> None:
        """A call has worked, or not; said once for each effect."""


class GatePort(Protocol):
    """The gate as one step sees it; one step asks once under each token."""

    @property
    def breakers(self) -> BreakerPort:
        """Who may be called."""

    def ask(self, tenant: str, ask: Ask) -> Answer:
        """Grant now, or give a place in line."""

    def take(self, tenant: str, ticket: str) -> Answer:
        """Take what a ticket was called for."""

    def leave(self, tenant: str, ticket: str) -> None:
        """A ticket is wanted no longer."""

    def begin(self, tenant: str, ticket: str) -> None:
        """The call that a ticket was granted for has begun."""

    def let_go(self, tenant: str, key: str, instance: str) -> None:
        """An instance holds its concurrency key no longer."""

    def close(self, tenant: str, keys: tuple[str, ...], until: int) -> None:
        """Let nothing pass these keys before a tick."""
