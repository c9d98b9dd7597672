"""Tokens kept fresh: a server looks now and then for those that expire soon, and refreshes them.

Nothing else depends on it: a provider that is away, or a store that is busy, is said in the log and
tried again. Where a step needs a token that has expired all the same, because no server ran, it is
refreshed then (`Renewal`), once for all who need it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlencode

from msgspec.structs import replace

from detent.bootstrap.own import network_of
from detent.handlers.network import Outside
from detent.model import limits
from detent.service.refreshing import (
    refresh_credential,
    refresh_credentials,
    refresh_under_way,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.bootstrap.assemble import Parts
    from detent.bootstrap.settings import Settings
    from detent.ports.store import Store
    from detent.service.desk import Desk
    from detent.service.refreshing import Post

T = TypeVar("T")

JSON = "application/json"
_LOOK_MS = 20

log = logging.getLogger("detent.credentials")


async def keep_fresh(desk: Desk, post: Post) -> None:
    """Refresh what is due, about once a minute, until cancelled; without a vault there is none."""
    while desk.safe().vault is not None:
        await refresh_once(desk, post)
        await asyncio.sleep(limits.REFRESH_LOOK_MS / 1000)


async def refresh_once(desk: Desk, post: Post) -> None:
    """Refresh what is due now; what fails is said by its id and reason, never by a value."""
    try:
        done = await refresh_credentials(desk, desk.safe(), post, desk.wall_ms)
    except Exception as error:  # noqa: BLE001 - whatever it was, the server goes on
        log.warning("credentials could not be refreshed: %s", type(error).__name__)
        return
    for each in done:
        if each.reason:
            log.warning("credential %s was not refreshed: %s", each.id, each.reason)
        else:
            log.info("credential %s was refreshed", each.id)


class _Answer(NamedTuple):
    status_code: int
    content: bytes


def guarded_post(settings: Settings) -> Post:
    """How forms are sent to providers: by the guarded client, where an engine's calls may go."""
    outside = Outside(replace(network_of(settings), max_body_bytes=limits.REFRESH_BYTES))

    async def post(url: str, form: Mapping[str, str]) -> _Answer:
        from detent.handlers.network.client import Call

        call = Call(
            url=url,
            method="POST",
            headers={"content-type": "application/x-www-form-urlencoded", "accept": JSON},
            body=urlencode(form).encode(),
            timeout_s=limits.REFRESH_TIMEOUT_MS / 1000,
            follow=False,  # a redirect could carry the form to somebody else
        )
        reply = await outside.client.fetch(call)
        return _Answer(reply.status, reply.body)

    return post


class Renewal:
    """Refreshes tokens for steps that need them now; whoever else needs one waits for the same.

    A refresh that has begun goes on whatever becomes of the step, and when the process is told to
    end it waits for it: the provider may have taken the old refresh token back already.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pool = ThreadPoolExecutor(limits.REFRESH_AT_ONCE, "detent-renew")
        self._lock = threading.Lock()
        self._begun: dict[str, Future[None]] = {}

    def __call__(self, id: str) -> Future[None]:
        """Have it refreshed, by this process or another; `credential.refresh` where it is not."""
        with self._lock:
            begun = self._begun.get(id)
            if begun is None:
                begun = self._begun[id] = self._pool.submit(self._run, id)
            return begun

    def close(self) -> None:
        """Begin no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, id: str) -> None:
        try:
            asyncio.run(self._refresh(id))
        finally:
            with self._lock:
                del self._begun[id]

    async def _refresh(self, id: str) -> None:
        parts = self._parts
        post = guarded_post(parts.settings)
        if await refresh_credential(_Rows(parts), parts.safe, id, post, parts.now_ms):
            return
        for _ in range(limits.REFRESH_WAIT_MS // _LOOK_MS):
            if not parts.read(lambda store: refresh_under_way(store, id, parts.now_ms())):
                return
            await asyncio.sleep(_LOOK_MS / 1000)


class _Rows:
    """The store of an engine, for a loop that has nothing else to do."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def look(self, use: Callable[[Store], T]) -> T:
        return self._parts.read(use)

    async def write(self, use: Callable[[Store], T]) -> T:
        return self._parts.write(use)
