"""The handlers an engine brings itself: what it does on itself, and deliveries of webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.bootstrap.inside import EngineInside
from detent.handlers import register_inside
from detent.handlers.webhooks import Post, Sending, register_webhooks
from detent.model.errors import RequestError
from detent.service import webhooks

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts


def register_own(parts: Parts, post: Post | None) -> None:
    """Register the engine's own handlers; deliveries only where there are URLs to tell."""
    register_inside(parts.registry, EngineInside(parts))
    settings = parts.settings
    if not settings.webhooks:
        return
    if post is None:
        raise RequestError(
            "webhook.invalid", "there are webhooks, and nothing to send them; give webhook_post"
        )
    sending = Sending(
        post, settings.webhooks, settings.webhook_delivery, StoredGone(parts), parts.now_ms
    )
    register_webhooks(parts.registry, sending)


class StoredGone:
    """The URLs that have answered 410, as the store remembers them for every process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def why(self, url: str) -> str:
        """Why nothing is sent to a URL; empty when something is."""
        found = self._parts.read(lambda store: webhooks.disabled(store, url))
        return "" if found is None else found.why

    def disable(self, url: str, why: str) -> None:
        """Send nothing more to a URL."""
        now_ms = self._parts.now_ms()
        self._parts.write(lambda store: webhooks.disable(store, url, why, now_ms))
