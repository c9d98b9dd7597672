"""Artifacts: bytes that a step brings, kept beside its instance and told by a reference.

A reference is small JSON that goes from step to step like any output. The bytes are a blob, named
by their digest: the same bytes twice are one artifact, and whoever reads them knows that they are
the ones that were written.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Protocol

from msgspec import Struct

_KEY = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([0-9a-f]{64})")
_URI = "artifact://"


class Artifacts(Protocol):
    """Where bytes are kept; both calls may block."""

    def keep(self, instance: str, digest: str, body: bytes) -> None:
        """Keep the bytes of an instance."""

    def read(self, tenant: str, instance: str, digest: str) -> bytes | None:
        """The bytes, where an instance of that tenant has them."""


class Artifact(Struct, frozen=True, kw_only=True):
    """A reference to kept bytes."""

    id: str
    instance_id: str
    key: str
    content_type: str
    size: int
    uri: str


def artifact_of(instance: str, body: bytes, content_type: str) -> Artifact:
    """The reference of some bytes."""
    digest = hashlib.sha256(body).hexdigest()
    key = f"{instance}/{digest}"
    return Artifact(
        id=digest,
        instance_id=instance,
        key=key,
        content_type=content_type or "application/octet-stream",
        size=len(body),
        uri=f"{_URI}{key}",
    )


def key_of(given: Any) -> tuple[str, str] | None:
    """Instance and digest of a reference, of `{"artifact": …}`, or of a key; None: it is none."""
    if isinstance(given, dict):
        inner = given.get("artifact", given)
        given = inner.get("key") if isinstance(inner, dict) else None
    match = _KEY.fullmatch(given.removeprefix(_URI)) if isinstance(given, str) else None
    return None if match is None else (match[1], match[2])


def type_of(given: Any) -> str:
    """The content type that a reference tells."""
    inner = given.get("artifact", given) if isinstance(given, dict) else None
    told = inner.get("content_type") if isinstance(inner, dict) else None
    return told if isinstance(told, str) and told else "application/octet-stream"
