"""Making the adapters: the store, its clock, its owner, and the writer over them."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Callable

import msgspec

from detent.bootstrap.chance import system_chance
from detent.bootstrap.known_handlers import recall, registration
from detent.bootstrap.owners import await_leases, open_here
from detent.bootstrap.ranges import is_sharing
from detent.bootstrap.settings import Settings
from detent.bootstrap.signing import signer_of
from detent.bootstrap.stores import open_store
from detent.model import limits
from detent.model.address import is_file
from detent.model.decision import HandlerSpec
from detent.model.errors import StoreError
from detent.model.ids import timed_id
from detent.model.link import Submit
from detent.ports.opening import NewStore, OpenedStore
from detent.ports.store import Meta, Owner, Store
from detent.runtime import failpoints
from detent.runtime.balance import PINNED
from detent.runtime.clock import (
    SteppedClock,
    TurnClock,
    VirtualClock,
    WallClock,
    boot_time_ms,
    wall_time_ms,
)
from detent.runtime.links import ProcessLink, ThreadLink
from detent.runtime.writer import Writer

VIRTUAL_EPOCH_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z, so that virtual runs are alike


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine hands to each writer it starts, in this process or another."""

    settings: Settings
    owner: Owner
    handlers: dict[str, HandlerSpec]
    lock: int | None  # of the OS lock, which the engine holds while it makes calls, if there is one
    ahead_ms: int  # wall time less boot time by the engine's clock, so that both agree on leases


def open_or_create(settings: Settings, lock: int | None = None) -> OpenedStore:
    """The store at the settings' address, made if it is not there; fixed settings must agree.

    With `lock` it shares the OS lock that the descriptor carries.
    """
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
        store_id=timed_id(epoch_ms, system_chance(10)),
    )
    shared = None if lock is None else os.dup(lock)
    store = open_store(settings.path, create=create, lock_descriptor=shared)
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
    beyond = [p for p in settings.turns.partitions or () if p >= meta.partitions]
    if beyond:
        raise StoreError(
            "store.settings",
            f"there is no partition {beyond[0]}: the store has {meta.partitions}, counted from 0; "
            "name only these",
        )


def make_clock(meta: Meta, settings: Settings, ahead_ms: int | None = None) -> TurnClock:
    """The clock of the store's mode; `ahead_ms` is the wall as another clock has read it."""

    def wall() -> int:
        return wall_time_ms() if ahead_ms is None else boot_time_ms() + ahead_ms

    if meta.clock == "virtual":
        return VirtualClock(meta.epoch_ms, meta.resolution_ms)
    if meta.clock == "stepped":
        interval_ms = settings.turns.tick_interval_ms
        return SteppedClock(meta.epoch_ms, meta.resolution_ms, interval_ms, wall)
    return WallClock(meta.epoch_ms, meta.resolution_ms, wall)


def make_owner(settings: Settings, wake: str) -> Owner:
    """This process, as an owner of partitions."""
    id = "virtual" if settings.clock == "virtual" else timed_id(wall_time_ms(), system_chance(10))
    if not is_file(settings.path) and not is_sharing(settings.path, settings.turns):
        id += PINNED
    return Owner(id, socket.gethostname(), os.getpid(), 0, wake)


def take_store(store: OpenedStore, settings: Settings, owner: Owner) -> int | None:
    """Be the process that may own the store: by its lock, or once the leases of others are over."""
    lock = store.hold_lock()
    if lock is None:
        await_leases(store, settings, owner.id)
    open_here.add(owner.id)
    return lock


def chance_of(seed: str | None) -> Callable[[int], bytes]:
    """Where salts and fresh ids come from: the system, or a seed in virtual time."""
    if seed is None:
        return system_chance
    count = 0

    def derived(size: int) -> bytes:
        nonlocal count
        count += 1
        out = b""
        while len(out) < size:
            out += hashlib.sha256(f"{seed}\x00{count}\x00{len(out)}".encode()).digest()
        return out[:size]

    return derived


def seed_of(settings: Settings, store: Store) -> str | None:
    """The seed of this opening: a store opened again must not give out the same ids once more."""
    opened = max((row.fence_epoch for row in store.partitions()), default=0)
    return f"{settings.seed}\x00{opened}" if settings.seed is not None and opened else settings.seed


def lower_switch_interval(ms: float | None) -> None:
    """Let a busy handler thread hold the interpreter for less long than Python's 5 ms.

    Every hand-over between the writer and the dispatcher waits that long beside a thread that
    computes: with 5 ms a one-step instance took 40 ms, with 0.2 ms it took 4 ms.
    """
    if ms is not None and sys.getswitchinterval() > ms / 1000:
        sys.setswitchinterval(ms / 1000)


def make_link(handover: Handover, chance: Callable[[int], bytes]) -> ThreadLink | ProcessLink:
    """The way to a writer in the place that the settings name."""
    if handover.settings.writer == "process":
        shared = [] if handover.lock is None else [handover.lock]
        return ProcessLink(msgspec.json.encode(handover), descriptors=shared)
    return ThreadLink(lambda successor: make_writer(handover, chance, successor=successor))


def make_writer(handover: Handover, chance: Callable[[int], bytes], *, successor: bool) -> Writer:
    """A writer with a connection of its own; it knows the handlers before its first turn.

    A `successor` follows another writer of the same engine, whose calls go on.
    """
    settings, owner = handover.settings, handover.owner
    signer = signer_of(settings.seal_key)
    store = open_or_create(settings, handover.lock)
    try:
        known = {**recall(store), **handover.handlers}
        clock = make_clock(store.meta(), settings, handover.ahead_ms)
    except BaseException:
        store.close()
        raise
    if failpoints.armed("before_commit"):
        store.before_commit(failpoints.point("before_commit"))
    writer = Writer(store, clock, settings.turns, owner, chance, own_store=True)
    writer.sign_with(signer)
    if successor:
        writer.succeed()
    writer.submit(Submit(control=[registration(known)]))
    return writer
