"""`client.webhooks`: deliveries to the URLs that are told of ends and breaches, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from msgspec.structs import asdict

from detent.client.talking import Ask, Talk
from detent.client.verb import D, Surface, one_uuid, verb
from detent.model.limits import URL_CHARS
from detent.service.arguments import check_text
from detent.service.webhooks import (
    DeliveryFilter,
    DeliveryOptions,
    DeliveryView,
    Disabled,
    Preview,
    unknown_delivery,
)


class Webhooks(Surface[D]):
    """Deliveries: on their way, arrived, parked; and URLs that want no more."""

    @verb
    def outbox(
        self, limit: int = 100, *, tenant: str | None = None
    ) -> Talk[Sequence[DeliveryView]]:
        """The newest deliveries that have not arrived: parked, or still on their way."""
        return (yield from self._deliveries(tenant, undelivered=True, limit=limit))

    @verb
    def list(
        self, limit: int = 100, *, tenant: str | None = None, **wanted: Unpack[DeliveryOptions]
    ) -> Talk[Sequence[DeliveryView]]:
        """The newest deliveries, by `url`, `event_type`, `delivered` or `error_class`."""
        filtered = asdict(DeliveryFilter(**wanted))
        return (yield from self._deliveries(tenant, limit=limit, **filtered))

    @verb
    def show(self, id: str, *, tenant: str | None = None) -> Talk[DeliveryView]:
        """One delivery."""
        path = f"/inspect/deliveries/{one_uuid(id, unknown_delivery)}"
        return (yield from self._get(path, DeliveryView, tenant))

    @verb
    def preview(self, id: str, *, tenant: str | None = None) -> Talk[Preview]:
        """What another attempt would send."""
        return (yield from self._get(_path(id, "/redeliver-preview"), Preview, tenant))

    @verb
    def redeliver(self, id: str, *, tenant: str | None = None) -> Talk[None]:
        """Try a parked delivery again, under the same `webhook-id`."""
        path, asked = _path(id, "/redeliver"), {"wait": "false"}
        yield from self._ask(Ask(method="POST", path=path, query=asked, tenant=tenant))

    @verb
    def drop(self, id: str, *, tenant: str | None = None) -> Talk[None]:
        """Drop a delivery that has not arrived."""
        yield from self._tell("DELETE", _path(id), tenant=tenant)

    @verb
    def disabled(self) -> Talk[Sequence[Disabled]]:
        """The URLs that answered 410 and get nothing more."""
        return (yield from self._get("/webhooks/deliveries/disabled", list[Disabled]))

    @verb
    def enable(self, url: str) -> Talk[None]:
        """Send to a URL again, from now on."""
        check_text("url", url, URL_CHARS)
        yield from self._tell("POST", "/webhooks/deliveries/enable", {"url": url})

    def _deliveries(self, tenant: str | None, **query: Any) -> Talk[Sequence[DeliveryView]]:
        return self._get("/inspect/deliveries", list[DeliveryView], tenant, **query)


def _path(id: str, rest: str = "") -> str:
    return f"/webhooks/outbox/{one_uuid(id, unknown_delivery)}{rest}"
