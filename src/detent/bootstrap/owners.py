"""Looking at a store from outside: reading it, and who owns it."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from detent.bootstrap.settings import Settings
from detent.bootstrap.stores import is_locked
from detent.model import limits
from detent.ports.store import Owner, Store
from detent.runtime.clock import wall_time_ms

open_here: set[str] = set()  # the owners that are engines of this process, until they are closed
_LOOK_S = 0.5
_LONGEST_WAIT_S = limits.WRITER_START_MS / 1000 * 0.75  # whoever opens an engine waits no longer


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


def await_leases(store: Store, settings: Settings, owner: str) -> None:
    """Wait for leases of an owner that is gone; where no lock tells so, they must run out.

    One that is renewed meanwhile, or whose process is seen here, is not gone: then whoever acquires
    is told at once.
    """
    wanted = settings.turns.partitions or range(store.meta().partitions)
    seen: dict[int, int] = {}
    until = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < until:
        now_ms = wall_time_ms()
        held = [
            row
            for row in store.partitions()
            if row.p in wanted and row.owner not in ("", owner) and row.lease_until_ms > now_ms
        ]
        renewed = any(row.lease_until_ms > seen.get(row.p, row.lease_until_ms) for row in held)
        if not held or renewed or _alive_here(store, {row.owner for row in held}):
            return
        seen.update((row.p, row.lease_until_ms) for row in held)
        last_ms = max(row.lease_until_ms for row in held)
        time.sleep(min(_LOOK_S, (last_ms - now_ms) / 1000 + 0.001))


def _alive_here(store: Store, ids: set[str]) -> bool:
    """Whether one of the owners is of this machine, and there; of this process, an open engine."""
    here = socket.gethostname()
    return any(
        owner.id in open_here if owner.pid == os.getpid() else _exists(owner.pid)
        for owner in store.owners()
        if owner.id in ids and owner.host == here
    )


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
