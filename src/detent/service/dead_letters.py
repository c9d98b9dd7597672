"""Dead letters by what they died of: failed instances in groups of one block and one error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.ports.listing import ListQuery

if TYPE_CHECKING:
    from detent.ports.store import InstanceRow, Store

_PAGE = 1_000
_NAMED = 10  # instances that a group names


class _Ended(Struct):
    """The part of a snapshot that tells of its end."""

    error: Any = None
    ended: int | None = None


_ended = msgspec.json.Decoder(_Ended).decode


class Dead(Struct, kw_only=True):
    """Instances of one definition that failed in the same block with the same error."""

    fingerprint: str  # the same for as long as definition, block and code are
    tenant: str
    namespace: str
    definition: str  # hash
    block: str
    code: str
    message: str  # of the instance that was started last
    count: int = 0
    first: int | None = None  # ticks of the first and the last failure
    last: int | None = None
    instances: list[str] = []  # the newest


def dead_letter_groups(store: Store, query: ListQuery) -> list[Dead]:
    """The groups of the newest failed instances that pass a filter, the largest first."""
    found: dict[str, Dead] = {}
    for row, end in _failed(store, query):
        error = end.error if isinstance(end.error, dict) else {}
        block = str(error.get("block", ""))
        code = str(error.get("code") or error.get("kind") or "")
        words = f"{row.tenant}\x00{row.namespace}\x00{row.definition}\x00{block}\x00{code}"
        mark = hashlib.sha256(words.encode()).hexdigest()[:16]
        group = found.get(mark)
        if group is None:
            group = found[mark] = Dead(
                fingerprint=mark,
                tenant=row.tenant,
                namespace=row.namespace,
                definition=row.definition,
                block=block,
                code=code,
                message=str(error.get("message", "")),
            )
        _count(group, row, end)
    return sorted(found.values(), key=lambda each: -each.count)


def _count(group: Dead, row: InstanceRow, end: _Ended) -> None:
    at = row.updated if end.ended is None else end.ended
    group.count += 1
    group.first = at if group.first is None else min(group.first, at)
    group.last = at if group.last is None else max(group.last, at)
    if len(group.instances) < _NAMED:
        group.instances.append(row.id)


def _failed(store: Store, query: ListQuery) -> Iterator[tuple[InstanceRow, _Ended]]:
    left = limits.DEAD_LETTERS_GROUPED
    query = query._replace(states=("failed",), offset=0, limit=_PAGE)
    while left > 0 and (rows := store.recent_instances(query)):
        loaded = store.load([row.id for row in rows])
        for row in rows[:left]:
            body = loaded[row.id].body if row.id in loaded else None
            yield row, _Ended() if body is None else _ended(body)
        left -= len(rows)
        query = query._replace(before=rows[-1].n)
