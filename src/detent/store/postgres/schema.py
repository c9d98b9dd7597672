"""The schema that holds a store: whether it is one, which version it has, and how it gets to ours.

`store.schema` counts the migrations. They only ever append; each runs once, all missing ones in one
transaction. No lock is taken to create a store: of two that try, the second fails on the tables of
the first, and looks again.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from psycopg import errors as sql

from detent.kernel.chain import GENESIS
from detent.model.errors import StoreError
from detent.ports.store import Meta
from detent.store.postgres.statements import Rows

if TYPE_CHECKING:
    import psycopg

    from detent.ports.opening import NewStore
    from detent.store.postgres.connecting import Address
    from detent.store.postgres.session import Session

_LOOK = """
SELECT to_regnamespace($1) IS NOT NULL, to_regclass($1 || '.store') IS NOT NULL,
    (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1))
"""
_VERSION = "SELECT schema FROM store"
_SET_VERSION = "UPDATE store SET schema = $1"
_INSERT_STORE = """
INSERT INTO store(one, schema, store_id, epoch_ms, resolution_ms, clock, partitions)
VALUES (1, $1, $2, $3, $4, $5, $6)
"""
_INSERT_PARTITIONS = Rows("INSERT INTO partition(p, root) SELECT * FROM $rows", "p int, root bytes")
_SELECT_STORE = "SELECT schema, store_id, epoch_ms, resolution_ms, clock, partitions FROM store"
# Somebody else is creating the same at this moment.
_MADE_MEANWHILE = (
    sql.DuplicateSchema,
    sql.DuplicateTable,
    sql.DuplicateObject,
    sql.UniqueViolation,
)
_ROUNDS = 5
# A migration may take its time; the limit is one of PostgreSQL 17 and newer.
_NO_LIMITS = """
SELECT set_config('lock_timeout', '0', true), CASE
    WHEN current_setting('transaction_timeout', true) IS NOT NULL
    THEN set_config('transaction_timeout', '0', true) END
"""


def migrations() -> list[str]:
    """The SQL of every migration, in order."""
    place = resources.files("detent.store.postgres") / "migrations"
    files = sorted((f for f in place.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [f.read_text(encoding="utf-8") for f in files]


def prepare(
    connection: psycopg.Connection[Any],
    address: Address,
    create: NewStore | None,
    *,
    read_only: bool,
) -> None:
    """Bring the schema to the newest version; with `create` one that is empty becomes a store."""
    for round_ in range(1, _ROUNDS + 1):
        try:
            _prepare(connection, address, create, read_only=read_only)
        except _MADE_MEANWHILE:
            if round_ == _ROUNDS:
                raise
        else:
            return


def _prepare(
    connection: psycopg.Connection[Any],
    address: Address,
    create: NewStore | None,
    *,
    read_only: bool,
) -> None:
    exists, is_store, relations = _row(connection, _LOOK, [address.schema])
    scripts = migrations()
    if not is_store:
        if relations:
            raise _foreign(address)
        if create is None or read_only:
            said = f"there is no store at {address.shown} (schema {address.schema})"
            raise StoreError("store.unavailable", said, absent=True)
        _create(connection, address, create, scripts, make_schema=not exists)
        return
    version = _checked_version(connection, address, len(scripts))
    if version == len(scripts):
        return
    if read_only:
        raise StoreError(
            "store.unavailable",
            f"{address.shown} has schema {version} and needs {len(scripts)}; "
            "open it once for writing",
        )
    _upgrade(connection, address, scripts)


def _create(
    connection: psycopg.Connection[Any],
    address: Address,
    create: NewStore,
    scripts: list[str],
    *,
    make_schema: bool,
) -> None:
    with connection.transaction():
        if make_schema:
            connection.execute(f"CREATE SCHEMA {address.schema}")
        for script in scripts:
            connection.execute(script)
        fixed = (create.store_id, create.epoch_ms, create.resolution_ms, create.clock)
        connection.execute(_INSERT_STORE, (len(scripts), *fixed, create.partitions))
        rows = [(p, GENESIS) for p in range(create.partitions)]
        connection.execute(*_INSERT_PARTITIONS.of(rows))


def _upgrade(connection: psycopg.Connection[Any], address: Address, scripts: list[str]) -> None:
    with connection.transaction():
        connection.execute(_NO_LIMITS)
        connection.execute("SELECT 1 FROM store FOR UPDATE")  # others who upgrade wait here
        version = _checked_version(connection, address, len(scripts))
        for script in scripts[version:]:
            connection.execute(script)
        connection.execute(_SET_VERSION, [len(scripts)])


def _checked_version(connection: psycopg.Connection[Any], address: Address, newest: int) -> int:
    try:
        found = _row(connection, _VERSION)
    except sql.UndefinedColumn:
        raise _foreign(address) from None
    if found is None:
        raise _foreign(address)
    version = int(found[0])
    if version > newest:
        raise StoreError(
            "store.newer",
            f"{address.shown} has schema {version}, this release knows up to {newest}; "
            "upgrade Detent",
            schema=version,
            newest=newest,
        )
    return version


def read_meta(session: Session) -> Meta:
    """What is fixed in the store."""
    return Meta._make(session.row(_SELECT_STORE))


def _row(connection: psycopg.Connection[Any], text: str, values: Any = None) -> Any:
    return connection.cursor(binary=True).execute(text, values).fetchone()


def _foreign(address: Address) -> StoreError:
    return StoreError(
        "store.corrupt",
        f"the schema {address.schema} of {address.shown} holds tables, and is no Detent store; "
        "name another with ?schema=",
    )
