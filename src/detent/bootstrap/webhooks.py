"""`engine.webhooks`: deliveries to the URLs that are told of ends and breaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from detent.model.decision import Verdict
from detent.model.link import Submission
from detent.service import webhooks
from detent.service.webhooks import (
    DeliveryFilter,
    DeliveryOptions,
    DeliveryView,
    Disabled,
    Preview,
)

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.ports.store import Store

T = TypeVar("T")


class Webhooks:
    """Deliveries: on their way, arrived, parked; and URLs that want no more."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def outbox(self, limit: int = 100, *, tenant: str | None = None) -> Sequence[DeliveryView]:
        """The newest deliveries that have not arrived: parked, or still on their way."""
        return self._look(lambda store: webhooks.outbox(store, limit, tenant))

    def list(
        self, limit: int = 100, *, tenant: str | None = None, **wanted: Unpack[DeliveryOptions]
    ) -> Sequence[DeliveryView]:
        """The newest deliveries, by `url`, `event_type`, `delivered` or `error_class`."""
        found = DeliveryFilter(**wanted) if wanted else None
        return self._look(lambda store: webhooks.deliveries(store, found, limit, tenant))

    def show(self, id: str, *, tenant: str | None = None) -> DeliveryView:
        """One delivery."""
        return self._look(lambda store: webhooks.delivery(store, id, tenant))

    def preview(self, id: str, *, tenant: str | None = None) -> Preview:
        """What another attempt would send."""
        return self._look(lambda store: webhooks.preview(store, id, tenant))

    def redeliver(self, id: str, *, tenant: str | None = None) -> None:
        """Try a parked delivery again, under the same `webhook-id`."""
        self._ask(webhooks.redeliver_submission, id, tenant)

    def drop(self, id: str, *, tenant: str | None = None) -> None:
        """Drop a delivery that has not arrived."""
        self._ask(webhooks.drop_submission, id, tenant)

    def disabled(self) -> Sequence[Disabled]:
        """The URLs that answered 410 and get nothing more."""
        hooks = self._parts.settings.webhooks
        return self._look(lambda store: webhooks.disabled_urls(store, hooks))

    def enable(self, url: str) -> None:
        """Send to a URL again, from now on."""
        self._parts.write(lambda store: webhooks.enable(store, url))

    def _look(self, use: Callable[[Store], T]) -> T:
        return self._parts.inspector.look(use)

    def _ask(
        self, make: Callable[[Store, str, str, int, str | None], Submission], id: str, tenant: Any
    ) -> Verdict:
        told = self._parts.fresh_id()
        return self._parts.ask(
            lambda ack: self._look(lambda store: make(store, id, told, ack, tenant))
        )
