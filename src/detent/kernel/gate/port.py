"""What a step may say to its tenant's gate while it decides; the writer stands behind it.

Answers are facts: recorded by the step that asked and, on replay, taken from there. The other
methods only give back, may be said twice, and answer nothing.
"""

from __future__ import annotations

from typing import Protocol

from detent.kernel.gate.asks import Answer, Ask


class GatePort(Protocol):
    """The gate as one step sees it; one step asks once under each token."""

    def ask(self, tenant: str, ask: Ask) -> Answer:
        """Grant now, or give a place in line."""

    def take(self, tenant: str, ticket: str) -> Answer:
        """Take what a ticket was called for."""

    def leave(self, tenant: str, ticket: str) -> None:
        """A ticket is wanted no longer."""

    def let_go(self, tenant: str, key: str, instance: str) -> None:
        """An instance holds its concurrency key no longer."""

    def close(self, tenant: str, keys: tuple[str, ...], until: int) -> None:
        """Let nothing pass these keys before a tick."""
