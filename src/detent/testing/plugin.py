"""The pytest plugin: `detent_engine` and `detent_engines`, engines in virtual time for tests.

Loaded in every pytest run where Detent is installed; it imports nothing before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from detent.bootstrap.engine import Engine


@pytest.fixture
def detent_engines(request: pytest.FixtureRequest) -> Iterator[Callable[..., Engine]]:
    """Make engines in virtual time; seeded by the test's name, closed when it ends."""
    from detent.testing.engines import virtual_engine

    made: list[Engine] = []

    def make(handlers: Any = (), **settings: Any) -> Engine:
        settings.setdefault("seed", f"{request.node.nodeid}#{len(made)}")
        engine = virtual_engine(handlers, **settings)
        made.append(engine)
        return engine

    yield make
    for engine in reversed(made):
        engine.close()


@pytest.fixture
def detent_engine(detent_engines: Callable[..., Engine]) -> Engine:
    """One engine in virtual time, in memory; register handlers with `detent_engine.register`."""
    return detent_engines()
