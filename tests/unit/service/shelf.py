"""A store for catalogue services: definitions and instances as rows, nothing that moves."""

from __future__ import annotations

import pytest

from detent.model.errors import DetentError
from detent.ports.definitions import DefinitionRow
from detent.ports.opening import NewStore
from detent.service.vault import Safe, Vault
from detent.store.sqlite import open_store
from tests.conformance.world import World, a_change

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
KEY = bytes(range(32))
SAFE = Safe(Vault([KEY]))
NO_VAULT = Safe()


def a_store(path=":memory:"):
    return open_store(path, create=NewStore(NOW, 100, "wall", 2, "the-store"))


def define(store, name, version=1, tenant="acme", namespace="default", body=b""):
    """A stored definition; its body is only what a test gives it."""
    hash = f"hash-{tenant}-{namespace}-{name}-{version}"
    row = DefinitionRow(
        hash, tenant, namespace, name, version, body, deprecated=False, created_ms=NOW
    )
    store.put_definition(row)
    return row


def instances(store, *ids, tenant="acme", birth=None, **columns):
    """Rows of instances in a state, committed with what they run; the writer, for what follows."""
    world = World(store)
    digest = columns.get("definition", "hash-1")
    row = DefinitionRow(digest, tenant, "default", "any", 1, b"", deprecated=False, created_ms=NOW)
    store.put_definition(row)
    world.commit(
        *[a_change(id, birth={"tenant": tenant, **(birth or {})}, **columns) for id in ids]
    )
    return world


def refusal(code, call, *args, **kwargs):
    """Make a call that must be refused; its sentence."""
    with pytest.raises(DetentError) as refused:
        call(*args, **kwargs)
    assert refused.value.code == code, str(refused.value)
    return refused.value.message
