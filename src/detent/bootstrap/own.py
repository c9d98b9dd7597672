"""The handlers an engine brings itself: on itself, on the outside, and deliveries of webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent.bootstrap.deltas import Deltas
from detent.bootstrap.inside import EngineInside
from detent.handlers import register_inside
from detent.handlers.network import NetworkSettings, Outside, Posting, register_network
from detent.handlers.webhooks import Post, Sending, register_webhooks
from detent.service import webhooks
from detent.service.artifacts import read_artifact

if TYPE_CHECKING:
    from detent.bootstrap.assemble import Parts
    from detent.bootstrap.settings import Settings


def network_of(settings: Settings) -> NetworkSettings:
    """What an engine's settings let calls to the outside reach."""
    return NetworkSettings(
        allow_internal=settings.allow_internal_urls,
        allowed_hosts=settings.allowed_internal_hosts,
        api_key_envs=settings.api_key_envs,
    )


def register_own(parts: Parts, post: Post | None) -> Deltas:
    """Register the engine's own handlers; a model's text, as it comes, goes to the result."""
    settings, deltas = parts.settings, Deltas()
    outside = Outside(network_of(settings), deltas=deltas, artifacts=StoredArtifacts(parts))
    register_inside(parts.registry, EngineInside(parts))
    register_network(parts.registry, outside)
    if settings.webhooks:
        hooks, delivery = settings.webhooks, settings.webhook_delivery
        posting = post or Posting(outside)
        sending = Sending(posting, hooks, delivery, StoredGone(parts), parts.now_ms)
        register_webhooks(parts.registry, sending)
    return deltas


class StoredArtifacts:
    """Artifacts as blobs of their instances."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def keep(self, instance: str, digest: str, body: bytes) -> None:
        """Keep the bytes of an instance."""
        self._parts.write(lambda store: store.put_blob(instance, digest, body))

    def read(self, tenant: str, instance: str, digest: str) -> bytes | None:
        """The bytes, where an instance of that tenant has them."""
        return self._parts.read(lambda store: read_artifact(store, instance, digest, tenant))


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
