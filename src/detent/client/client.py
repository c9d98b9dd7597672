"""`Client` and `AsyncClient`: an engine that runs elsewhere, with the verbs of one here."""

from __future__ import annotations

import os
from typing import Self
from urllib.parse import urlsplit

from detent.client.chance import chance
from detent.client.drivers import Awaiting, Blocking
from detent.client.talking import Manners
from detent.client.verb import check_sendable
from detent.client.verbs import Verbs
from detent.model import limits
from detent.service.arguments import invalid

URL = "DETENT_URL"
API_KEY = "DETENT_API_KEY"


class Client(Verbs[Blocking]):
    """The verbs of an engine that a server runs; use it as a context manager.

    One client may be used by many threads; it keeps its connections.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        tenant: str | None = None,
        timeout: float = limits.CLIENT_TIMEOUT_MS / 1000,
        attempts: int = limits.CLIENT_ATTEMPTS,
    ) -> None:
        """Speak to the server at `url`, by default `$DETENT_URL`; the key is `$DETENT_API_KEY`.

        With a `tenant` every call is for it. Without one, starts are for "default" and reading is
        the operator's, as with an engine. A request is given up after `timeout` seconds, and tried
        up to `attempts` times where that is safe.
        """
        manners = _manners(url, tenant, timeout, attempts)
        super().__init__(Blocking(manners, _key(api_key)))

    def close(self) -> None:
        """Let the connections go."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._manners.url!r}, tenant={self._manners.tenant!r})"


class AsyncClient(Verbs[Awaiting]):
    """The same verbs, awaited; use it as an asynchronous context manager.

    One client may be used by many tasks of one event loop; it keeps its connections.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        tenant: str | None = None,
        timeout: float = limits.CLIENT_TIMEOUT_MS / 1000,
        attempts: int = limits.CLIENT_ATTEMPTS,
    ) -> None:
        """As `Client`."""
        manners = _manners(url, tenant, timeout, attempts)
        super().__init__(Awaiting(manners, _key(api_key)))

    async def close(self) -> None:
        """Let the connections go."""
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._manners.url!r}, tenant={self._manners.tenant!r})"


def _manners(url: str | None, tenant: str | None, timeout: float, attempts: int) -> Manners:
    given = os.environ.get(URL, "") if url is None else url
    if urlsplit(given).scheme not in ("http", "https"):
        raise invalid("url", f"http://… or https://…, here or in ${URL}", given)
    check_sendable(tenant)
    if type(attempts) is not int or attempts < 1:
        raise invalid("attempts", "1 or more", attempts)
    if not timeout > 0:
        raise invalid("timeout", "seconds above 0", timeout)
    return Manners(
        url=given.rstrip("/"),
        chance=chance,
        tenant=tenant,
        timeout_ms=int(timeout * 1000),
        attempts=attempts,
    )


def _key(given: str | None) -> str | None:
    key = (os.environ.get(API_KEY) or None) if given is None else given
    if key is not None and not (key.isascii() and key.isprintable()):
        raise invalid("api_key", "printable ASCII", "something else")
    return key
