"""What an operator says about workers and their queues: rules, pins, push targets, commands.

They are records of four kinds with one way to make, list, change and remove them, and each counts
from the moment it is written. The writer asks for the rules when it writes a task down; a pin and
the commands `drain` and `resume` decide what a worker is given (`holds`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from detent.kernel.routing import RULE, RoutingRule, owner_of
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.payload import encode_payload
from detent.ports.records import Record, RecordQuery
from detent.service.addresses import check_url
from detent.service.arguments import check_text, invalid, shown
from detent.service.holds import PIN, VersionPin, drain, resume
from detent.service.records import change, check_limit, check_room, encode, instant, visible, whose

if TYPE_CHECKING:
    from detent.ports.store import Store

DRAIN, RESUME = "drain", "resume"
_MOST_PRIORITY = 2**31 - 1


class PushTarget(Struct, frozen=True, kw_only=True):
    """Where tasks of a queue are to be pushed, signed with a credential."""

    queue_name: str
    url: str
    tenant_id: str = ""
    credential_id: str | None = None
    enabled: bool = True


class WorkerCommand(Struct, frozen=True, kw_only=True):
    """Something a worker is told: `drain` and `resume`, or a word of its own."""

    worker_id: str
    command: str
    tenant_id: str = ""
    payload: Any = None
    acknowledged: bool = False


Body = RoutingRule | VersionPin | PushTarget | WorkerCommand


class Kind(NamedTuple):
    """A kind of record: its body, and the fields by which it is unique or found."""

    name: str
    shape: type[Any]
    key: str = ""
    owner: Callable[[str, Any], str | None] = lambda _tenant, _body: None
    check: Callable[[Any], Any] = lambda body: body  # the body as it is kept


def _check_texts(body: Any, *names: str) -> None:
    for name in names:
        check_text(name, getattr(body, name), limits.NAME_CHARS)


def _check_rule(body: RoutingRule) -> RoutingRule:
    queue = body.queue
    if body.queue_override not in ("", queue):
        raise invalid("queue_override", "the same as queue_name, or left out", body.queue_override)
    check_text("handler_name", body.handler_name, limits.NAME_CHARS)
    check_text("queue_name", queue, limits.NAME_CHARS)
    if body.match_queue:
        check_text("match_queue", body.match_queue, limits.NAME_CHARS)
    if abs(body.priority) > _MOST_PRIORITY:
        raise invalid("priority", f"a whole number up to {_MOST_PRIORITY:,}", body.priority)
    return msgspec.structs.replace(body, queue_name=queue, queue_override=queue)


def _check_pin(body: VersionPin) -> VersionPin:
    _check_texts(body, "handler_name", "version" if body.version else "min_version")
    if body.version and body.min_version:
        raise invalid("a pin", "version or min_version, not both", body.min_version)
    return body


def _check_target(body: PushTarget) -> PushTarget:
    _check_texts(body, "queue_name")
    check_url("request.invalid", "url", body.url)
    return body


def _check_command(body: WorkerCommand) -> WorkerCommand:
    _check_texts(body, "worker_id", "command")
    encode_payload(body.payload, where="payload", limit=limits.CHECKPOINT_BYTES)
    return body


RULES = Kind(
    RULE,
    RoutingRule,
    owner=lambda tenant, rule: owner_of(tenant, rule.handler_name),
    check=_check_rule,
)
PINS = Kind(
    PIN,
    VersionPin,
    key="handler_name",
    owner=lambda _tenant, pin: pin.handler_name,
    check=_check_pin,
)
TARGETS = Kind("push_target", PushTarget, key="queue_name", check=_check_target)
COMMANDS = Kind(
    "worker_command",
    WorkerCommand,
    owner=lambda _tenant, command: command.worker_id,
    check=_check_command,
)


def create(
    store: Store, kind: Kind, tenant: str | None, body: Body, id: str, now_ms: int
) -> dict[str, Any]:
    """Make a record under a fresh id; `record.exists` when there is one for the same thing."""
    owner = whose(tenant, body.tenant_id)
    body = kind.check(body)
    most = limits.FLEET_PER_TENANT
    check_room(store, RecordQuery(kind.name, tenant=owner, limit=most), f"{kind.name}s")
    record = Record(
        kind.name,
        id,
        owner,
        _stored(body),
        key=getattr(body, kind.key) if kind.key else None,
        owner=kind.owner(owner, body),
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    if not store.insert_record(record):
        present = store.record(kind.name, id)
        if present is not None and present.tenant == owner:
            return _view(kind, present)  # the same call, told again
        raise RequestError(
            "record.exists",
            f"there is a {kind.name} for this {kind.key or 'id'} already; change or delete it",
        )
    if isinstance(body, WorkerCommand):
        said_by = owner if tenant or body.tenant_id else None
        _obey(store, said_by, body, now_ms)
    return _view(kind, record)


def listing(
    store: Store, kind: Kind, tenant: str | None, limit: int = 100, **wanted: str | None
) -> list[dict[str, Any]]:
    """The records of a kind in the order of their making; `wanted` are fields and their values."""
    most = check_limit(limit)
    fields = {name: value for name, value in wanted.items() if value}
    query = RecordQuery(kind.name, tenant=tenant, limit=limits.LIST_MOST if fields else most)
    found: list[dict[str, Any]] = []
    while len(found) < most and (page := store.records(query)):
        views = [_view(kind, record) for record in page]
        found += [view for view in views if all(view.get(k) == v for k, v in fields.items())]
        query = query._replace(after=page[-1].n)
    return found[:most]


def show(store: Store, kind: Kind, tenant: str | None, id: str) -> dict[str, Any]:
    """One record; `record.not_found` where this tenant has none of that id."""
    return _view(kind, _find(store, kind, tenant, id))


def replace(
    store: Store, kind: Kind, tenant: str | None, id: str, body: Body, now_ms: int
) -> dict[str, Any]:
    """Put another body in place; what makes a record unique stays as it is."""
    record = _find(store, kind, tenant, id)
    whose(record.tenant, body.tenant_id)
    body = kind.check(body)
    if kind.key and getattr(body, kind.key) != record.key:
        raise RequestError(
            "request.invalid",
            f"{kind.key} of a {kind.name} stays {shown(record.key)}; make another one instead",
        )
    found_by = kind.owner(record.tenant, body)
    changed = change(store, record, lambda _body: _stored(body), now_ms, lambda _body: found_by)
    if changed is None:
        raise _unknown(kind, id)
    return _view(kind, changed)


def delete(store: Store, kind: Kind, tenant: str | None, id: str) -> None:
    """Remove a record."""
    record = _find(store, kind, tenant, id)
    store.delete_record(kind.name, record.id)


def acknowledge(store: Store, tenant: str | None, id: str, now_ms: int) -> dict[str, Any]:
    """The worker has heard its command."""
    record = _find(store, COMMANDS, tenant, id)
    heard = msgspec.structs.replace(_read(COMMANDS, record), acknowledged=True)
    changed = change(store, record, lambda _body: _stored(heard), now_ms)
    if changed is None:
        raise _unknown(COMMANDS, id)
    return _view(COMMANDS, changed)


def _obey(store: Store, tenant: str | None, body: WorkerCommand, now_ms: int) -> None:
    if body.command == DRAIN:
        drain(store, tenant, body.worker_id, now_ms)
    elif body.command == RESUME:
        resume(store, tenant, body.worker_id)


def _find(store: Store, kind: Kind, tenant: str | None, id: str) -> Record:
    record = visible(store.record(kind.name, id), tenant)
    if record is None:
        raise _unknown(kind, id)
    return record


def _stored(body: Body) -> bytes:
    return encode(msgspec.structs.replace(body, tenant_id=""))


def _read(kind: Kind, record: Record) -> Any:
    return msgspec.json.decode(record.body, type=kind.shape)


def _view(kind: Kind, record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        **msgspec.structs.asdict(_read(kind, record)),
        "tenant_id": record.tenant,
        "created_at": instant(record.created_ms),
        "updated_at": instant(record.updated_ms),
    }


def _unknown(kind: Kind, id: str) -> RequestError:
    return RequestError("record.not_found", f"there is no {kind.name} {shown(id)}")
