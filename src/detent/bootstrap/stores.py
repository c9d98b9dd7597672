"""Stores by their address: the one place that knows which adapter serves which.

An adapter is imported when an address needs it: a database driver is an extra, and takes its time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detent.bootstrap.wake import WakeListener
from detent.model.address import POSTGRES, is_file, scheme_of, shown_address
from detent.model.errors import StoreError
from detent.ports.opening import NewStore, OpenedStore
from detent.ports.waking import Listener, Wake
from detent.store import sqlite

if TYPE_CHECKING:
    from types import ModuleType

    from detent.ports.store import Meta


def open_store(
    address: str | Path,
    *,
    create: NewStore | None,
    read_only: bool = False,
    lock_descriptor: int | None = None,
) -> OpenedStore:
    """Open the store at an address; where there is none, make it from `create` or raise."""
    name = str(address)
    if is_file(name):
        return sqlite.open_store(
            name, create=create, read_only=read_only, lock_descriptor=lock_descriptor
        )
    opened: OpenedStore = _adapter(name).open_store(name, create=create, read_only=read_only)
    return opened


def open_reader(address: str | Path) -> OpenedStore:
    """A connection that can only read; it works beside any owner."""
    return open_store(address, create=None, read_only=True)


def is_locked(address: str | Path) -> bool:
    """Whether a process holds the lock of the store; on a server there is none."""
    return is_file(str(address)) and sqlite.is_locked(address)


def make_listener(address: str, meta: Meta, woken: Callable[[Wake], None]) -> Listener:
    """Who hears that others left something in the store."""
    if is_file(address):
        everywhere = Wake(partitions=tuple(range(meta.partitions)))
        return WakeListener(lambda: woken(everywhere))
    listener: Listener = _adapter(address).PostgresListener(address, meta.store_id, woken)
    return listener


def _adapter(address: str) -> ModuleType:
    scheme = scheme_of(address)
    if scheme not in POSTGRES:
        raise StoreError(
            "store.address",
            f"{shown_address(address)} is no address of a store: there is none of {scheme}://; "
            "give the path of a file, or postgresql://user:password@host:port/database",
        )
    try:
        from detent.store import postgres
    except ImportError as error:
        raise _no_driver(error) from None
    return postgres


def _no_driver(error: Any) -> StoreError:
    return StoreError(
        "store.driver",
        f"a store on PostgreSQL needs the package psycopg ({error}); "
        "install it with pip install 'detent[postgres]'",
    )
