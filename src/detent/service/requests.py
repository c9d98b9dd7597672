"""Answers kept under a caller's Idempotency-Key, so that a request may come twice and act once.

An answer is kept for a day. Where there is a vault it is sealed: an answer may hold a secret, and
the digest of a request that holds one would let who has the store guess at it. Without a vault no
request with a secret succeeds, and an answer that shows one is not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.model.ids import derived_id
from detent.ports.records import Record
from detent.service.records import encode
from detent.service.vault import Place

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.vault import Safe

KIND = "request"
_ALL = "kept"  # the owner of all of them, so that the oldest are found whosever they are
_PLAIN = b"{"


class Named(NamedTuple):
    """What a request is known by: its tenant (empty for the operator) and the caller's key."""

    tenant: str
    key: str

    @property
    def id(self) -> str:
        """The id of its record."""
        return derived_id(self.tenant, "request", f"kept\x00{self.key}")


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request, and the digest of what was asked."""

    digest: str
    status: int
    media: str = ""
    body: str | None = None  # None: it was too long, or held a secret that could not be sealed


_decode = msgspec.json.Decoder(Kept).decode


def kept_answer(store: Store, safe: Safe, named: Named, now_ms: int) -> Kept | None:
    """What was answered the first time, if that was lately."""
    record = store.record_by_key(KIND, *named)
    if record is None or is_over(record, now_ms):
        return None
    if not is_sealed(record):
        return _decode(record.body)
    return _decode(safe.open(record.body, place_of(named)))


def keep_answer(store: Store, safe: Safe, named: Named, kept: Kept, now_ms: int) -> None:
    """Keep an answer, unless there is one already; some that are too old go."""
    before_ms = now_ms - limits.REQUEST_KEPT_MS
    store.prune_records(KIND, _ALL, before_ms=before_ms, limit=limits.REQUESTS_PRUNED)
    body = encode(kept)
    if safe.vault is not None:
        body = safe.seal(body.decode(), place_of(named))
    record = Record(
        KIND,
        named.id,
        named.tenant,
        body,
        key=named.key,
        owner=_ALL,
        created_ms=now_ms,
        updated_ms=now_ms,
    )
    if store.insert_record(record):
        return
    present = store.record(KIND, named.id)
    if present is not None and is_over(present, now_ms):
        store.delete_record(KIND, named.id)
        store.insert_record(record)


def is_over(record: Record, now_ms: int) -> bool:
    """Whether an answer is not given any more, though it is still there."""
    return now_ms - record.created_ms >= limits.REQUEST_KEPT_MS


def is_sealed(record: Record) -> bool:
    """Whether an answer was kept while there was a vault."""
    return not record.body.startswith(_PLAIN)


def place_of(named: Named) -> Place:
    """Where a kept answer belongs."""
    return Place(KIND, named.tenant, named.key, "answer")
