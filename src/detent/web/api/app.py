"""The application: one request from its first byte to its answer.

Call order: `Api.__call__` -> `Router.find` -> `Access.admit` -> `Idempotency.once`, for a POST with
a key -> `bodies` -> the route's function -> `Response`. Whatever goes wrong on the way becomes an
answer here and nowhere else.
"""

from __future__ import annotations

import logging
import re
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.requests import Request

from detent.model.errors import DetentError, InvariantViolation
from detent.service.inbound import PeerRates
from detent.web.api import bodies
from detent.web.api.call import Call, House
from detent.web.api.idempotency import HEADER, Idempotency
from detent.web.api.known import KnownSequences
from detent.web.api.meters import Meters
from detent.web.api.openapi import Description
from detent.web.api.refusals import Refusal, error_reply, internal_reply
from detent.web.api.routes import Route, Router
from detent.web.api.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from detent.service.desk import Desk
    from detent.web.api.access import Access
    from detent.web.api.settings import ApiSettings

_REQUEST_ID_CHARS = 128
_ROUTE = "detent.route"
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_-]")

log = logging.getLogger("detent.web")


class Api:
    """An ASGI application over a desk."""

    def __init__(
        self, desk: Desk, settings: ApiSettings, access: Access, routes: Iterable[Route]
    ) -> None:
        self.desk = desk
        self.settings = settings
        self.access = access
        self.router = Router(iter(routes))
        described = Description(self.router.routes, settings.version)
        self.house = House(
            settings,
            KnownSequences(desk),
            described,
            access.keys,
            PeerRates(),
            Streams(desk, settings.streams),
            Meters(),
        )
        self.idempotency = Idempotency(desk)

    def close(self) -> None:
        """End what would go on for ever, so that the server can stop."""
        self.house.streams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        began_ns = perf_counter_ns()
        response = await self._answer(request)
        took_us = (perf_counter_ns() - began_ns) // 1_000
        self.house.meters.note(scope.get(_ROUTE), response.status_code, took_us)
        response.headers["x-request-id"] = _request_id(request, self.desk)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._run(request)
        except Refusal as refusal:
            return refusal.reply()
        except InvariantViolation:
            log.exception("%s %s", request.method, request.url.path)
            return internal_reply()
        except DetentError as error:
            return error_reply(error)
        except Exception:
            log.exception("%s %s", request.method, request.url.path)
            return internal_reply()

    async def _run(self, request: Request) -> Response:
        found = self.router.find(request.method, raw_path(request))
        route = request.scope[_ROUTE] = found.route
        call = Call(request, self.desk, self.house)
        call.path = found.path
        call.principal = await self.access.admit(request, route)
        if route.method == "POST" and not route.public and HEADER in request.headers:
            return await self.idempotency.once(call, route, self._perform)
        return await self._perform(call, route)

    async def _perform(self, call: Call, route: Route) -> Response:
        if route.query is not None:
            call.query = bodies.queried(call.request, route.query)
        if route.takes is None or route.raw:
            return await route.run(call)
        return await route.run(call, await self._body(call.request, route))

    async def _body(self, request: Request, route: Route) -> Any:
        body = await bodies.read_bytes(request, self.settings.body_bytes)
        if not body and route.optional_body:
            return bodies.shaped({}, route.takes)
        bodies.check_json_type(request)
        return bodies.shaped(bodies.read_json(body), route.takes)


def raw_path(request: Request) -> str:
    """The path as it was sent: a slash that is part of a name is still told from one between."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.decode("latin-1")


def _request_id(request: Request, desk: Desk) -> str:
    """The caller's own, cleaned, or a fresh one."""
    given = _NOT_IN_ID.sub("", request.headers.get("x-request-id", ""))[:_REQUEST_ID_CHARS]
    return given or str(UUID(bytes=desk.salt(), version=4))


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
