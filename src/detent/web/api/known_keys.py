"""API keys that were let in lately, so that a call does not ask the store each time.

A key that another process revokes is let in for `API_KEY_FRESH_MS` at most; one that this process
revokes, or that expires, not at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from detent.model import limits
from detent.model.errors import RequestError
from detent.service.api_keys import KeyUses, Principal, verify_api_key, write_use

if TYPE_CHECKING:
    from detent.service.desk import Desk

log = logging.getLogger("detent.web")


class _Known(NamedTuple):
    who: Principal
    until: float


class KnownKeys:
    """The stored keys, by the hash of their secret."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._kept: OrderedDict[bytes, _Known] = OrderedDict()
        self._uses = KeyUses()
        self._writing: set[asyncio.Future[None]] = set()
        self._revoked = 0  # how often one was: what was being looked up meanwhile is not kept

    async def find(self, secret: str) -> Principal | None:
        """Who a secret lets in."""
        now_ms = self._desk.wall_ms()
        mark = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        known = self._kept.get(mark)
        who = known.who if known is not None and time.monotonic() < known.until else None
        if who is None:
            who = await self._look(mark, secret, now_ms)
        if who is None or (who.expires_ms is not None and who.expires_ms <= now_ms):
            return None
        if self._uses.note(who.key, now_ms):
            self._write(who.key, now_ms)
        return who

    def forget(self, id: str) -> None:
        """It was revoked."""
        self._revoked += 1
        for mark in [mark for mark, known in self._kept.items() if known.who.key == id]:
            del self._kept[mark]

    async def _look(self, mark: bytes, secret: str, now_ms: int) -> Principal | None:
        began = self._revoked
        self._kept.pop(mark, None)
        try:
            who = await self._desk.look(lambda store: verify_api_key(store, secret, now_ms))
        except RequestError:
            return None
        if began == self._revoked:
            self._kept[mark] = _Known(who, time.monotonic() + limits.API_KEY_FRESH_MS / 1000)
            if len(self._kept) > limits.API_KEYS_TRACKED:
                self._kept.popitem(last=False)
        return who

    def _write(self, id: str, now_ms: int) -> None:
        """Write when a key was used last, and keep nobody waiting for it."""
        writing = asyncio.ensure_future(
            self._desk.write(lambda store: write_use(store, id, now_ms))
        )
        self._writing.add(writing)
        writing.add_done_callback(self._written)

    def _written(self, writing: asyncio.Future[None]) -> None:
        self._writing.discard(writing)
        error = None if writing.cancelled() else writing.exception()
        if error is not None:
            log.warning("the last use of an API key could not be written: %s", error)
