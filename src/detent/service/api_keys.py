"""API keys of tenants: made once, shown once, and then known by their hash alone.

A secret is `sk_<id>_<chance>`. The id finds the record, the SHA-256 of the whole is compared in
constant time; the chance has 256 bits, so that no slower hash is needed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.records import Record, RecordQuery
from detent.service.arguments import check_text, shown, storable
from detent.service.reading import check_tenant
from detent.service.records import (
    When,
    change,
    check_limit,
    check_room,
    check_when,
    encode,
    instant,
    unix_ms,
    visible,
)
from detent.service.vault import fresh_secret

if TYPE_CHECKING:
    from detent.ports.store import Store

KIND = "api_key"
Capability = Literal["operator", "worker", "device", "publisher", "approver", "auditor"]
# What each capability opens, as beginnings of paths; operator and auditor are told in `allowed`.
OPENS: dict[str, tuple[str, ...]] = {
    "operator": (),
    "worker": ("/workers", "/handlers", "/inspect/tasks", "/inspect/workers"),
    "device": ("/mobile",),
    "publisher": ("/releases", "/plugins", "/sequences"),
    "approver": ("/approvals", "/inspect/approvals"),
    "auditor": (),
}
_PREFIX = "/api/v1"
_SIGNALS = re.compile(r"/instances/[^/]+/signals")
_SECRET = re.compile(r"sk_([0-9a-f]{32})_[A-Za-z0-9_-]{43}")
_ID_BYTES, _CHANCE_BYTES = 16, 32
_NOBODY = "0" * 64


class NewApiKey(Struct, frozen=True, kw_only=True):
    """What a caller gives."""

    tenant_id: str
    name: str = ""
    capabilities: tuple[Capability, ...] = ()
    expires_at: When | None = None


class ApiKey(Struct, frozen=True, kw_only=True):
    """A key as it is listed."""

    id: str
    tenant_id: str
    name: str
    capabilities: tuple[Capability, ...]
    created_at: When
    last_used_at: When | None
    expires_at: When | None
    revoked: bool


class MadeApiKey(Struct, frozen=True, kw_only=True):
    """A new key, with the secret that nobody will see again."""

    id: str
    tenant_id: str
    name: str
    capabilities: tuple[Capability, ...]
    secret: str
    created_at: When
    expires_at: When | None

    def __repr__(self) -> str:
        return f"MadeApiKey(id={self.id!r}, tenant_id={self.tenant_id!r})"


class Principal(NamedTuple):
    """Who calls: a tenant, by one of its keys."""

    key: str
    tenant: str
    capabilities: tuple[Capability, ...]
    expires_ms: int | None = None


class _Stored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    hash: str
    capabilities: tuple[Capability, ...]
    expires_at: When | None = None
    last_used_ms: int | None = None
    revoked: bool = False


_decode = msgspec.json.Decoder(_Stored).decode


def create_api_key(store: Store, new: NewApiKey, now_ms: int, number: str = "") -> MadeApiKey:
    """Make a key; its secret is in the answer and nowhere else.

    `number` names the key where the same request may come again: it makes no second one.
    """
    check_text("tenant_id", new.tenant_id, limits.NAME_CHARS)
    if new.name:
        check_text("name", new.name, limits.NAME_CHARS)
    check_when("api_key.invalid", "expires_at", new.expires_at)
    capabilities = tuple(dict.fromkeys(new.capabilities)) or ("operator",)
    for each in capabilities:
        if each not in OPENS:
            known = ", ".join(OPENS)
            raise RequestError("api_key.invalid", f"a capability is one of {known}; got {each!r}")
    most = limits.API_KEYS_PER_TENANT
    check_room(store, RecordQuery(KIND, tenant=new.tenant_id, limit=most), "API keys of a tenant")
    named, number = number, number or fresh_secret(_ID_BYTES).hex()
    chance = base64.urlsafe_b64encode(fresh_secret(_CHANCE_BYTES)).decode().rstrip("=")
    secret = f"sk_{number}_{chance}"
    stored = _Stored(
        name=new.name,
        hash=_hash(secret),
        capabilities=capabilities,
        expires_at=new.expires_at,
    )
    id = f"ak_{number}"
    record = Record(KIND, id, new.tenant_id, encode(stored), created_ms=now_ms, updated_ms=now_ms)
    if not store.insert_record(record):
        if named:
            text = f"this request has made the key {id}, and its secret went with the first answer"
            raise RequestError("request.spent", f"{text}; if nobody has it, revoke the key")
        raise RequestError("api_key.invalid", f"the id {id} is taken; try again")
    return MadeApiKey(
        id=id,
        tenant_id=new.tenant_id,
        name=new.name,
        capabilities=capabilities,
        secret=secret,
        created_at=instant(now_ms),
        expires_at=new.expires_at,
    )


def list_api_keys(store: Store, tenant: str | None, limit: int = 1_000) -> list[ApiKey]:
    """The keys of a tenant, or all of them, by making; revoked ones too."""
    check_tenant(tenant)
    query = RecordQuery(KIND, tenant=tenant, limit=check_limit(limit))
    return [_view(record) for record in store.records(query)]


def revoke_api_key(store: Store, tenant: str | None, id: str, now_ms: int) -> None:
    """Let nobody in with it any more; the key stays listed."""
    record = visible(store.record(KIND, id) if storable(id) else None, tenant)
    revoked = None
    if record is not None:
        revoked = change(
            store, record, lambda body: encode(structs.replace(_decode(body), revoked=True)), now_ms
        )
    if revoked is None:
        raise RequestError("api_key.not_found", f"there is no API key {shown(id)}")


def verify_api_key(store: Store, secret: object, now_ms: int) -> Principal:
    """Who a secret lets in; `api_key.refused` when nobody, without saying why."""
    match = _SECRET.fullmatch(secret) if type(secret) is str else None
    record = None if match is None else store.record(KIND, f"ak_{match[1]}")
    stored = None if record is None else _decode(record.body)
    # Compared also when there is nothing to compare with, so that time tells nothing.
    same = hmac.compare_digest(_NOBODY if stored is None else stored.hash, _hash(str(secret)))
    if record is None or stored is None or not same or stored.revoked:
        raise _refused()
    expires_ms = None if stored.expires_at is None else unix_ms(stored.expires_at)
    if expires_ms is not None and expires_ms <= now_ms:
        raise _refused()
    return Principal(record.id, record.tenant, stored.capabilities, expires_ms)


def same_secret(given: object, expected: str) -> bool:
    """Whether two secrets are the same, in constant time; for the root key."""
    told = given if type(given) is str else ""
    return hmac.compare_digest(_hash(told), _hash(expected)) and bool(expected)


def allowed(capabilities: Collection[str], method: str, path: str) -> bool:
    """Whether one of the capabilities opens a route."""
    bare = path.removeprefix(_PREFIX) if path.startswith(f"{_PREFIX}/") else path
    for each in capabilities:
        if each == "operator" or (each == "auditor" and method.upper() in ("GET", "HEAD")):
            return True
        if bare.startswith(OPENS.get(each, ())):
            return True
        if each == "approver" and _SIGNALS.fullmatch(bare):
            return True
    return False


class KeyUses:
    """When keys were used last; each use is noted here, and now and then in the store."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def note(self, key: str, now_ms: int) -> bool:
        """Note a use; True when it is time to write it, at most once a minute for a key."""
        last = self._written.pop(key, None)
        due = last is None or now_ms - last >= limits.API_KEY_USE_MS
        self._written[key] = now_ms if due or last is None else last
        if len(self._written) > limits.API_KEYS_TRACKED:
            del self._written[next(iter(self._written))]  # the one not used for longest
        return due


def write_use(store: Store, key: str, now_ms: int) -> None:
    """Write when a key was used last; nothing when it is gone."""

    def edit(body: bytes) -> bytes | None:
        stored = _decode(body)
        if stored.last_used_ms is not None and stored.last_used_ms >= now_ms:
            return None
        return encode(structs.replace(stored, last_used_ms=now_ms))

    record = store.record(KIND, key)
    if record is not None:
        change(store, record, edit, now_ms)


def _view(record: Record) -> ApiKey:
    stored = _decode(record.body)
    return ApiKey(
        id=record.id,
        tenant_id=record.tenant,
        name=stored.name,
        capabilities=stored.capabilities,
        created_at=instant(record.created_ms),
        last_used_at=None if stored.last_used_ms is None else instant(stored.last_used_ms),
        expires_at=stored.expires_at,
        revoked=stored.revoked,
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _refused() -> RequestError:
    return RequestError("api_key.refused", "the API key is unknown, revoked or expired; make one")
