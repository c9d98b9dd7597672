"""Credentials: secrets that steps refer to by id, sealed at rest and never shown.

A credential belongs to a tenant, or to all (`tenant_id` is empty). Ids are the same for all
tenants. What callers see of one is a `Credential`; its value leaves only by `handing_out`, on the
way to a handler.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.records import Record, RecordQuery
from detent.service.addresses import check_url
from detent.service.arguments import shown, storable
from detent.service.reading import check_tenant
from detent.service.records import (
    When,
    change,
    check_limit,
    check_room,
    check_when,
    encode,
    instant,
    visible,
    whose,
)
from detent.service.vault import Place, Safe

if TYPE_CHECKING:
    from detent.ports.store import Store

KIND = "credential"
GLOBAL = ""
REFRESHED = "refreshed"  # the owner of records that are to be refreshed, so that they are few
Kind = Literal["api_key", "oauth2", "basic"]
KINDS = ("api_key", "oauth2", "basic")
_ID = re.compile(r"[A-Za-z0-9._-]+")


class NewCredential(Struct, frozen=True, kw_only=True):
    """What a caller gives; it does not show its secrets to whoever prints it."""

    id: str
    name: str
    value: str
    kind: Kind = "api_key"
    tenant_id: str = GLOBAL
    expires_at: When | None = None
    refresh_url: str | None = None
    refresh_token: str | None = None
    description: str | None = None

    def __repr__(self) -> str:
        return f"NewCredential(id={self.id!r}, kind={self.kind!r})"


class CredentialPatch(Struct, frozen=True, kw_only=True):
    """What to change; what is not set stays, null takes away."""

    name: str | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    value: str | UnsetType = UNSET
    expires_at: When | UnsetType | None = UNSET
    refresh_url: str | UnsetType | None = UNSET
    refresh_token: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    description: str | UnsetType | None = UNSET

    def __repr__(self) -> str:
        named = [name for name in self.__struct_fields__ if getattr(self, name) is not UNSET]
        return f"CredentialPatch({', '.join(named)})"


class Credential(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A credential as callers see it: without any secret."""

    id: str
    tenant_id: str
    name: str
    kind: Kind
    enabled: bool
    has_refresh_token: bool
    created_at: When
    updated_at: When
    expires_at: When | None = None
    refresh_url: str | None = None
    refresh_error: str | None = None  # why the last refresh gave no token
    description: str | None = None


class Setback(Struct, frozen=True, kw_only=True):
    """Why the last refresh gave no token; `again` when another one may."""

    why: str
    again: bool = False


class Stored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a record; value and refresh token are sealed."""

    name: str
    value: bytes
    kind: Kind = "api_key"
    enabled: bool = True
    expires_at: When | None = None
    refresh_url: str | None = None
    refresh_token: bytes | None = None
    description: str | None = None
    next_refresh_ms: int = 0  # no refresh before this: one is under way, or has just failed
    setback: Setback | None = None  # it has failed


decode = msgspec.json.Decoder(Stored).decode


def create_credential(
    store: Store, safe: Safe, tenant: str | None, new: NewCredential, now_ms: int
) -> Credential:
    """Seal and store one; `credential.exists` when the id is taken, by whoever it be."""
    owner = whose(tenant, new.tenant_id, GLOBAL)
    _check_id(new.id)
    _check_secret("value", new.value)
    if new.refresh_token is not None:
        _check_secret("refresh_token", new.refresh_token)
    stored = Stored(
        name=new.name,
        value=b"",
        kind=new.kind,
        expires_at=new.expires_at,
        refresh_url=new.refresh_url,
        refresh_token=None if new.refresh_token is None else b"",
        description=new.description,
    )
    _check(stored, safe)
    most = limits.CREDENTIALS_PER_TENANT
    check_room(store, RecordQuery(KIND, tenant=owner, limit=most), "credentials of a tenant")
    stored = structs.replace(stored, **sealed(safe, owner, new.id, new))
    record = written(Record(KIND, new.id, owner, b"", created_ms=now_ms, updated_ms=now_ms), stored)
    if not store.insert_record(record):
        raise RequestError(
            "credential.exists",
            f"a credential {shown(new.id)} is there already, maybe another tenant's; "
            "choose another id",
        )
    return _view(record)


def list_credentials(store: Store, tenant: str | None, limit: int = 100) -> list[Credential]:
    """The tenant's own and the global ones, by making; all of them for the operator."""
    check_tenant(tenant)
    most = check_limit(limit)
    found = store.records(RecordQuery(KIND, tenant=tenant, limit=most))
    if tenant is not None:
        found += store.records(RecordQuery(KIND, tenant=GLOBAL, limit=most))
    return [_view(record) for record in sorted(found, key=lambda each: each.n)[:most]]


def get_credential(store: Store, tenant: str | None, id: str) -> Credential:
    """One of the tenant's own, or a global one."""
    check_tenant(tenant)
    record = credential_record(store, id)
    if record is None or (tenant not in (None, record.tenant) and record.tenant != GLOBAL):
        raise _unknown(id)
    return _view(record)


def patch_credential(
    store: Store, safe: Safe, tenant: str | None, id: str, patch: CredentialPatch, now_ms: int
) -> Credential:
    """Change what the patch names; a global one is the operator's to change."""
    record = _own(store, tenant, id)
    for name in ("value", "refresh_token"):
        given = getattr(patch, name)
        if given is not UNSET and (given is not None or name == "value"):
            _check_secret(name, given)
    secrets = sealed(safe, record.tenant, id, patch)

    def edit(body: bytes) -> bytes:
        plain = ("name", "kind", "expires_at", "refresh_url", "enabled", "description")
        given = {name: getattr(patch, name) for name in plain}
        given = {name: value for name, value in given.items() if value is not UNSET}
        edited = structs.replace(decode(body), **given, **secrets, next_refresh_ms=0, setback=None)
        _check(edited, safe)
        return encode(edited)

    changed = change(store, record, edit, now_ms, owner_of)
    if changed is None:
        raise _unknown(id)
    return _view(changed)


def delete_credential(store: Store, tenant: str | None, id: str) -> None:
    """Remove one; steps that refer to it fail from now on."""
    if not store.delete_record(KIND, _own(store, tenant, id).id):
        raise _unknown(id)


def sealed(safe: Safe, tenant: str, id: str, given: Any) -> dict[str, bytes | None]:
    """The sealed fields of what has secrets in it; those that are not set are left out."""
    fields: dict[str, bytes | None] = {}
    for name in ("value", "refresh_token"):
        secret = getattr(given, name, UNSET)
        if secret is not UNSET:
            place = Place(KIND, tenant, id, name)
            fields[name] = None if secret is None else safe.seal(secret, place)
    return fields


def owner_of(body: bytes) -> str | None:
    """Under which owner a record is found: those that can be refreshed are asked for often."""
    stored = decode(body)
    complete = stored.refresh_url and stored.refresh_token is not None and stored.expires_at
    return REFRESHED if stored.kind == "oauth2" and stored.enabled and complete else None


def written(record: Record, stored: Stored) -> Record:
    """The record with this body."""
    body = encode(stored)
    return record._replace(body=body, owner=owner_of(body))


def credential_record(store: Store, id: object) -> Record | None:
    """The record of an id, whosever it is."""
    return store.record(KIND, str(id)) if storable(id) else None


def _own(store: Store, tenant: str | None, id: str) -> Record:
    record = visible(credential_record(store, id), tenant)
    if record is None:
        raise _unknown(id)
    return record


def _check_id(id: object) -> None:
    if type(id) is not str or len(id) > limits.NAME_CHARS or not _ID.fullmatch(id):
        expected = f"1 to {limits.NAME_CHARS} letters, digits, dots, dashes and underscores"
        raise _invalid(f"id must be {expected}; got {shown(id)}")


def _check_secret(name: str, secret: object) -> None:
    """Refuse a secret that cannot be one, without showing it."""
    if not storable(secret) or not secret:
        raise _invalid(f"{name} must be text that is not empty, without NUL and lone surrogates")
    if len(str(secret).encode()) > limits.CREDENTIAL_BYTES:
        raise RequestError(
            "payload.too_large",
            f"{name} must have at most {limits.CREDENTIAL_BYTES:,} bytes; "
            "keep what is larger elsewhere",
        )


def _check(stored: Stored, safe: Safe) -> None:
    if not storable(stored.name) or not 0 < len(stored.name) <= limits.NAME_CHARS:
        raise _invalid(f"name must be text of 1 to {limits.NAME_CHARS} characters")
    if stored.kind not in KINDS:
        raise _invalid(f"kind must be one of {', '.join(KINDS)}; got {shown(stored.kind)}")
    if type(stored.enabled) is not bool:
        raise _invalid(f"enabled must be true or false; got {shown(stored.enabled)}")
    described = stored.description
    if described is not None and (
        not storable(described) or len(described) > limits.DESCRIPTION_CHARS
    ):
        raise _invalid(f"description must be text of {limits.DESCRIPTION_CHARS} characters at most")
    check_when("credential.invalid", "expires_at", stored.expires_at)
    if stored.refresh_url is not None:
        check_url("credential.invalid", "refresh_url", stored.refresh_url, safe)
        if stored.kind == "oauth2" and stored.refresh_token is None:
            raise _invalid("an oauth2 credential with refresh_url needs refresh_token; got none")


def _view(record: Record) -> Credential:
    stored = decode(record.body)
    return Credential(
        id=record.id,
        tenant_id=record.tenant,
        name=stored.name,
        kind=stored.kind,
        enabled=stored.enabled,
        has_refresh_token=stored.refresh_token is not None,
        created_at=instant(record.created_ms),
        updated_at=instant(record.updated_ms),
        expires_at=stored.expires_at,
        refresh_url=stored.refresh_url,
        refresh_error=None if stored.setback is None else stored.setback.why,
        description=stored.description,
    )


def _invalid(message: str) -> RequestError:
    return RequestError("credential.invalid", message)


def _unknown(id: object) -> RequestError:
    return RequestError("credential.not_found", f"there is no credential {shown(id)}")
