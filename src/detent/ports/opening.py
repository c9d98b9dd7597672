"""Opening a store: what a new one is made with, and what whoever opens one needs beside the port.

A store of a file is guarded by a lock of the operating system beside its leases: whoever holds it
is the only process that can own the store, and its end is seen at once. A database server has no
such lock; there a lease that is not renewed is all that tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from detent.ports.store import Store


class NewStore(NamedTuple):
    """What a store is created with, for ever."""

    epoch_ms: int
    resolution_ms: int
    clock: str  # wall | stepped | virtual
    partitions: int
    store_id: str


class OpenedStore(Store, Protocol):
    """A store as an adapter opens it."""

    def hold_lock(self) -> int | None:
        """Take the lock of the operating system for all writers of this engine.

        The descriptor of the open file that carries it; None where there is no such lock, and
        leases alone say who owns the store. `store.owned` when another process has it.
        """

    def before_commit(self, hook: Callable[[], None]) -> None:
        """Call this inside every transaction of the connection, right before its COMMIT."""
