"""Artifacts from outside: bytes that a step has brought, read by the key of their reference."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.service.arguments import storable
from detent.service.reading import check_tenant

if TYPE_CHECKING:
    from detent.ports.store import Store


def read_artifact(store: Store, instance: str, digest: str, tenant: str | None) -> bytes | None:
    """The bytes, where an instance of that tenant has them; None tenant is the operator."""
    check_tenant(tenant)
    row = store.instance(instance) if storable(instance) and storable(digest) else None
    if row is None or tenant not in (None, row.tenant):
        return None
    body = store.blobs(instance, [digest]).get(digest)
    if body is not None and hashlib.sha256(body).hexdigest() != digest:
        raise StoreError(
            "store.corrupt", f"artifact {instance}/{digest} is not what was written; restore it"
        )
    return body
