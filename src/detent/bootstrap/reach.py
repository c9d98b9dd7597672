"""`reach`: whoever can carry a request out now.

A visitor while somebody owns the store, else an engine without handlers that carries the request
out and goes away again. Such an engine is on an errand: it lets no wait end, no schedule fire and
nobody in line pass, since nobody here could make the calls that follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from detent.bootstrap.engine import Engine
from detent.bootstrap.visitor import Visitor
from detent.model import limits
from detent.model.errors import StoreError
from detent.runtime.settings import WriterSettings


@contextmanager
def reach(
    path: str | Path,
    *,
    timeout_ms: int = limits.ASK_TIMEOUT_MS,
    seal_key: str | Path | None = None,
) -> Iterator[Engine | Visitor]:
    """Whoever can carry a request out: the owner, through a visitor, or an engine here."""
    with _door(path, timeout_ms, seal_key) as door:
        yield door


def _door(path: str | Path, timeout_ms: int, seal_key: str | Path | None) -> Engine | Visitor:
    visitor = Visitor(path, timeout_ms=timeout_ms)
    if visitor.owned():
        return visitor
    visitor.close()
    try:
        return Engine(path, seal_key=seal_key, turns=WriterSettings(errand=True))
    except StoreError as error:
        if error.code != "store.owned":
            raise
        return Visitor(path, timeout_ms=timeout_ms)  # somebody was quicker
