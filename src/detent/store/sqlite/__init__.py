"""The SQLite adapter: one file, one owner, any number of readers and senders.

In call order: `opening` makes or checks the file, `ownership` takes the OS lock and the partitions,
`readiness` and `inbox` find what a turn is about, `commit` writes it, `checkpoint` moves the WAL
into the file behind the writer's back. `views` and `catalogue` serve everybody else.
"""

from __future__ import annotations

from detent.store.sqlite.lock import is_locked
from detent.store.sqlite.opening import open_store
from detent.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "is_locked", "open_store"]
