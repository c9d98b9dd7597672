"""Rows that are ordinary writes of any process: definitions and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.errors import DefinitionError, Fault
from detent.model.ids import derived_id
from detent.ports.definitions import DefinitionRow
from detent.store.sqlite.statements import change, row_of, rows_of, transaction

if TYPE_CHECKING:
    import apsw

    from detent.ports.definitions import DefinitionQuery

_COLUMNS = "hash, tenant, ns, name, version, body, deprecated, created_ms, id, status, created_at"
_INSERT = f"""
INSERT INTO definition({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_SELECT = f"SELECT {_COLUMNS} FROM definition"
_OF_HASH = f"{_SELECT} WHERE hash = ? ORDER BY created_ms, tenant, ns LIMIT 1"
_OF_ID = f"{_SELECT} WHERE id = ? AND id <> ''"  # the second condition names the partial index
_OF_VERSION = f"{_SELECT} WHERE tenant = ? AND ns = ? AND name = ? AND version = ?"
_NEWEST = f"""
{_SELECT} WHERE tenant = ? AND ns = ? AND name = ? AND deprecated = 0
ORDER BY version DESC LIMIT 1
"""
_ALL = f"{_SELECT} WHERE tenant = ? AND ns = ? ORDER BY name, version"
_DEPRECATE = "UPDATE definition SET deprecated = 1 WHERE hash = ? AND tenant = ? AND ns = ?"
_STATUS = "UPDATE definition SET status = ? WHERE hash = ? AND tenant = ? AND ns = ?"
_DELETE = "DELETE FROM definition WHERE id = ? AND id <> ''"
_WITHOUT_ID = "SELECT tenant, ns, name, version FROM definition WHERE id = ''"
_GIVE_ID = """
UPDATE definition SET id = ? WHERE tenant = ? AND ns = ? AND name = ? AND version = ?
"""
_SELECT_SETTING = "SELECT value FROM setting WHERE name = ?"
_UPSERT_SETTING = """
INSERT INTO setting(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value
"""


def put_definition(connection: apsw.Connection, row: DefinitionRow) -> bool:
    """Insert; False when the same content is there, `definition.conflict` when other content is."""
    row = row._replace(id=row.id or _own_id(row.tenant, row.namespace, row.name, row.version))
    with transaction(connection):
        if change(connection, _INSERT, row):
            return True
    stored = find_definition(connection, row.tenant, row.namespace, row.name, row.version)
    if stored is not None and stored.hash == row.hash:
        return False
    if stored is None:
        message = f"id {row.id} is another definition's; choose another id"
        raise DefinitionError([Fault("id", "definition.conflict", message)], "definition.conflict")
    message = (
        f"version {row.version} of {row.name} is stored with hash {stored.hash}, "
        f"this one has {row.hash}; raise the version"
    )
    raise DefinitionError([Fault("version", "definition.conflict", message)], "definition.conflict")


def give_ids(connection: apsw.Connection) -> None:
    """Give the definitions of earlier releases the ids they are known by since."""
    for tenant, namespace, name, version in rows_of(connection, _WITHOUT_ID):
        id = _own_id(tenant, namespace, name, version)
        connection.execute(_GIVE_ID, (id, tenant, namespace, name, version))


def definition(connection: apsw.Connection, hash: str) -> DefinitionRow | None:
    """The content of a hash; every tenant that has it has the same."""
    return _definition(row_of(connection, _OF_HASH, (hash,)))


def definition_by_id(connection: apsw.Connection, id: str) -> DefinitionRow | None:
    """The definition that clients know by this id."""
    return _definition(row_of(connection, _OF_ID, (id,)))


def find_definition(
    connection: apsw.Connection, tenant: str, namespace: str, name: str, version: int | None
) -> DefinitionRow | None:
    """The version, or the highest one that is not deprecated."""
    if version is None:
        return _definition(row_of(connection, _NEWEST, (tenant, namespace, name)))
    return _definition(row_of(connection, _OF_VERSION, (tenant, namespace, name, version)))


def definitions(connection: apsw.Connection, tenant: str, namespace: str) -> list[DefinitionRow]:
    """All versions of all definitions of a namespace, by name and version."""
    return [_row(row) for row in rows_of(connection, _ALL, (tenant, namespace))]


def find_definitions(connection: apsw.Connection, query: DefinitionQuery) -> list[DefinitionRow]:
    """A page by tenant, namespace, name and falling version; deprecated ones too."""
    wanted = {
        "tenant": query.tenant,
        "ns": query.namespace,
        "name": query.name,
        "hash": query.hash,
    }
    wanted = {column: value for column, value in wanted.items() if value is not None}
    conditions = [f"{column} = ?" for column in wanted]
    values: list[Any] = list(wanted.values())
    if query.without is not None:
        conditions.append("ns <> ?")
        values.append(query.without)
    where = " AND ".join(conditions) or "TRUE"
    index = "" if query.hash is None else " INDEXED BY definition_hash"
    sql = f"{_SELECT}{index} WHERE {where} ORDER BY tenant, ns, name, version DESC LIMIT ? OFFSET ?"
    return [_row(row) for row in rows_of(connection, sql, (*values, query.limit, query.offset))]


def deprecate_definition(
    connection: apsw.Connection, hash: str, tenant: str, namespace: str
) -> bool:
    """Start no new instance of it by name; False when it is not there."""
    with transaction(connection):
        return change(connection, _DEPRECATE, (hash, tenant, namespace)) > 0


def set_definition_status(
    connection: apsw.Connection, hash: str, tenant: str, namespace: str, status: str
) -> bool:
    """Say how far it is published; False when it is not there."""
    with transaction(connection):
        return change(connection, _STATUS, (status, hash, tenant, namespace)) > 0


def delete_definition(connection: apsw.Connection, id: str) -> bool:
    """Remove one version; False when it is not there."""
    with transaction(connection):
        return change(connection, _DELETE, (id,)) > 0


def setting(connection: apsw.Connection, name: str) -> str | None:
    """The value of a setting kept in the store."""
    row = row_of(connection, _SELECT_SETTING, (name,))
    return None if row is None else str(row[0])


def put_setting(connection: apsw.Connection, name: str, value: str) -> None:
    """Keep a setting in the store."""
    with transaction(connection):
        connection.execute(_UPSERT_SETTING, (name, value))


def _own_id(tenant: str, namespace: str, name: str, version: int) -> str:
    return derived_id(tenant, "definition", f"{namespace}/{name}/{version}")


def _definition(row: Any) -> DefinitionRow | None:
    return None if row is None else _row(row)


def _row(row: Any) -> DefinitionRow:
    found = DefinitionRow._make(row)
    return found._replace(deprecated=found.deprecated == 1)
