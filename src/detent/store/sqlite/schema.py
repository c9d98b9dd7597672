"""The schema of a store file: whose file it is, which version, and how it gets to ours.

`application_id` says that a file is a Detent store, `user_version` counts the migrations it has.
Migrations only ever append; each runs once, all missing ones in one transaction.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from detent.kernel.chain import GENESIS
from detent.model.errors import StoreError
from detent.ports.store import Meta
from detent.store.sqlite.catalogue import give_ids
from detent.store.sqlite.own_backfill import list_present
from detent.store.sqlite.statements import ManyRows, row_of, transaction

if TYPE_CHECKING:
    import apsw

    from detent.ports.opening import NewStore

APPLICATION_ID = 0x44746E74  # "Dtnt"

_WITH_IDS = 5  # the migration since which definitions have ids
_WITH_LISTS = 11  # the one since which events and deliveries are listed beside

_INSERT_STORE = (
    "INSERT INTO store(one, store_id, epoch_ms, resolution_ms, clock, partitions) "
    "VALUES (1, ?, ?, ?, ?, ?)"
)
_INSERT_PARTITIONS = ManyRows("INSERT INTO partition(p, root) VALUES", "(?, ?)")
_SELECT_STORE = "SELECT store_id, epoch_ms, resolution_ms, clock, partitions FROM store"
_COUNT_TABLES = "SELECT count(*) FROM sqlite_schema"


def migrations() -> list[str]:
    """The SQL of every migration, in order."""
    place = resources.files("detent.store.sqlite") / "migrations"
    files = sorted((f for f in place.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [f.read_text(encoding="utf-8") for f in files]


def is_empty(connection: apsw.Connection) -> bool:
    """Whether nothing has ever been stored in the file."""
    return (
        _pragma(connection, "application_id") == 0
        and _pragma(connection, "user_version") == 0
        and row_of(connection, _COUNT_TABLES)[0] == 0
    )


def check_origin(connection: apsw.Connection, path: str, newest: int) -> int:
    """The schema version of the file; refuse what is not ours or is newer than this release."""
    origin = _pragma(connection, "application_id")
    if origin != APPLICATION_ID:
        raise StoreError(
            "store.corrupt",
            f"{path} is a SQLite database, but not a Detent store "
            f"(application id {origin:#x}, expected {APPLICATION_ID:#x}); name another file",
            path=path,
        )
    version = _pragma(connection, "user_version")
    if version > newest:
        raise StoreError(
            "store.newer",
            f"{path} has schema {version}, this release knows up to {newest}; upgrade Detent",
            path=path,
            schema=version,
            newest=newest,
        )
    return version


def migrate(connection: apsw.Connection, scripts: list[str], create: NewStore | None) -> None:
    """Bring the file to the newest schema; with `create` an empty file becomes a store."""
    with transaction(connection):
        empty = is_empty(connection)  # asked again under the lock: another process may be creating
        version = _pragma(connection, "user_version")
        for script in scripts[version:]:
            connection.execute(script)
        if version < _WITH_IDS <= len(scripts):
            give_ids(connection)
        if version < _WITH_LISTS <= len(scripts) and not empty:
            list_present(connection)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        if empty and create is not None:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _insert_store(connection, create)


def read_meta(connection: apsw.Connection, path: str) -> Meta:
    """What is fixed in the store."""
    row = row_of(connection, _SELECT_STORE)
    if row is None:
        raise StoreError("store.corrupt", f"{path} has no row in its table store", path=path)
    return Meta(_pragma(connection, "user_version"), *row)


def _insert_store(connection: apsw.Connection, new: NewStore) -> None:
    values = (new.store_id, new.epoch_ms, new.resolution_ms, new.clock, new.partitions)
    connection.execute(_INSERT_STORE, values)
    flat: list[object] = []
    for p in range(new.partitions):
        flat += (p, GENESIS)
    _INSERT_PARTITIONS.run(connection, flat)


def _pragma(connection: apsw.Connection, name: str) -> int:
    return int(row_of(connection, f"PRAGMA {name}")[0])
