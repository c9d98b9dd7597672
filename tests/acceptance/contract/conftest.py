"""Two served engines for all sections: one with a key, one that lets everybody in as operator."""

from __future__ import annotations

import uuid

import pytest

from detent.web.api.settings import ApiSettings
from tests.integration.web.house import house


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with a root key, external workers and a vault, as `detent serve` has them."""
    with house(tmp_path_factory.mktemp("contract") / "s.db", workers=True) as made:
        yield made


@pytest.fixture(scope="session")
def open_server(tmp_path_factory):
    """A server without a key that asks for no tenant: every caller is the operator."""
    settings = ApiSettings(require_tenant_header=False)
    with house(tmp_path_factory.mktemp("open") / "s.db", api=settings, workers=True) as made:
        yield made


@pytest.fixture
def tenant():
    """A tenant that nobody else uses."""
    return f"t-{uuid.uuid4().hex[:12]}"
