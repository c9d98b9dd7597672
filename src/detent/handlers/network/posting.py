"""How webhooks are posted: by the guarded client, like every other call to the outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from detent.handlers.answers import Failed
from detent.handlers.network.targets import Unsent
from detent.model import limits
from detent.model.errors import RequestError

if TYPE_CHECKING:
    from detent.handlers.network.client import Reply
    from detent.handlers.network.outside import Outside

_MOVED = range(300, 400)


class NotSentError(ConnectionError):
    """There was no connection: whoever was to get the message has nothing of it."""


class Posting:
    """Posts a message once; a refusal is a `RequestError`, any other failure a `ConnectionError`.

    A redirect is not followed: it could turn the message into a request without a body, or carry
    its signature to somebody else.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int
    ) -> tuple[int, Mapping[str, str], str]:
        """The status, the headers and the beginning of the body of the answer."""
        reply = await self.send(url, headers, body, timeout_ms)
        return reply.status, reply.headers, reply.text()[: limits.FAILURE_BODY_CHARS]

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int
    ) -> Reply:
        """The whole answer."""
        from detent.handlers.network.client import Call

        call = Call(
            url=url,
            method="POST",
            headers={name.lower(): text for name, text in headers.items()},
            body=body,
            timeout_s=timeout_ms / 1000,
            follow=False,
        )
        try:
            reply = await self._outside.client.fetch(call)
        except Unsent as failure:
            raise NotSentError(failure.message) from None
        except Failed as failure:
            if failure.retryable:
                raise ConnectionError(failure.message) from None
            raise RequestError(failure.code or "network.refused", failure.message) from None
        if reply.status in _MOVED:
            text = f"the receiver redirects with status {reply.status}; name the URL it moved to"
            raise RequestError("network.refused", text)
        return reply
