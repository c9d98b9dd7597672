"""Secrets of credentials sealed again with the present key, whatever key sealed them before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from detent.model import limits
from detent.ports.records import Record, RecordQuery
from detent.service.credentials import KIND, decode
from detent.service.records import change, encode
from detent.service.vault import Place, Safe

if TYPE_CHECKING:
    from detent.ports.store import Store


def reseal_credentials(store: Store, safe: Safe, now_ms: int) -> int:
    """Seal with the present key what an older one sealed; how many were."""
    count, after = 0, 0
    while page := store.records(RecordQuery(KIND, after=after, limit=limits.LIST_MOST)):
        after = page[-1].n
        for record in page:
            stored = decode(record.body)
            if safe.stale(stored.value) or safe.stale(stored.refresh_token):
                change(store, record, partial(_resealed, safe, record), now_ms)
                count += 1
    return count


def _resealed(safe: Safe, record: Record, body: bytes) -> bytes:
    stored = decode(body)
    place = Place(KIND, record.tenant, record.id)
    again = {"value": safe.seal(safe.open(stored.value, place), place)}
    if stored.refresh_token is not None:
        token = place._replace(field="refresh_token")
        again["refresh_token"] = safe.seal(safe.open(stored.refresh_token, token), token)
    return encode(structs.replace(stored, **again))
