"""Rows that are ordinary writes of any process: definitions and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.model.errors import DefinitionError, Fault
from detent.model.ids import derived_id
from detent.ports.definitions import DefinitionRow

if TYPE_CHECKING:
    from detent.ports.definitions import DefinitionQuery
    from detent.store.postgres.session import Session

_COLUMNS = "hash, tenant, ns, name, version, body, deprecated, created_ms, id, status, created_at"
_INSERT = f"""
INSERT INTO definition({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING
"""
_SELECT = f"SELECT {_COLUMNS} FROM definition"
_OF_HASH = f"{_SELECT} WHERE hash = $1 ORDER BY created_ms, tenant, ns LIMIT 1"
_OF_ID = f"{_SELECT} WHERE id = $1"
_OF_VERSION = f"{_SELECT} WHERE tenant = $1 AND ns = $2 AND name = $3 AND version = $4"
_NEWEST = f"""
{_SELECT} WHERE tenant = $1 AND ns = $2 AND name = $3 AND NOT deprecated
ORDER BY version DESC LIMIT 1
"""
_ALL = f"{_SELECT} WHERE tenant = $1 AND ns = $2 ORDER BY name, version"
_DEPRECATE = "UPDATE definition SET deprecated = true WHERE hash = $1 AND tenant = $2 AND ns = $3"
_STATUS = "UPDATE definition SET status = $4 WHERE hash = $1 AND tenant = $2 AND ns = $3"
_DELETE = "DELETE FROM definition WHERE id = $1"
_SELECT_SETTING = "SELECT value FROM setting WHERE name = $1"
_UPSERT_SETTING = """
INSERT INTO setting(name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


def put_definition(session: Session, row: DefinitionRow) -> bool:
    """Insert; False when the same content is there, `definition.conflict` when other content is."""
    row = row._replace(id=row.id or _own_id(row.tenant, row.namespace, row.name, row.version))
    if session.change(_INSERT, row):
        return True
    stored = find_definition(session, row.tenant, row.namespace, row.name, row.version)
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


def definition(session: Session, hash: str) -> DefinitionRow | None:
    """The content of a hash; every tenant that has it has the same."""
    return _definition(session.row(_OF_HASH, (hash,)))


def definition_by_id(session: Session, id: str) -> DefinitionRow | None:
    """The definition that clients know by this id."""
    return _definition(session.row(_OF_ID, (id,)))


def find_definition(
    session: Session, tenant: str, namespace: str, name: str, version: int | None
) -> DefinitionRow | None:
    """The version, or the highest one that is not deprecated."""
    if version is None:
        return _definition(session.row(_NEWEST, (tenant, namespace, name)))
    return _definition(session.row(_OF_VERSION, (tenant, namespace, name, version)))


def definitions(session: Session, tenant: str, namespace: str) -> list[DefinitionRow]:
    """All versions of all definitions of a namespace, by name and version."""
    return [DefinitionRow._make(row) for row in session.rows(_ALL, (tenant, namespace))]


def find_definitions(session: Session, query: DefinitionQuery) -> list[DefinitionRow]:
    """A page by tenant, namespace, name and falling version; deprecated ones too."""
    wanted = {
        "tenant": query.tenant,
        "ns": query.namespace,
        "name": query.name,
        "hash": query.hash,
    }
    wanted = {column: value for column, value in wanted.items() if value is not None}
    conditions = [f"{column} = ${at}" for at, column in enumerate(wanted, 1)]
    values: list[Any] = list(wanted.values())
    if query.without is not None:
        values.append(query.without)
        conditions.append(f"ns <> ${len(values)}")
    where = " AND ".join(conditions) or "true"
    at = len(values)
    sql = f"""{_SELECT} WHERE {where} ORDER BY tenant, ns, name, version DESC
        LIMIT ${at + 1} OFFSET ${at + 2}"""
    found = session.rows(sql, (*values, query.limit, query.offset))
    return [DefinitionRow._make(row) for row in found]


def deprecate_definition(session: Session, hash: str, tenant: str, namespace: str) -> bool:
    """Start no new instance of it by name; False when it is not there."""
    return session.change(_DEPRECATE, (hash, tenant, namespace)) > 0


def set_definition_status(
    session: Session, hash: str, tenant: str, namespace: str, status: str
) -> bool:
    """Say how far it is published; False when it is not there."""
    return session.change(_STATUS, (hash, tenant, namespace, status)) > 0


def delete_definition(session: Session, id: str) -> bool:
    """Remove one version; False when it is not there."""
    return session.change(_DELETE, (id,)) > 0


def setting(session: Session, name: str) -> str | None:
    """The value of a setting kept in the store."""
    row = session.row(_SELECT_SETTING, (name,))
    return None if row is None else str(row[0])


def put_setting(session: Session, name: str, value: str) -> None:
    """Keep a setting in the store."""
    session.change(_UPSERT_SETTING, (name, value))


def _own_id(tenant: str, namespace: str, name: str, version: int) -> str:
    return derived_id(tenant, "definition", f"{namespace}/{name}/{version}")


def _definition(row: Any) -> DefinitionRow | None:
    return None if row is None else DefinitionRow._make(row)
