"""`Idempotency-Key`: a POST that comes again is answered as the first time, and acts once.

The first answer that went well is kept and given again, byte for byte. Two at once cannot run,
whichever server of an engine they come to: that is known in memory alone, since a process that dies
runs nothing any more. It may die between an act and the keeping of its answer, and another process
may serve the same store: ids derive from the key and the request (`Call.fresh_id`), so that whoever
acts again finds what was made before and makes nothing new.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from detent.model import limits
from detent.model.errors import DetentError, RequestError
from detent.service.requests import Kept, Named, keep_answer, kept_answer
from detent.web.api import bodies
from detent.web.api.refusals import Refusal

if TYPE_CHECKING:
    from starlette.types import Message

    from detent.service.desk import Desk
    from detent.web.api.call import Call
    from detent.web.api.routes import Route

HEADER = "idempotency-key"
REPLAYED = "idempotent-replayed"

Perform = Callable[["Call", "Route"], Awaitable[Response]]

log = logging.getLogger("detent.web")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Idempotency:
    """Lets a request with a key act once."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._running = desk.under_way()  # what runs under a key: a list of its digest alone

    async def once(self, call: Call, route: Route, perform: Perform) -> Response:
        """The first answer, or the same again."""
        named = Named(call.tenant or "", _key(call.request))
        body = await bodies.read_bytes(call.request, call.server.body_bytes)
        call.request = _with_body(call.request, body)
        digest = _digest(call, route, body)
        mine = [digest]
        first = self._running.setdefault(
            named, mine
        )  # at once: servers run on threads of their own
        if first is not mine:
            _check_same(named, first[0], digest)
            raise RequestError(
                "request.in_progress",
                "the first request with this Idempotency-Key is not answered yet; try again soon",
            )
        try:
            return await self._first_or_kept(call, route, perform, (named, digest))
        finally:
            del self._running[named]

    async def _first_or_kept(
        self, call: Call, route: Route, perform: Perform, who: tuple[Named, str]
    ) -> Response:
        named, digest = who
        safe, now_ms = self._desk.safe(), self._desk.wall_ms()
        kept = await self._desk.look(lambda store: kept_answer(store, safe, named, now_ms))
        if kept is not None:
            _check_same(named, kept.digest, digest)
            return _replayed(kept)
        call.id_seed = f"{named.key}\n{digest}"
        answer = await perform(call, route)
        if 200 <= answer.status_code < 300:
            bare = route.secret and safe.vault is None
            await self._keep(named, _kept(answer, digest, bare=bare))
        return answer

    async def _keep(self, named: Named, kept: Kept) -> None:
        """Keep an answer; where that fails the caller still gets it, for it is true."""
        safe, now_ms = self._desk.safe(), self._desk.wall_ms()
        try:
            await self._desk.write(lambda store: keep_answer(store, safe, named, kept, now_ms))
        except DetentError as error:
            log.warning("an answer could not be kept under its Idempotency-Key: %s", error.code)


def _key(request: Request) -> str:
    key = request.headers[HEADER]
    most = limits.REQUEST_KEY_CHARS
    if not 0 < len(key) <= most or not all("!" <= char <= "~" for char in key):
        raise Refusal(400, f"Idempotency-Key must be 1 to {most} printable ASCII characters")
    return key


def _with_body(request: Request, body: bytes) -> Request:
    """The request, its body there to be read once more; then whatever comes behind it."""
    left = [body]

    async def receive() -> Message:
        if not left:
            return await request.receive()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    return Request(request.scope, receive)


def _digest(call: Call, route: Route, body: bytes) -> str:
    """What is asked: the route, its parameters and query, and every byte of the body."""
    query = call.request.scope.get("query_string", b"").decode("latin-1")
    asked = _encode([route.method, route.path, call.path, query])
    return hashlib.sha256(asked + b"\n" + body).hexdigest()


def _check_same(named: Named, first: str, digest: str) -> None:
    if first != digest:
        raise RequestError(
            "request.key_reused",
            f"the Idempotency-Key {named.key!r} was used for another request; choose a fresh one",
        )


def _kept(answer: Response, digest: str, *, bare: bool) -> Kept:
    body = getattr(answer, "body", None)
    if bare or not isinstance(body, bytes) or len(body) > limits.REQUEST_ANSWER_BYTES:
        return Kept(digest=digest, status=answer.status_code)
    return Kept(
        digest=digest,
        status=answer.status_code,
        media=answer.headers.get("content-type", ""),
        body=body.decode(),
    )


def _replayed(kept: Kept) -> Response:
    if kept.body is None:
        raise RequestError(
            "request.spent",
            "the first request with this Idempotency-Key was carried out, and its answer was too "
            "long or too secret to keep; look at what it made, or use a fresh key",
        )
    headers = {REPLAYED: "true"}
    if kept.media:
        headers["content-type"] = kept.media
    return Response(kept.body, kept.status, headers)
