"""Usage: how many instances were started in a period, and what they have done so far.

The instances of a period lie next to each other, since their numbers follow their making: the first
is found by halving, and a call counts so many of them. What is left is counted by the next call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from detent.model import limits
from detent.model.ids import SYSTEM
from detent.ports.listing import ListQuery
from detent.ports.store import Page
from detent.service.arguments import invalid
from detent.service.reading import check_tenant, timing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.store import InstanceRow, Store

_PAGE = 500
_ENDED = ("completed", "failed", "cancelled")


class TenantUsage(Struct):
    """What the instances of one tenant have done."""

    tenant_id: str
    instances: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    steps: int = 0
    effects: int = 0


class Usage(Struct, frozen=True):
    """By tenant; `after` is where the next call goes on, None when everything was counted."""

    tenants: list[TenantUsage]
    after: int | None


class _Counted(Struct):
    """The two numbers of a snapshot; the rest is not read."""

    steps: int = 0
    effects_made: int = 0


_counted = msgspec.json.Decoder(_Counted).decode


def usage(
    store: Store, tenant: str | None, since_ms: int, until_ms: int | None, after: int = 0
) -> Usage:
    """What instances started from `since_ms` on, and before `until_ms` if given, have done."""
    check_tenant(tenant)
    if until_ms is not None and since_ms >= until_ms:
        raise invalid("from", "an instant before `to`", since_ms)
    timing = timing_of(store)
    first = timing.tick_of(since_ms)
    last = math.inf if until_ms is None else timing.tick_of(until_ms)
    at = after or _before(store, first)
    found: dict[str, TenantUsage] = {}
    for _ in range(limits.USAGE_INSTANCES // _PAGE):
        page = Page(tenant=tenant or "", after=at, limit=_PAGE, without=SYSTEM)
        rows = store.instances(page)
        wanted = [row for row in rows if first <= row.created < last]
        _add(store, found, wanted)
        if len(rows) < _PAGE or rows[-1].created >= last:
            return Usage(sorted(found.values(), key=lambda each: each.tenant_id), None)
        at = rows[-1].n
    return Usage(sorted(found.values(), key=lambda each: each.tenant_id), at)


def _add(store: Store, found: dict[str, TenantUsage], rows: Sequence[InstanceRow]) -> None:
    loaded = store.load([row.id for row in rows])
    for row in rows:
        of = found.setdefault(row.tenant, TenantUsage(row.tenant))
        body = loaded[row.id].body if row.id in loaded else None
        counted = _counted(body) if body else _Counted()
        of.instances += 1
        of.steps += counted.steps
        of.effects += counted.effects_made
        if row.state in _ENDED:
            setattr(of, row.state, getattr(of, row.state) + 1)


def _before(store: Store, tick: int) -> int:
    """The number before the first instance that was made at a tick or later."""
    newest = store.recent_instances(ListQuery(limit=1))
    low, high = 0, newest[0].n if newest else 0
    while low < high:
        middle = (low + high) // 2
        (row,) = store.instances(Page(after=middle, limit=1))
        if row.created < tick:
            low = row.n
        else:
            high = middle
    return low
