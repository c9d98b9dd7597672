"""The two drivers: each does what a talk asks for, one blocking, one awaiting."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

import httpx2

from detent.client.talking import Heard, Manners, Pause, Sent, Talk, Trouble
from detent.model import limits

T = TypeVar("T")

_POOL = httpx2.Limits(
    max_connections=limits.CLIENT_CONNECTIONS, max_keepalive_connections=limits.CLIENT_CONNECTIONS
)


class Blocking:
    """Holds talks in the thread of the caller; many threads may share it."""

    def __init__(self, manners: Manners, api_key: str | None) -> None:
        self.manners = manners
        self._http = httpx2.Client(base_url=manners.url, limits=_POOL, headers=_signed(api_key))

    def hold(self, talk: Talk[T]) -> T:
        """Hold a talk to its end; its result, or its error."""
        given: Any = None
        try:
            while True:
                step = talk.send(given)
                if isinstance(step, Pause):
                    given = time.sleep(step.seconds)  # type: ignore[func-returns-value]
                else:
                    given = self._exchange(step)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            talk.close()

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def _exchange(self, sent: Sent) -> Heard | Trouble:
        try:
            return _heard(self._http.request(**_arguments(sent)))
        except httpx2.RequestError as error:
            return _trouble(error)


class Awaiting:
    """Holds talks on an event loop; many tasks may share it."""

    def __init__(self, manners: Manners, api_key: str | None) -> None:
        self.manners = manners
        self._http = httpx2.AsyncClient(
            base_url=manners.url, limits=_POOL, headers=_signed(api_key)
        )

    async def hold(self, talk: Talk[T]) -> T:
        """Hold a talk to its end; its result, or its error."""
        given: Any = None
        try:
            while True:
                step = talk.send(given)
                given = await (
                    asyncio.sleep(step.seconds) if isinstance(step, Pause) else self._exchange(step)
                )
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            talk.close()

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def _exchange(self, sent: Sent) -> Heard | Trouble:
        try:
            return _heard(await self._http.request(**_arguments(sent)))
        except httpx2.RequestError as error:
            return _trouble(error)


def _signed(api_key: str | None) -> dict[str, str]:
    """The key as a header that no log or traceback shows; it is kept nowhere else."""
    return {} if api_key is None else {"authorization": f"Bearer {api_key}"}


def _arguments(sent: Sent) -> dict[str, Any]:
    return {
        "method": sent.method,
        "url": sent.path,
        "params": sent.query or None,
        "headers": sent.headers,
        "content": sent.body,
        "timeout": sent.patience_ms / 1000,
        "follow_redirects": False,  # the key is for this server alone
    }


def _heard(answer: httpx2.Response) -> Heard:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Heard(status=answer.status_code, headers=headers, body=answer.content)


def _trouble(error: httpx2.RequestError) -> Trouble:
    text = str(error) or type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return Trouble(kind="unreached", text=text)
    if isinstance(error, httpx2.UnsupportedProtocol):
        return Trouble(kind="unreached", text=text)
    kind = "late" if isinstance(error, httpx2.TimeoutException) else "broken"
    return Trouble(kind=kind, text=text)
