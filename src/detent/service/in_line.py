"""Instances that stand in line at their tenant's gate, listed with when it calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.service.explaining import gate_calls
from detent.service.instances import InstanceSummary, Listing, list_instances
from detent.service.reading import timing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.ports.store import Page, Store


def list_with_calls(store: Store, page: Page, tenant: str | None) -> Listing:
    """The next instances that pass the filter, with when those in line are called."""
    found = list_instances(store, page, tenant)
    return replace(found, items=_with_calls(store, found.items))


def _with_calls(store: Store, found: Sequence[InstanceSummary]) -> tuple[InstanceSummary, ...]:
    waiting = [each for each in found if each.due_ms is None and each.state != "paused"]
    calls: dict[str, int] = {}
    for tenant in sorted({each.tenant for each in waiting}):
        ids = frozenset(each.id for each in waiting if each.tenant == tenant)
        calls |= gate_calls(store, tenant, ids)
    timing = timing_of(store)
    return tuple(
        replace(each, due_ms=timing.ms_of(calls[each.id])) if each.id in calls else each
        for each in found
    )
