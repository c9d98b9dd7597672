"""Triggers: named doors that start an instance of a sequence with what came through them.

Slugs are the same for all tenants. A trigger names its sequence, which is found when it fires: the
pinned version, or the newest that is not deprecated. Firing is a `StartRequest` for the caller to
start. Calls from outside are checked in `inbound`.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from detent.model import limits
from detent.model.errors import RequestError
from detent.model.ids import SYSTEM
from detent.model.payload import encode_payload
from detent.ports.records import Record, RecordQuery
from detent.service.arguments import shown, storable
from detent.service.catalogue import find_definition
from detent.service.reading import check_tenant
from detent.service.records import (
    When,
    change,
    check_limit,
    check_room,
    encode,
    instant,
    visible,
    whose,
)
from detent.service.starting import StartRequest
from detent.service.vault import Place, Safe

if TYPE_CHECKING:
    from detent.ports.definitions import DefinitionRow
    from detent.ports.store import Store

KIND = "trigger"
REDACTED = "[REDACTED]"
TriggerType = Literal["webhook", "event", "nats", "file_watch", "activepieces_poll"]
TYPES = ("webhook", "event", "nats", "file_watch", "activepieces_poll")
Source = Literal["http_fire", "public_webhook", "emit_event"]


class NewTrigger(Struct, frozen=True, kw_only=True):
    """What a caller gives; it does not show its secret to whoever prints it."""

    slug: str
    sequence_name: str
    tenant_id: str
    namespace: str = "default"
    version: int | None = None
    secret: str | None = None
    trigger_type: TriggerType = "webhook"
    config: Any = None

    def __repr__(self) -> str:
        return f"NewTrigger(slug={self.slug!r}, sequence_name={self.sequence_name!r})"


class Trigger(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger as callers see it."""

    slug: str
    sequence_name: str
    tenant_id: str
    namespace: str
    enabled: bool
    trigger_type: TriggerType
    config: Any
    created_at: When
    updated_at: When
    version: int | None = None
    secret: str | None = None  # that there is one, never which


class Stored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a record; the secret is sealed."""

    sequence_name: str
    namespace: str = "default"
    version: int | None = None
    enabled: bool = True
    trigger_type: TriggerType = "webhook"
    config: Any = None
    secret: bytes | None = None


class Firing(NamedTuple):
    """What to start, and for which trigger."""

    slug: str
    sequence_name: str
    definition: DefinitionRow
    request: StartRequest


decode = msgspec.json.Decoder(Stored).decode


def create_trigger(
    store: Store, safe: Safe, tenant: str | None, new: NewTrigger, now_ms: int
) -> Trigger:
    """Store a trigger whose sequence exists; a secret is sealed, and so needs a vault."""
    owner = whose(tenant, new.tenant_id)
    for name, text in (
        ("slug", new.slug),
        ("sequence_name", new.sequence_name),
        ("namespace", new.namespace),
    ):
        if not storable(text) or not 0 < len(text) <= limits.NAME_CHARS:
            raise _invalid(f"{name} must be text of 1 to {limits.NAME_CHARS} characters")
    if new.trigger_type not in TYPES:
        raise _invalid(f"trigger_type is one of {', '.join(TYPES)}; got {shown(new.trigger_type)}")
    if new.secret is not None and (
        not storable(new.secret) or not 0 < len(new.secret) <= limits.KEY_CHARS
    ):
        raise _invalid(f"secret must be text of 1 to {limits.KEY_CHARS} characters, or left out")
    encode_payload(new.config, where="config", limit=limits.TRIGGER_CONFIG_BYTES)
    if new.namespace == SYSTEM:
        raise _invalid(f"namespace {SYSTEM!r} is the engine's own; choose another")
    find_definition(store, (owner, new.namespace), new.sequence_name, new.version)
    most = limits.TRIGGERS_PER_TENANT
    check_room(store, RecordQuery(KIND, tenant=owner, limit=most), "triggers of a tenant")
    stored = Stored(
        sequence_name=new.sequence_name,
        namespace=new.namespace,
        version=new.version,
        trigger_type=new.trigger_type,
        config=new.config,
        secret=None if new.secret is None else safe.seal(new.secret, place_of(owner, new.slug)),
    )
    record = Record(KIND, new.slug, owner, encode(stored), created_ms=now_ms, updated_ms=now_ms)
    if not store.insert_record(record):
        raise RequestError(
            "trigger.exists",
            f"a trigger {shown(new.slug)} is there already, maybe another tenant's; "
            "choose another slug",
        )
    return _view(record)


def list_triggers(store: Store, tenant: str | None, limit: int = 100) -> list[Trigger]:
    """The tenant's triggers by making, or all of them."""
    check_tenant(tenant)
    query = RecordQuery(KIND, tenant=tenant, limit=check_limit(limit))
    return [_view(record) for record in store.records(query)]


def get_trigger(store: Store, tenant: str | None, slug: str) -> Trigger:
    """One trigger."""
    return _view(trigger_record(store, tenant, slug))


def enable_trigger(
    store: Store, tenant: str | None, slug: str, now_ms: int, *, enabled: bool
) -> Trigger:
    """Open or close the door."""
    record = trigger_record(store, tenant, slug)
    changed = change(
        store,
        record,
        lambda body: encode(structs.replace(decode(body), enabled=bool(enabled))),
        now_ms,
    )
    if changed is None:
        raise unknown_trigger(slug)
    return _view(changed)


def delete_trigger(store: Store, tenant: str | None, slug: str) -> None:
    """Remove the door; what came through it goes on."""
    if not store.delete_record(KIND, trigger_record(store, tenant, slug).id):
        raise unknown_trigger(slug)


def fire_trigger(
    store: Store, safe: Safe, tenant: str | None, slug: str, data: Any, secret: str | None = None
) -> Firing:
    """Fire with data; `trigger.refused` when the trigger has a secret and this is not it."""
    record = trigger_record(store, tenant, slug)
    stored = decode(record.body)
    if stored.secret is not None:
        expected = safe.open(stored.secret, place_of(record.tenant, slug))
        given = secret if type(secret) is str else ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
            raise RequestError("trigger.refused", "the trigger's secret is missing or wrong")
    return firing(store, record, data, {"source": "http_fire"})


def emit_to_trigger(
    store: Store, tenant: str, slug: str, data: Any, event: dict[str, Any]
) -> Firing:
    """Fire from inside, for an instance of the same tenant; that needs no secret."""
    record = trigger_record(store, tenant, slug)
    return firing(store, record, data, {**event, "source": "emit_event"})


def firing(store: Store, record: Record, data: Any, event: dict[str, Any]) -> Firing:
    """What a trigger starts now."""
    stored = decode(record.body)
    if not stored.enabled:
        raise RequestError("trigger.disabled", f"trigger {shown(record.id)} is disabled")
    place = (record.tenant, stored.namespace)
    found = find_definition(store, place, stored.sequence_name, stored.version)
    metadata = {
        "_trigger": record.id,
        "_trigger_type": stored.trigger_type,
        "_trigger_event": event,
    }
    request = StartRequest(
        data=data, metadata=metadata, tenant=record.tenant, namespace=stored.namespace
    )
    return Firing(record.id, stored.sequence_name, found, request)


def trigger_record(store: Store, tenant: str | None, slug: object) -> Record:
    """The record of a trigger that the caller may know of."""
    record = visible(store.record(KIND, str(slug)) if storable(slug) else None, tenant)
    if record is None:
        raise unknown_trigger(slug)
    return record


def secret_of_trigger(safe: Safe, record: Record) -> str | None:
    """The secret calls are signed with; None when the trigger has none."""
    sealed = decode(record.body).secret
    return None if sealed is None else safe.open(sealed, place_of(record.tenant, record.id))


def unknown_trigger(slug: object) -> RequestError:
    """The error for a slug nobody knows."""
    return RequestError("trigger.not_found", f"there is no trigger {shown(slug)}")


def place_of(tenant: str, slug: str) -> Place:
    """Where the secret of a trigger belongs."""
    return Place(KIND, tenant, slug, "secret")


def _view(record: Record) -> Trigger:
    stored = decode(record.body)
    return Trigger(
        slug=record.id,
        sequence_name=stored.sequence_name,
        tenant_id=record.tenant,
        namespace=stored.namespace,
        enabled=stored.enabled,
        trigger_type=stored.trigger_type,
        config=stored.config,
        created_at=instant(record.created_ms),
        updated_at=instant(record.updated_ms),
        version=stored.version,
        secret=None if stored.secret is None else REDACTED,
    )


def _invalid(message: str) -> RequestError:
    return RequestError("trigger.invalid", message)
