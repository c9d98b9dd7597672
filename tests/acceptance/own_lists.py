"""What lists of events and deliveries must show, read the long way: from every snapshot."""

from __future__ import annotations

from detent.definition.system import EVENTS, WEBHOOK
from detent.kernel.correlation import read_correlation
from detent.kernel.webhooks import found_by
from detent.ports.own import OwnQuery
from detent.service import events as events_service
from detent.service import webhooks as webhooks_service
from detent.service.reading import read_snapshot, snapshot_or_start

ALL = 1_000
STATUSES = ("", "pending", "consumed", "expired")


def events_kept(store, tenant):
    """(id, status, instant) of every event that a correlator keeps, in the order of lists."""
    found = []
    for row in store.own_instances(OwnQuery(EVENTS.hash, tenant, limit=ALL)):
        snapshot = read_snapshot(store, row)
        if snapshot is not None and snapshot.kv:
            kept = read_correlation(snapshot.kv).events
            found += [(event.id, event.status, event.at) for event in kept]
    return sorted(found, key=lambda each: (-each[2], each[0]))


def deliveries_made(store, tenant):
    """(instance, url, event, delivered, class) of every delivery, the newest first."""
    found = []
    for row in store.own_instances(OwnQuery(WEBHOOK.hash, tenant, limit=ALL)):
        snapshot = snapshot_or_start(store, row)
        found.append((row.id, *found_by(snapshot.data, snapshot)))
    return found


def agree(store, *tenants):
    """Prove that every list shows what the snapshots hold."""
    for tenant in tenants:
        kept = events_kept(store, tenant)
        for status in STATUSES:
            rows = store.events(tenant, status, ALL)
            wanted = [each for each in kept if status in ("", each[1])]
            assert [(row.id, row.status, row.at_ms) for row in rows] == wanted
            shown = events_service.list_events(store, tenant, status or None, ALL)
            assert [(each.id, each.status) for each in shown] == [each[:2] for each in wanted]
        made = deliveries_made(store, tenant)
        assert [each.id for each in webhooks_service.deliveries(store, None, ALL, tenant)] == [
            each[0] for each in made
        ]
        for place, name in ((3, "delivered"), (4, "error_class"), (2, "event_type")):
            for value in {each[place] for each in made} - {""}:
                wanted = webhooks_service.DeliveryFilter(**{name: value})
                found = webhooks_service.deliveries(store, wanted, ALL, tenant)
                assert [each.id for each in found] == [
                    each[0] for each in made if each[place] == value
                ]
