"""A real server for a test: the API on a free port of this machine, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from detent.bootstrap.engine import Engine
from detent.bootstrap.serving import Server, ServeSettings
from detent.service.refreshing import Post
from detent.web.api.settings import ApiSettings

_STOP_S = 10.0


@contextmanager
def serving(
    engine: Engine, api: ApiSettings | None = None, post: Post | None = None
) -> Iterator[str]:
    """Serve an engine; the address of the server. `post` refreshes tokens."""
    with served(engine, api, post) as server:
        yield server.url


@contextmanager
def served(
    engine: Engine, api: ApiSettings | None = None, post: Post | None = None
) -> Iterator[Server]:
    """The same; the server itself, to look inside or to stop it."""
    settings = ServeSettings(port=0, api=api or ApiSettings())
    with Server(engine, settings, post) as server:
        thread = threading.Thread(
            target=lambda: asyncio.run(server.run()), name="detent-serve", daemon=True
        )
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join(_STOP_S)
