"""Routing in the writer: the new items of a turn go where the rules of this moment say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.kernel.routing import RULE, RoutingRule, chosen, owner_of, read_rule
from detent.model import limits
from detent.ports.records import RecordQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.model.decision import WorkItem
    from detent.ports.store import Store

Rules = list[tuple[str, RoutingRule]]


def routed(store: Store, items: Sequence[WorkItem]) -> list[WorkItem]:
    """The items, each with the queue it goes to; without any rule nothing more is read."""
    if not items or not store.count_records(RecordQuery(RULE, limit=1)):
        return list(items)
    known: dict[str, Rules] = {}
    return [_routed(store, item, known) for item in items]


def _routed(store: Store, item: WorkItem, known: dict[str, Rules]) -> WorkItem:
    owner = owner_of(item.tenant, item.handler)
    if owner not in known:
        known[owner] = list(_rules(store, owner))
    found = chosen(known[owner], item.queue)
    if found is None or found[1].queue == item.queue:
        return item
    id, rule = found
    text = f"queue {rule.queue} instead of {item.queue or 'none'}, by rule {id}"
    return replace(item, queue=rule.queue, routed=text)


def _rules(store: Store, owner: str) -> Iterator[tuple[str, RoutingRule]]:
    query = RecordQuery(RULE, owner=owner, limit=limits.FLEET_PER_TENANT)
    for record in store.records(query):
        yield record.id, read_rule(record.body)
