"""The change feed: every change of state of a tenant's instances, in the order of their commits.

A cursor says for each lane how far it was read: up to a position, and how many changes of the row
after it. Whoever comes back with the cursor of the last change they have seen misses none and sees
none twice, whatever clocks did meanwhile.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.kernel.views import AuditEntry, noted
from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.feed import FeedQuery
from detent.service.arguments import invalid, shown, storable
from detent.service.reading import check_tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detent.ports.feed import FeedRow
    from detent.ports.store import Store

Places = dict[str, tuple[int, int]]  # lane -> position, and changes seen of the row after it

_CURSOR_CHARS = 64 * 1024
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Places).decode


class Change(Struct, frozen=True):
    """One change, and the cursor of whoever has seen it."""

    instance: str
    entry: AuditEntry
    cursor: str


class ChangePage(Struct, frozen=True):
    """Some changes; `cursor` is how far was looked, further than the last of them at times."""

    changes: list[Change]
    cursor: str
    more: bool


def read_changes(store: Store, tenant: str, cursor: str, limit: int) -> ChangePage:
    """The next changes of a tenant after a cursor; the empty one is the beginning."""
    check_tenant(tenant)
    if type(limit) is not int or not 0 < limit <= limits.CHANGES_LISTED:
        raise invalid("limit", f"a whole number from 1 to {limits.CHANGES_LISTED}", limit)
    at = read_cursor(store, cursor)
    found: list[Change] = []
    left = limits.CHANGES_SCANNED
    more = True
    while more and left > 0:
        after = {lane: pos for lane, (pos, _seen) in at.items()}
        page = store.feed(FeedQuery(tenant, after, min(limit + 1, left)))
        for row in page.rows:
            found += _changes(row, at)
        if len(found) > limit:
            return ChangePage(found[:limit], found[limit - 1].cursor, more=True)
        at |= {lane: (pos, 0) for lane, pos in page.at.items()}
        more, left = page.more, left - limit - 1
    return ChangePage(found, write_cursor(at), more)


def newest_cursor(store: Store) -> str:
    """The cursor of whoever wants to see only what comes from now on."""
    return write_cursor({lane: (pos, 0) for lane, pos in store.feed_ends().items()})


def read_cursor(store: Store, text: str) -> Places:
    """What a cursor says; `cursor.invalid` for one that this store did not give out."""
    if not text:
        return {}
    if not storable(text) or len(text) > _CURSOR_CHARS:
        raise _malformed(text)
    try:
        padded = text + "=" * (-len(text) % 4)
        places = _decode(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise _malformed(text) from None
    known = store.feed_ends()
    if any(lane not in known or not 0 <= pos <= known[lane] for lane, (pos, _) in places.items()):
        raise _malformed(text)
    if any(seen < 0 for _pos, seen in places.values()):
        raise _malformed(text)
    return places


def write_cursor(at: Places) -> str:
    """A cursor as its holder keeps it."""
    return base64.urlsafe_b64encode(_encode(at)).decode().rstrip("=")


def _changes(row: FeedRow, at: Places) -> Iterator[Change]:
    """The changes of a row that were not seen; moves `at` on with each of them."""
    pos, seen = at.get(row.lane, (0, 0))
    told = list(_entries(row))
    for index in range(seen if row.pos == pos + 1 else 0, len(told)):
        last = index == len(told) - 1
        at[row.lane] = (row.pos, 0) if last else (row.pos - 1, index + 1)
        yield Change(row.instance, told[index], write_cursor(at))


def _entries(row: FeedRow) -> Iterator[AuditEntry]:
    if row.body is None:
        return  # erased: what it told is gone
    for entry in noted([row], {}):
        detail: Any = entry.detail
        if entry.action.startswith("run.") and isinstance(detail, dict) and "to" in detail:
            yield AuditEntry(
                id=entry.id,
                seq=row.seq,
                tick=row.tick,
                action=entry.action,
                node=entry.node,
                detail=detail,
            )


def _malformed(text: str) -> RequestError:
    return RequestError(
        "cursor.invalid", f"{shown(text)} is no cursor of this server; leave it out to begin anew"
    )
