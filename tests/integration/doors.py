"""Three doors to one served engine: the engine itself, a client, and an awaited client."""

from __future__ import annotations

import asyncio
import itertools
import threading
from contextlib import contextmanager

import detent
from detent.testing.serving import serving
from detent.web.api.settings import ApiSettings

ROOT = "root-key"
_numbers = itertools.count(1)


class Awaited:
    """An AsyncClient for a test that does not await: each verb is run on a loop in a thread."""

    def __init__(self, url, **settings):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = detent.AsyncClient(url, **settings)

    def __getattr__(self, name):
        return self._plain(getattr(self._client, name))

    def _plain(self, found):
        if not callable(found):
            return _Group(self, found)

        def call(*args, **kwargs):
            return asyncio.run_coroutine_threadsafe(found(*args, **kwargs), self._loop).result(60)

        return call

    def close(self):
        self._plain(self._client.close)()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class _Group:
    def __init__(self, awaited, verbs):
        self._awaited, self._verbs = awaited, verbs

    def __getattr__(self, name):
        return self._awaited._plain(getattr(self._verbs, name))


class Doors:
    """A served engine with each way to it."""

    def __init__(self, engine, url):
        self.url = url
        self.engine = engine
        self.client = detent.Client(url, api_key=ROOT)
        self.awaited = Awaited(url, api_key=ROOT)

    def close(self):
        self.client.close()
        self.awaited.close()


@contextmanager
def doors(path, handlers=(), **settings):
    api = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with detent.Engine(path, handlers=handlers, **settings) as engine, serving(engine, api) as url:
        made = Doors(engine, url)
        try:
            yield made
        finally:
            made.close()


def fresh(name):
    """A name that no other test has used."""
    return f"{name}-{next(_numbers)}"
