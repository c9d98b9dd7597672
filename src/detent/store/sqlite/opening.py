"""Opening a store file: make it if asked, check whose it is, migrate it, set the connection up."""

from __future__ import annotations

from pathlib import Path

import apsw

from detent.model.address import MEMORY
from detent.model.errors import StoreError
from detent.ports.opening import NewStore
from detent.store.sqlite.failures import translate
from detent.store.sqlite.lock import StoreLock
from detent.store.sqlite.schema import (
    check_origin,
    is_empty,
    migrate,
    migrations,
    read_meta,
)
from detent.store.sqlite.statements import row_of, wait_for_lock
from detent.store.sqlite.store import SqliteStore

PAGE_BYTES = 4_096  # larger pages gain 6 % with new instances and lose 30 % with old ones
_CACHE_KIB = 65_536
_STATEMENTS_KEPT = 256
_WAL_KEPT_BYTES = 64 * 1024 * 1024
# Only the owner checkpoints; others would do it in the middle of a caller's request. This is for
# stores that are sent to for a long time while no owner runs.
_SENDER_CHECKPOINT_PAGES = 20_000


def open_store(
    path: str | Path,
    *,
    create: NewStore | None,
    read_only: bool = False,
    lock_descriptor: int | None = None,
    vfs: str = "",
) -> SqliteStore:
    """Open the store at `path`; where there is none, make it from `create` or raise.

    With `lock_descriptor` it shares an OS lock that was taken already, and closes that descriptor.
    A `vfs` of Python's own has no shared memory, so that a store on it has one connection only.
    """
    name = str(path)
    lock = None if name == MEMORY else _lock_of(name, lock_descriptor)
    try:
        return _open(name, create, lock, read_only=read_only, vfs=vfs)
    except BaseException:
        if lock is not None:
            lock.free()
        raise


def _open(
    name: str, create: NewStore | None, lock: StoreLock | None, *, read_only: bool, vfs: str
) -> SqliteStore:
    if name != MEMORY:
        _check_place(Path(name), create)
    try:
        connection = _connect(name, create, read_only=read_only, vfs=vfs)
    except apsw.Error as error:
        raise _explained(name, error) from error
    try:
        _prepare(connection, name, create, read_only=read_only)
        return SqliteStore(connection, read_meta(connection, name), lock)
    except apsw.Error as error:
        connection.close()
        raise _explained(name, error) from error
    except BaseException:
        connection.close()
        raise


def _lock_of(name: str, descriptor: int | None) -> StoreLock:
    lock = StoreLock(Path(name + ".lock"))
    if descriptor is not None:
        lock.adopt(descriptor)
    return lock


def _check_place(path: Path, create: NewStore | None) -> None:
    try:
        exists, is_directory = path.exists(), path.is_dir()
        has_parent = path.parent.is_dir()
    except OSError as error:
        raise StoreError(
            "store.unavailable", f"{path} cannot be reached ({error})", path=str(path)
        ) from error
    if is_directory:
        raise StoreError(
            "store.unavailable", f"{path} is a directory; name a file in it", path=str(path)
        )
    if not exists and not has_parent:
        raise StoreError(
            "store.unavailable",
            f"{path} cannot be made: there is no directory {path.parent}",
            path=str(path),
        )
    if not exists and create is None:
        said = f"there is no store at {path}"
        raise StoreError("store.unavailable", said, path=str(path), absent=True)


def _connect(name: str, create: NewStore | None, *, read_only: bool, vfs: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create is not None and not read_only:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(
        name, flags=flags, vfs=vfs or None, statementcachesize=_STATEMENTS_KEPT
    )
    if vfs:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # else a WAL needs shared memory
    connection.set_busy_handler(wait_for_lock)
    return connection


def _prepare(
    connection: apsw.Connection, name: str, create: NewStore | None, *, read_only: bool
) -> None:
    empty = is_empty(connection)
    if empty and (create is None or read_only):
        raise StoreError("store.corrupt", f"{name} is empty, and not a Detent store", path=name)
    scripts = migrations()
    version = 0 if empty else check_origin(connection, name, len(scripts))
    if read_only:
        _set_up_reader(connection, name, version, len(scripts))
        return
    if empty:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    _set_up_writer(connection, name)
    if version < len(scripts):
        migrate(connection, scripts, create)


def _set_up_reader(connection: apsw.Connection, name: str, version: int, newest: int) -> None:
    if version < newest:
        raise StoreError(
            "store.unavailable",
            f"{name} has schema {version} and needs {newest}; open it once for writing",
            path=name,
        )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _set_up_writer(connection: apsw.Connection, name: str) -> None:
    mode = row_of(connection, "PRAGMA journal_mode = WAL")[0]
    if mode != ("memory" if name == MEMORY else "wal"):
        raise StoreError(
            "store.unavailable",
            f"{name} is on a file system without shared memory (journal mode {mode}); move it",
            path=name,
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
    connection.wal_autocheckpoint(_SENDER_CHECKPOINT_PAGES)


def _explained(name: str, error: apsw.Error) -> StoreError:
    plain = translate(error)
    return StoreError(plain.code, f"{name}: {plain.message}", path=name, **plain.details)
