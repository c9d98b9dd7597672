"""Outbound webhooks from outside: deliveries as they stand, tried again, dropped, previewed.

A delivery is an instance of the engine's own definition `detent.webhook`; what people see is read
from its snapshot. One that has failed is parked: trying it again is a retry of that instance, under
the same `webhook-id`. A URL that answered 410 gets nothing more until somebody enables it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
from msgspec import Struct

from detent.definition.system import WEBHOOK
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.webhooks import DISMISS, standing, url_mark
from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.own import DeliveryQuery, OwnQuery
from detent.service.arguments import check_text, invalid, shown, storable
from detent.service.reading import check_tenant, snapshot_or_start, timing_of
from detent.service.sending import command_submission, configure_submission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.kernel.recording import Timing
    from detent.model.link import Submission
    from detent.model.snapshot import Snapshot
    from detent.model.webhook import Webhook
    from detent.ports.store import InstanceRow, Store

_BODY = ("event_type", "instance_id", "timestamp", "data")
_UNDELIVERED = ("scheduled", "running", "waiting", "paused", "failed")
_SHOWN = {"failed": "parked", "cancelled": "dropped"}


class DeliveryView(Struct, frozen=True, kw_only=True):
    """One delivery; instants are epoch milliseconds.

    `state` is pending, delivered, skipped (its URL is disabled), parked or dropped.
    """

    id: str
    tenant: str
    url: str
    event_type: str
    instance_id: str
    payload: dict[str, Any]
    state: str
    delivered: bool
    attempts: int
    status: int | None
    last_error: str | None
    error_class: str | None
    next_try_ms: int | None
    created_ms: int
    updated_ms: int


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    """Which deliveries are listed; None does not filter."""

    url: str | None = None
    event_type: str | None = None
    delivered: bool | None = None
    error_class: str | None = None


class DeliveryOptions(TypedDict, total=False):
    """What deliveries can be listed by."""

    url: str | None
    event_type: str | None
    delivered: bool | None
    error_class: str | None


class Preview(Struct, frozen=True, kw_only=True):
    """What would be sent; its timestamp and signatures are made when it is."""

    delivery_id: str
    url: str
    headers: dict[str, str]
    body: dict[str, Any]
    disabled: str | None  # why nothing would be sent at all


class Disabled(Struct, frozen=True, kw_only=True):
    """A URL to which nothing is sent."""

    url: str
    why: str
    since_ms: int


# deliveries --------------------------------------------------------------------------------------


def outbox(store: Store, limit: int = 100, tenant: str | None = None) -> list[DeliveryView]:
    """The newest deliveries that have not arrived: parked, or still on their way."""
    _check(limit, tenant)
    query = OwnQuery(WEBHOOK.hash, tenant or "", _UNDELIVERED, limit=limit)
    return _views(store, store.own_instances(query))


def deliveries(
    store: Store,
    wanted: DeliveryFilter | None = None,
    limit: int = 100,
    tenant: str | None = None,
) -> list[DeliveryView]:
    """The newest deliveries that pass a filter."""
    _check(limit, tenant)
    asked = wanted or DeliveryFilter()
    query = DeliveryQuery(
        tenant=tenant or "",
        url=None if asked.url is None else url_mark(asked.url),
        event_type=asked.event_type,
        delivered=asked.delivered,
        error_class=asked.error_class,
        limit=limit,
    )
    return _views(store, store.deliveries(query))


def delivery(store: Store, id: str, tenant: str | None = None) -> DeliveryView:
    """One delivery; `webhook.not_found` where this tenant has none of that id."""
    row = _find(store, id, tenant)
    view = _view(store, row, timing_of(store))
    if view is None:
        raise unknown_delivery(id)
    return view


def preview(store: Store, id: str, tenant: str | None = None) -> Preview:
    """What another attempt would send."""
    found = delivery(store, id, tenant)
    gone = disabled(store, found.url)
    return Preview(
        delivery_id=found.id,
        url=found.url,
        headers={"content-type": "application/json", "webhook-id": found.id},
        body=found.payload,
        disabled=None if gone is None else gone.why,
    )


def redeliver_submission(
    store: Store, id: str, told: str, ack: int = 0, tenant: str | None = None
) -> Submission:
    """Try a parked delivery again, with as many attempts as a new one; `told` is a fresh id."""
    row = _find(store, id, tenant)
    if row.state != "failed":
        shown_state = _SHOWN.get(row.state, row.state)
        raise RequestError(
            "webhook.state", f"only a parked delivery is tried again; this one is {shown_state}"
        )
    return command_submission(row.id, "retry", None, told, ack)


def drop_submission(
    store: Store, id: str, told: str, ack: int = 0, tenant: str | None = None
) -> Submission:
    """Drop a delivery that has not arrived; `told` is a fresh id."""
    row = _find(store, id, tenant)
    if row.state == "failed":
        return configure_submission(row.id, DISMISS, None, told, ack)
    if row.state in TERMINAL:
        raise RequestError(
            "webhook.state", f"the delivery has ended ({row.state}); there is nothing to drop"
        )
    return command_submission(row.id, "cancel", None, told, ack)


# URLs --------------------------------------------------------------------------------------------


def disabled(store: Store, url: str) -> Disabled | None:
    """Since when and why nothing is sent to a URL; None when something is."""
    kept = store.setting(_setting(url))
    return msgspec.json.decode(kept, type=Disabled) if kept else None


def disable(store: Store, url: str, why: str, now_ms: int) -> None:
    """Send nothing more to a URL; its deliveries are skipped from now on."""
    found = Disabled(url=url, why=why, since_ms=now_ms)
    store.put_setting(_setting(url), msgspec.json.encode(found).decode())


def enable(store: Store, url: str) -> None:
    """Send to a URL again; what was skipped stays so."""
    check_text("url", url, limits.URL_CHARS)
    if disabled(store, url) is not None:
        store.put_setting(_setting(url), "")


def disabled_urls(store: Store, hooks: Sequence[Webhook]) -> list[Disabled]:
    """Those of the configured URLs to which nothing is sent."""
    found = [disabled(store, hook.url) for hook in hooks]
    return [each for each in found if each is not None]


def _setting(url: str) -> str:
    return f"webhook.gone:{hashlib.sha256(url.encode()).hexdigest()[:32]}"


# reading -----------------------------------------------------------------------------------------


def _check(limit: int, tenant: str | None) -> None:
    check_tenant(tenant)
    if type(limit) is not int or not 0 < limit <= limits.WEBHOOKS_LISTED:
        raise invalid("limit", f"a whole number from 1 to {limits.WEBHOOKS_LISTED}", limit)


def _views(store: Store, rows: Sequence[InstanceRow]) -> list[DeliveryView]:
    timing = timing_of(store)
    views = [_view(store, row, timing) for row in rows]
    return [view for view in views if view is not None]


def _find(store: Store, id: str, tenant: str | None) -> InstanceRow:
    check_tenant(tenant)
    row = store.instance(id) if storable(id) else None
    if row is None or row.definition != WEBHOOK.hash or tenant not in (None, row.tenant):
        raise unknown_delivery(id)
    return row


def unknown_delivery(id: Any) -> RequestError:
    """The error for an id that no delivery has."""
    return RequestError("webhook.not_found", f"there is no delivery {shown(id)}", id=str(id)[:80])


def _view(store: Store, row: InstanceRow, timing: Timing) -> DeliveryView | None:
    """A delivery as it stands; None where its data was lost."""
    snapshot = snapshot_or_start(store, row)
    if not isinstance(snapshot.data, dict):
        return None
    data, output = snapshot.data, snapshot.outputs.get("deliver")
    result = output if isinstance(output, dict) else {}
    delivered, kind = standing(snapshot)
    error, status, due = _trouble(snapshot)
    if result.get("skipped"):
        error = result["skipped"]
    state = _SHOWN.get(row.state, "pending")
    if row.state == "completed":
        state = "delivered" if delivered else "skipped"
    return DeliveryView(
        id=row.id,
        tenant=row.tenant,
        url=data["url"],
        event_type=data["event_type"],
        instance_id=data["instance_id"],
        payload={name: data[name] for name in _BODY},
        state=state,
        delivered=delivered,
        attempts=snapshot.effects_made,
        status=result.get("status", status),
        last_error=error,
        error_class=kind or None,
        next_try_ms=None if due is None else timing.ms_of(due),
        created_ms=timing.ms_of(row.created),
        updated_ms=timing.ms_of(row.updated),
    )


def _trouble(snapshot: Snapshot) -> tuple[str | None, int | None, int | None]:
    """What went wrong last: its text and status, and when it is tried again."""
    root = snapshot.root
    frame = root.lanes[0].open if root is not None and root.lanes else None
    if snapshot.error is None:
        wait = None if frame is None else frame.wait
        if wait is None or wait.kind != "retry":
            return None, None, None
        return wait.name, None, wait.due
    details = snapshot.error.get("details")
    known = details if isinstance(details, dict) else {}
    return snapshot.error.get("message"), known.get("status"), None
