"""Making the adapters: the store file, its clock, its owner, and the writer over them."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Mapping

from detent.bootstrap.known_handlers import recall, registration
from detent.bootstrap.settings import Settings
from detent.bootstrap.signing import signer_of
from detent.model import limits
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.model.ids import timed_id
from detent.model.link import Submit
from detent.ports.store import Meta, Owner
from detent.runtime import failpoints
from detent.runtime.clock import SteppedClock, TurnClock, VirtualClock, WallClock, wall_time_ms
from detent.runtime.writer import Writer
from detent.store.sqlite import NewStore, SqliteStore, open_store

VIRTUAL_EPOCH_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z, so that virtual runs are alike


def open_or_create(settings: Settings) -> SqliteStore:
    """The store at the settings' path, made if it is not there; fixed settings must agree."""
    clock = settings.clock or "wall"
    resolution_ms = settings.resolution_ms or 100
    epoch_ms = settings.epoch_ms
    if epoch_ms is None:
        now_ms = VIRTUAL_EPOCH_MS if clock == "virtual" else wall_time_ms()
        epoch_ms = now_ms - now_ms % resolution_ms
    create = NewStore(
        epoch_ms=epoch_ms,
        resolution_ms=resolution_ms,
        clock=clock,
        partitions=settings.partitions or limits.PARTITIONS,
        store_id=timed_id(epoch_ms, os.urandom(10)),
    )
    store = open_store(settings.path, create=create)
    try:
        _check_fixed(settings, store.meta())
    except BaseException:
        store.close()
        raise
    return store


def _check_fixed(settings: Settings, meta: Meta) -> None:
    asked = {
        "clock": settings.clock,
        "resolution_ms": settings.resolution_ms,
        "partitions": settings.partitions,
    }
    for name, value in asked.items():
        stored = getattr(meta, name)
        if value is not None and value != stored:
            raise StoreError(
                "store.settings",
                f"{name} is fixed in the store as {stored!r}; leave it out, or make a new store",
            )


def make_clock(meta: Meta, settings: Settings) -> TurnClock:
    """The clock of the store's mode."""
    if meta.clock == "virtual":
        return VirtualClock(meta.epoch_ms, meta.resolution_ms)
    if meta.clock == "stepped":
        return SteppedClock(meta.epoch_ms, meta.resolution_ms, settings.turns.tick_interval_ms)
    return WallClock(meta.epoch_ms, meta.resolution_ms)


def make_owner(settings: Settings, wake: str) -> Owner:
    """This process, as an owner of partitions."""
    id = "virtual" if settings.clock == "virtual" else timed_id(wall_time_ms(), os.urandom(10))
    return Owner(id, socket.gethostname(), os.getpid(), 0, wake)


def chance_of(seed: str | None) -> Callable[[int], bytes]:
    """Where salts and fresh ids come from: the system, or a seed in virtual time."""
    if seed is None:
        return os.urandom
    count = 0

    def derived(size: int) -> bytes:
        nonlocal count
        count += 1
        out = b""
        while len(out) < size:
            out += hashlib.sha256(f"{seed}\x00{count}\x00{len(out)}".encode()).digest()
        return out[:size]

    return derived


def make_writer(
    settings: Settings,
    owner: Owner,
    chance: Callable[[int], bytes],
    handlers: Mapping[str, HandlerSpec],
) -> Writer:
    """A writer with a connection of its own; it knows these handlers before its first turn."""
    signer = signer_of(settings.seal_key)
    store = open_or_create(settings)
    try:
        known = {**recall(store), **handlers}
        clock = make_clock(store.meta(), settings)
    except BaseException:
        store.close()
        raise
    if failpoints.armed("before_commit"):
        store.before_commit(failpoints.point("before_commit"))
    writer = Writer(store, clock, settings.turns, owner, chance, own_store=True)
    writer.sign_with(signer)
    writer.submit(Submit(control=[registration(known)]))
    return writer
