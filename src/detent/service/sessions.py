"""Sessions: instances that belong together, under a key of the tenant's own.

An instance joins when it is created, and what it starts belongs to the session too. Pausing a
session pauses the instances in it, and setting it active again resumes those and no others; the
caller is told which commands to send, and says when they were sent (`note_resumed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from detent.kernel.lifecycle import TERMINAL
from detent.model import limits
from detent.model.errors import RequestError
from detent.model.payload import encode_payload
from detent.ports.records import Record, RecordQuery
from detent.ports.store import InstanceRow, Page
from detent.service.arguments import shown, storable
from detent.service.records import (
    When,
    change,
    check_room,
    check_when,
    encode,
    instant,
    unix_ms,
    visible,
    whose,
)

if TYPE_CHECKING:
    from detent.ports.store import Store

KIND = "session"
MEMBER = "session_instance"
State = Literal["active", "paused", "completed", "expired"]
STATES = ("active", "paused", "completed", "expired")


class NewSession(Struct, frozen=True, kw_only=True):
    """What a caller gives."""

    tenant_id: str
    session_key: str
    data: Any = None
    expires_at: When | None = None


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as callers see it."""

    id: str
    tenant_id: str
    session_key: str
    data: Any
    state: State
    created_at: When
    updated_at: When
    expires_at: When | None = None


class Steering(NamedTuple):
    """The commands that a change of state asks for: one verb, for each of these instances."""

    session: Session
    verb: Literal["", "pause", "resume"] = ""
    instances: tuple[str, ...] = ()


class _Stored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    data: Any = None
    state: State = "active"
    expires_at: When | None = None
    held: tuple[str, ...] = ()  # instances that the session has paused, to resume them again


_decode = msgspec.json.Decoder(_Stored).decode


def create_session(
    store: Store, tenant: str | None, new: NewSession, id: str, now_ms: int
) -> Session:
    """Open a session under a fresh id; `session.exists` when the tenant's key is taken."""
    owner = whose(tenant, new.tenant_id)
    _check_key(new.session_key)
    _check_data(new.data)
    check_when("session.invalid", "expires_at", new.expires_at)
    record = Record(
        KIND,
        id,
        owner,
        encode(_Stored(data=new.data, expires_at=new.expires_at)),
        key=new.session_key,
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    if not store.insert_record(record):
        present = store.record(KIND, id)
        if present is not None and (present.tenant, present.key) == (owner, new.session_key):
            return _view(present, now_ms)  # the same call, told again
        raise RequestError(
            "session.exists",
            f"tenant {shown(owner)} has a session {shown(new.session_key)}; use it, or another key",
        )
    return _view(record, now_ms)


def get_session(store: Store, tenant: str | None, id: str, now_ms: int) -> Session:
    """One session; past its `expires_at` it is expired."""
    return _view(_record(store, tenant, id), now_ms)


def session_by_key(store: Store, tenant: str | None, named: str, key: str, now_ms: int) -> Session:
    """The session that the named tenant has under a key."""
    known = storable(named) and storable(key)
    record = visible(store.record_by_key(KIND, named, key) if known else None, tenant)
    if record is None:
        raise _unknown(key)
    return _view(record, now_ms)


def set_session_data(store: Store, tenant: str | None, id: str, data: Any, now_ms: int) -> Session:
    """Replace the data as a whole."""
    _check_data(data)
    record = _record(store, tenant, id)
    changed = change(
        store, record, lambda body: encode(structs.replace(_decode(body), data=data)), now_ms
    )
    if changed is None:
        raise _unknown(id)
    return _view(changed, now_ms)


def set_session_state(
    store: Store, tenant: str | None, id: str, state: State, now_ms: int
) -> Steering:
    """Move to a state, from any other; what the instances in it must be told comes back."""
    if state not in STATES:
        raise RequestError(
            "session.invalid", f"state is one of {', '.join(STATES)}; got {shown(state)}"
        )
    record = _record(store, tenant, id)
    moving = [row for row in _members(store, record) if row.state not in TERMINAL]
    told: tuple[str, ...] = ()

    def edit(body: bytes) -> bytes:
        nonlocal told
        stored = _decode(body)
        held: tuple[str, ...] = ()
        if state == "paused":
            told = tuple(row.id for row in moving if row.state != "paused")
            held = tuple(dict.fromkeys((*stored.held, *told)))
        elif state == "active":
            told = held = tuple(row.id for row in moving if row.id in stored.held)
        return encode(structs.replace(stored, state=state, held=held))

    changed = change(store, record, edit, now_ms)
    if changed is None:
        raise _unknown(id)
    view = _view(changed, now_ms)
    if not told:
        return Steering(view)
    return Steering(view, "pause" if state == "paused" else "resume", told)


def note_resumed(store: Store, steering: Steering, now_ms: int) -> None:
    """The instances were told to resume; until this is noted, setting it active tells them again.

    So a process that dies while it tells them leaves none behind.
    """
    record = store.record(KIND, steering.session.id)
    told = frozenset(steering.instances)

    def edit(body: bytes) -> bytes | None:
        stored = _decode(body)
        if stored.state != "active":
            return None
        return encode(structs.replace(stored, held=tuple(h for h in stored.held if h not in told)))

    if record is not None:
        change(store, record, edit, now_ms)


def join_session(store: Store, tenant: str | None, id: str, instance: str, now_ms: int) -> Session:
    """Let an instance that is about to be created belong to a session that is active.

    Called before the start, so that no instance is ever outside its session; one that was never
    started after all is not listed.
    """
    record = _record(store, tenant, id)
    session = _view(record, now_ms)
    if session.state != "active":
        raise RequestError(
            "session.closed", f"session {shown(id)} is {session.state}; set it active first"
        )
    most = limits.SESSION_INSTANCES
    check_room(store, RecordQuery(MEMBER, owner=id, limit=most), "instances in a session")
    member = Record(
        MEMBER, instance, record.tenant, b"", owner=id, created_ms=now_ms, updated_ms=now_ms
    )
    if not store.insert_record(member):
        present = session_of(store, instance)
        if present != id:
            raise RequestError(
                "session.invalid", f"instance {shown(instance)} is in session {shown(present)}"
            )
    return session


def session_of(store: Store, instance: str) -> str | None:
    """The session an instance is in, its own or that of who started it."""
    seen: str | None = instance
    for _ in range(limits.SUB_SEQUENCE_DEPTH + 1):
        if seen is None:
            return None
        member = store.record(MEMBER, seen)
        if member is not None:
            return member.owner
        row = store.instance(seen)
        seen = None if row is None else row.parent
    return None


def session_instances(store: Store, tenant: str | None, id: str) -> list[InstanceRow]:
    """The instances in a session, in the order of joining, each followed by what it started."""
    return _members(store, _record(store, tenant, id))


def _members(store: Store, record: Record) -> list[InstanceRow]:
    found: list[InstanceRow] = []
    query = RecordQuery(MEMBER, owner=record.id, limit=limits.LIST_MOST)
    while page := store.records(query):
        query = query._replace(after=page[-1].n)
        for member in page:
            row = store.instance(member.id)
            if row is not None and row.tenant == record.tenant:
                found.append(row)
                found += _started_by(store, row.id, limits.SUB_SEQUENCE_DEPTH)
    return found


def _started_by(store: Store, instance: str, depth: int) -> list[InstanceRow]:
    found: list[InstanceRow] = []
    page = Page(parent=instance, limit=limits.LIST_MOST)
    while depth and (rows := store.instances(page)):
        page = page._replace(after=rows[-1].n)
        for row in rows:
            found += (row, *_started_by(store, row.id, depth - 1))
    return found


def _record(store: Store, tenant: str | None, id: object) -> Record:
    record = visible(store.record(KIND, str(id)) if storable(id) else None, tenant)
    if record is None:
        raise _unknown(id)
    return record


def _check_key(key: object) -> None:
    if not storable(key) or not 0 < len(str(key)) <= limits.SESSION_KEY_CHARS:
        most = limits.SESSION_KEY_CHARS
        raise RequestError("session.invalid", f"session_key must be text of 1 to {most} characters")


def _check_data(data: Any) -> None:
    encode_payload(data, where="data", limit=limits.CONTEXT_BYTES)


def _view(record: Record, now_ms: int) -> Session:
    stored = _decode(record.body)
    over = stored.expires_at is not None and unix_ms(stored.expires_at) <= now_ms
    return Session(
        id=record.id,
        tenant_id=record.tenant,
        session_key=record.key or "",
        data=stored.data,
        state="expired" if over and stored.state in ("active", "paused") else stored.state,
        created_at=instant(record.created_ms),
        updated_at=instant(record.updated_ms),
        expires_at=stored.expires_at,
    )


def _unknown(id: object) -> RequestError:
    return RequestError("session.not_found", f"there is no session {shown(id)}")
