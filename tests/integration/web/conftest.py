"""One served engine for the tests of a module; they keep apart by ids and tenants."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.web.house import house


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with house(tmp_path_factory.mktemp("web") / "s.db") as made:
        yield made


@pytest.fixture
def job():
    """A handler's name that nobody else uses."""
    return f"job-{uuid.uuid4().hex[:8]}"
