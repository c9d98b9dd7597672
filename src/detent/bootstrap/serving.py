"""A server: the engine, its desk and the API in one process, the writer in its own."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import uvicorn
import uvloop
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from detent.bootstrap.desk import EngineDesk
from detent.bootstrap.engine import Engine
from detent.bootstrap.freshness import guarded_post, keep_fresh
from detent.bootstrap.push_room import PushRoom
from detent.bootstrap.pushing import Pusher, guarded_send
from detent.model.errors import StoreError
from detent.web.api.access import Access
from detent.web.api.app import Api
from detent.web.api.settings import ApiSettings
from detent.web.api.streams import ABORT
from detent.web.api.tables import all_routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.service.refreshing import Post

BACKLOG = 2_048
_KEEP_ALIVE_S = 30
_GRACE_S = 5
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServeSettings(Struct, frozen=True, kw_only=True):
    """Where to listen, and what the API is told."""

    host: str = "127.0.0.1"
    port: int = 8080
    api: ApiSettings = ApiSettings()
    insecure: bool = False  # without a key, for other machines too


def serve(
    engine: Engine,
    settings: ServeSettings,
    ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Answer requests until a signal asks to stop; then finish what was begun."""
    loops = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with Server(engine, settings) as server, loops as runner:
        runner.run(_until_signal(server, ready))


class Server:
    """An engine behind a listening socket; `run` it on an event loop, `stop` it from anywhere.

    `post` sends a form to the provider of a token that is to be refreshed; without one that is done
    by the guarded client, which goes where the engine's settings let it.
    """

    def __init__(self, engine: Engine, settings: ServeSettings, post: Post | None = None) -> None:
        check_exposure(settings)
        self._listening = listen(settings.host, settings.port)
        host, port = self._listening.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._desk = EngineDesk(engine)
        self.api = make_api(self._desk, settings.api)
        self._server = _Server(_config(self.api), self.api)
        parts = engine._parts  # noqa: SLF001 - of the same layer
        self._post = post or guarded_post(parts.settings)
        self._pusher = Pusher(
            self._desk, parts.work.bell, PushRoom(parts), guarded_send(parts.settings)
        )

    async def run(self) -> None:
        """Answer requests until told to stop; requests under way are answered first."""
        beside = [
            asyncio.create_task(keep_fresh(self._desk, self._post)),
            asyncio.create_task(self._pusher.run()),
        ]
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    def stop(self) -> None:
        """Take no more requests; those that wait for something are answered now."""
        self._server.should_exit = True
        self._desk.hush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._desk.close()
        self._listening.close()


def _config(api: Api) -> uvicorn.Config:
    return uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        http=_Protocol,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
        date_header=False,
    )


def make_api(desk: EngineDesk, settings: ApiSettings) -> Api:
    """The API over a desk."""
    told = ApiSettings(**{**_plain(settings), "version": version("detent")})
    return Api(desk, told, Access(told, desk), all_routes())


def check_exposure(settings: ServeSettings) -> None:
    """Without a key everybody is the operator, so nobody but this machine may call."""
    exposed = settings.host not in _LOOPBACK and not settings.insecure
    if not settings.api.api_key and exposed:
        raise StoreError(
            "server.exposed",
            f"without an API key the server listens on this machine only, not on {settings.host}; "
            "set DETENT_API_KEY, leave the host out, or say --insecure",
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; `server.address` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP, or event loops leave Nagle's delay on, which costs each answer 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise StoreError(
            "server.address",
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port",
        ) from None
    return listening


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn would raise them again before the engine is closed."""

    def __init__(self, config: uvicorn.Config, api: Api) -> None:
        super().__init__(config)
        self._api = api

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Leave them alone."""
        return nullcontext()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first: nobody waits for an answer that never ends."""
        self._api.close()
        await super().shutdown(sockets)


class _Protocol(HttpToolsProtocol):
    """Lends an answer the means to drop a connection whose other end takes nothing."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope[ABORT] = self.transport.abort  # type: ignore[literal-required]


async def _until_signal(server: Server, ready: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    loop.call_soon(ready, server.url)
    await server.run()


def _plain(settings: ApiSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}
