"""What every test shares: the marker for requirement ids and repeatable property tests."""

from __future__ import annotations

from hypothesis import settings

from tests.postgres_fixture import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_configure(config):
    config.addinivalue_line("markers", "req(*ids): the requirement ids that the test proves")
    config.addinivalue_line("markers", "contract(section): the section of the wire contract")
