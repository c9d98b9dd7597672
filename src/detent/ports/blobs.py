"""Blobs as they cross the store port: bytes of an instance, by the digest of what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class BlobStore(Protocol):
    """What a store offers for blobs; those that a turn makes are written by its commit."""

    def blobs(self, instance: str, digests: Sequence[str]) -> dict[str, bytes]:
        """The bodies there are, by digest."""

    def put_blob(self, instance: str, digest: str, body: bytes) -> None:
        """Keep bytes, from any process; twice is as good as once."""
