"""Engines for tests: in virtual time, by a seed, over a store of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from detent.bootstrap.assemble import Parts
from detent.bootstrap.engine import Engine
from detent.bootstrap.settings import Settings, check

if TYPE_CHECKING:
    from detent.ports.opening import OpenedStore
    from detent.ports.store import Store


def virtual_engine(
    handlers: Any = (), *, seed: str = "test", path: str | Path = ":memory:", **settings: Any
) -> Engine:
    """An engine whose time moves only when it is told to; equal seeds give equal bytes."""
    return Engine(path, handlers=handlers, clock="virtual", seed=seed, **settings)


def engine_over(
    store: Store,
    handlers: Any = (),
    *,
    policies: Sequence[Any] = (),
    seed: str = "test",
    **settings: Any,
) -> Engine:
    """An engine in virtual time over an open store, such as a `FaultyStore`."""
    made = check(Settings(path=":memory:", clock="virtual", seed=seed, **settings))
    parts = Parts(made, cast("OpenedStore", store))
    try:
        parts.open(handlers)
    except BaseException:
        with suppress(BaseException):  # a store that has died refuses to be released, too
            parts.close()
        raise
    return Engine.over(parts, policies)
