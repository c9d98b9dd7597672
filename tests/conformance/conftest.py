"""Every test of this directory runs once per adapter."""

from __future__ import annotations

import pytest

from tests.conformance.adapters import ADAPTERS
from tests.conformance.world import World


@pytest.fixture(params=sorted(ADAPTERS))
def store_factory(request, tmp_path):
    """Opens connections to one fresh store; a call is one connection."""
    factory = ADAPTERS[request.param](tmp_path, request)
    yield factory
    factory.close()


@pytest.fixture
def store(store_factory):
    return store_factory()


@pytest.fixture
def world(store):
    """A writer that owns all partitions of a fresh store."""
    return World(store)
