"""The guarded client: every request of the network handlers goes through here.

A call is read (`targets`), its addresses are judged (`guard`), the request goes to one of exactly
these (`connect`), and what comes back is counted while it comes (`body`). A redirect starts over at
the beginning. Whatever goes wrong is a `Failed` with a code, and says nothing of headers or keys.

The pool of connections lives inside an async generator that was started on the loop: whoever ends
the loop in good order (`shutdown_asyncgens`) closes the connections too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import httpcore2
from msgspec import Struct
from msgspec.structs import replace

from detent.handlers.answers import Failed
from detent.handlers.network.addresses import Address
from detent.handlers.network.body import Unpacker, text_of, too_large
from detent.handlers.network.connect import Dial, PinnedBackend, dial, pin_of
from detent.handlers.network.guard import Guard, Resolver, system_resolver
from detent.handlers.network.headers import harmless
from detent.handlers.network.settings import NetworkSettings
from detent.handlers.network.targets import Target, Unsent, next_url, read_target, refused
from detent.model import limits

_MOVED: Final = (301, 302, 303, 307, 308)
_SAME_METHOD: Final = (307, 308)
_AGENT: Final = "detent"


class Call(Struct, frozen=True, kw_only=True):
    """One request as a handler wants it; headers are checked and in lower case."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: bytes | None = None
    timeout_s: float
    idle_s: float | None = None  # how long nothing may come; None: as long as the whole may take
    follow: bool = True


class Reply(Struct, frozen=True, kw_only=True):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def text(self) -> str:
        """The body as text."""
        return text_of(self.body, self.headers)


class Incoming:
    """An answer whose body is still to come."""

    def __init__(self, response: httpcore2.Response, limit: int) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.headers = _headers(response)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body as it comes, unpacked, up to the limit."""
        unpacker = None
        async with aclosing(self._response.aiter_stream()) as stream:
            async for piece in stream:
                unpacker = unpacker or self._begin()
                yield unpacker.feed(piece)

    def _begin(self) -> Unpacker:
        """Look at what the headers promise once a body comes; without one they mean nothing."""
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._limit:
            raise too_large(self._limit)
        return Unpacker(self.headers.get("content-encoding", ""), self._limit)


class GuardedClient:
    """Sends requests to where they may go."""

    def __init__(
        self,
        settings: NetworkSettings,
        *,
        resolve: Resolver = system_resolver,
        dial: Dial = dial,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._guard = Guard(settings, resolve)
        self._dial = dial
        self._ssl = ssl_context
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()

    async def fetch(self, call: Call) -> Reply:
        """The whole answer to a call."""
        async with self.exchange(call) as incoming, aclosing(incoming.pieces()) as pieces:
            body = b"".join([piece async for piece in pieces])
        return Reply(status=incoming.status, headers=incoming.headers, body=body)

    @asynccontextmanager
    async def exchange(self, call: Call) -> AsyncIterator[Incoming]:
        """The answer to a call, its body to be read inside."""
        with _told(call):
            async with asyncio.timeout(call.timeout_s):
                response = await self._answer(call)
                try:
                    yield Incoming(response, self._settings.max_body_bytes)
                finally:
                    await response.aclose()

    async def _answer(self, call: Call) -> httpcore2.Response:
        """The answer of the last in a chain of redirects, each judged like the first."""
        for _ in range(self._settings.max_redirects + 1):
            target = read_target(call.url)
            response = await self._send(call, target)
            location = _location(response)
            if not call.follow or response.status not in _MOVED or location is None:
                return response
            await response.aclose()
            call = _redirected(call, target, response.status, location)
        raise refused(f"it was redirected more than {self._settings.max_redirects} times")

    async def _send(self, call: Call, target: Target) -> httpcore2.Response:
        """Call the addresses in turn until one takes the connection."""
        addresses = (await self._guard.addresses(target))[: limits.ADDRESSES_TRIED]
        pool = await self._pool()
        for address in addresses[:-1]:
            try:
                return await pool.handle_async_request(self._request(call, target, address))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # nothing was sent
        return await pool.handle_async_request(self._request(call, target, addresses[-1]))

    def _request(self, call: Call, target: Target, address: Address) -> httpcore2.Request:
        headers = {"user-agent": _AGENT, "accept": "*/*", **call.headers}
        headers = {"host": target.place, **headers, "accept-encoding": "identity"}
        if call.body is not None or call.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(call.body or b""))
        connect_s = self._settings.connect_timeout_ms / 1000
        waits: dict[str, Any] = {"connect": connect_s, "read": call.idle_s, "write": call.idle_s}
        return httpcore2.Request(
            call.method,
            httpcore2.URL(
                scheme=target.scheme,
                host=pin_of(target, address),
                port=target.port,
                target=target.path.encode("ascii"),
            ),
            headers=[(name.encode(), text.encode("latin-1")) for name, text in headers.items()],
            content=call.body or b"",
            extensions={"timeout": waits, "sni_hostname": target.host},
        )

    async def _pool(self) -> httpcore2.AsyncConnectionPool:
        loop = asyncio.get_running_loop()
        held = self._pools.get(loop)
        if held is None:
            held = self._pools[loop] = _Pool(self._dial, self._ssl)
            await held.life.__anext__()
        return held.pool


class _Pool:
    """The connections of one loop, and the generator that closes them when the loop ends."""

    def __init__(self, dial: Dial, ssl_context: ssl.SSLContext | None) -> None:
        self.pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context or httpcore2.default_ssl_context(),
            max_connections=limits.CONNECTIONS,
            max_keepalive_connections=limits.CONNECTIONS_KEPT,
            keepalive_expiry=limits.CONNECTION_KEPT_MS / 1000,
            network_backend=PinnedBackend(dial),
        )
        self.life = self._live()

    async def _live(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.pool.aclose()


def _redirected(call: Call, target: Target, status: int, location: str) -> Call:
    """The call that a redirect asks for; across origins nothing goes along that may be secret."""
    url = next_url(call.url, location)
    following = read_target(url)
    if target.scheme == "https" and following.scheme == "http":
        raise refused(f"{target.place} redirects from https to http; nothing is sent in the clear")
    headers = call.headers
    if following.origin != target.origin:
        headers = harmless(headers)
    if status in _SAME_METHOD or call.method in ("GET", "HEAD"):
        return replace(call, url=url, headers=headers)
    headers = {name: text for name, text in headers.items() if name != "content-type"}
    return replace(call, url=url, headers=headers, method="GET", body=None)


@contextmanager
def _told(call: Call) -> Iterator[None]:
    """What the library raises, as failures; its own words may hold what was sent."""
    try:
        yield
    except (TimeoutError, httpcore2.TimeoutException) as error:
        kind = Unsent if isinstance(error, httpcore2.ConnectTimeout) else Failed
        raise kind(_late(call, error), code="network.timeout") from None
    except httpcore2.LocalProtocolError:
        text = f"the request to {_place(call)} cannot be sent as HTTP/1.1"
        raise Failed(text, retryable=False, code="network.protocol") from None
    except httpcore2.ProtocolError:
        text = f"{_place(call)} did not answer in HTTP/1.1, or broke off"
        raise Failed(text, code="network.protocol") from None
    except (httpcore2.NetworkError, OSError) as error:
        text = f"no connection to {_place(call)}, or it broke: {_reason(error)}"
        kind = Unsent if isinstance(error, httpcore2.ConnectError) else Failed
        raise kind(text, code="network.unreachable") from None


def _late(call: Call, error: Exception) -> str:
    if isinstance(error, httpcore2.ConnectTimeout):
        return f"{_place(call)} did not take the connection in time"
    if isinstance(error, httpcore2.TimeoutException) and call.idle_s is not None:
        return f"{_place(call)} sent nothing for {call.idle_s:g} s"
    return f"{_place(call)} did not answer within {call.timeout_s:g} s"


def _reason(error: BaseException) -> str:
    """The words of the system or of TLS; they know nothing of the request."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    text = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or ""
    return text or type(error).__name__


def _place(call: Call) -> str:
    return read_target(call.url).place


def _location(response: httpcore2.Response) -> str | None:
    """Where a redirect points to; other letters than ASCII are sent as UTF-8 these days."""
    found = _headers(response).get("location")
    try:
        return found and found.encode("latin-1").decode()
    except UnicodeDecodeError:
        return found


def _headers(response: httpcore2.Response) -> dict[str, str]:
    """The headers in lower case; of several with one name the first."""
    found: dict[str, str] = {}
    for name, value in response.headers:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found
