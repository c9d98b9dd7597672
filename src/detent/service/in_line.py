"""When a tenant's gate calls instances that stand in line there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detent.service.explaining import gate_calls
from detent.service.reading import check_tenant, timing_of

if TYPE_CHECKING:
    from detent.ports.store import Store


def calls_of(store: Store, instances: Sequence[str], tenant: str | None) -> dict[str, int]:
    """When each is called, as epoch milliseconds; those that stand in no line are left out."""
    check_tenant(tenant)
    waiting: dict[str, set[str]] = {}
    for instance in instances:
        row = store.instance(instance)
        if row is not None and tenant in (None, row.tenant):
            waiting.setdefault(row.tenant, set()).add(row.id)
    timing = timing_of(store)
    found: dict[str, int] = {}
    for whose in sorted(waiting):
        called = gate_calls(store, whose, frozenset(waiting[whose]))
        found |= {instance: timing.ms_of(tick) for instance, tick in called.items()}
    return found
