"""What all kinds of records have in common: whose they are, and how one is changed.

`tenant` is the caller's; None is the operator, who sees all.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from detent.model import limits
from detent.model.errors import RequestError, StoreError
from detent.ports.records import RecordQuery
from detent.service.arguments import check_text, invalid, shown
from detent.service.reading import check_tenant

if TYPE_CHECKING:
    from detent.ports.records import Record
    from detent.ports.store import Store

When = Annotated[dt.datetime, Meta(tz=True)]

encode = msgspec.json.Encoder().encode


def whose(tenant: str | None, named: str, otherwise: str = "default") -> str:
    """The tenant of something new: the caller's own, or the one that the operator names."""
    check_tenant(tenant)
    if tenant is not None and named and named != tenant:
        raise RequestError(
            "tenant.foreign",
            f"the caller belongs to tenant {shown(tenant)} and names {shown(named)}; "
            "leave the tenant out",
        )
    owner = tenant or named or otherwise
    if owner:
        check_text("tenant_id", owner, limits.NAME_CHARS)
    return owner


def visible(record: Record | None, tenant: str | None) -> Record | None:
    """The record, if the caller may know of it."""
    check_tenant(tenant)
    return record if record is not None and tenant in (None, record.tenant) else None


def change(
    store: Store,
    record: Record,
    edit: Callable[[bytes], bytes | None],
    now_ms: int,
    owner: Callable[[bytes], str | None] | None = None,
) -> Record | None:
    """Change a record's body, however many change it at once; None when it is gone.

    `edit` is called again with what others have made of it meanwhile; None from it changes nothing.
    `owner` tells the owner of a new body.
    """
    present: Record | None = record
    for _ in range(limits.RECORD_TRIES):
        if present is None or present.n != record.n:
            return None
        body = edit(present.body)
        if body is None:
            return present
        written = present._replace(body=body, updated_ms=max(now_ms, present.updated_ms))
        if owner is not None:
            written = written._replace(owner=owner(body))
        if store.replace_record(written):
            return written._replace(rev=written.rev + 1)
        present = store.record(record.kind, record.id)
    raise StoreError(
        "store.conflict", f"{record.kind} {record.id!r} is changed by too many at once; try again"
    )


def check_room(store: Store, query: RecordQuery, what: str) -> None:
    """Refuse one more when the tenant, or the owner, has as many as there may be."""
    if store.count_records(query) >= query.limit:
        raise RequestError(
            "record.limit", f"there may be {query.limit:,} {what}; delete some first"
        )


def check_limit(limit: Any) -> int:
    """How many to list."""
    if type(limit) is not int or limit < 1:
        raise invalid("limit", "a whole number from 1", limit)
    return min(limit, limits.LIST_MOST)


def instant(ms: int) -> dt.datetime:
    """Unix milliseconds as people read them."""
    return dt.datetime.fromtimestamp(ms // 1000, dt.UTC) + dt.timedelta(milliseconds=ms % 1000)


def unix_ms(at: dt.datetime) -> int:
    """An instant as Unix milliseconds."""
    return (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def check_when(code: str, name: str, at: Any) -> None:
    """Refuse an instant that does not say its time zone."""
    if at is not None and (not isinstance(at, dt.datetime) or at.tzinfo is None):
        raise RequestError(code, f"{name} must be an instant with a time zone; got {shown(at)}")
