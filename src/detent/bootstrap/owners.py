"""Looking at a store from outside: reading it, and who owns it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from detent.ports.store import Owner, Store
from detent.runtime.clock import wall_time_ms
from detent.store.sqlite import SqliteStore, is_locked, open_store


def open_reader(path: str | Path) -> SqliteStore:
    """A connection that can only read; it works beside any owner."""
    return open_store(path, create=None, read_only=True)


def logical_now_ms(store: Store) -> int:
    """What the store's clock says: wall time, or the last tick where it follows no wall."""
    meta = store.meta()
    if meta.clock == "wall":
        return wall_time_ms()
    tick = max((row.tick for row in store.partitions()), default=0)
    return meta.epoch_ms + tick * meta.resolution_ms


def living_owner(store: Store) -> Owner | None:
    """The owner with a valid lease whose process, if it is of this machine, still exists."""
    now_ms = wall_time_ms()
    here = socket.gethostname()
    for owner in store.owners():
        if owner.lease_until_ms > now_ms and (owner.host != here or _exists(owner.pid)):
            return owner
    return None


def silent_owner(store: Store, path: str | Path) -> Owner | None:
    """The owner of this machine that let its lease run out but holds the lock: it is stopped."""
    here = socket.gethostname()
    for owner in store.owners():
        if owner.host == here and _exists(owner.pid) and is_locked(path):
            return owner
    return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
