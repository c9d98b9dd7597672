"""The outside as the three handlers share it: the client, the operator's settings, who listens.

The client is made at the first call: its libraries take longer to import than all of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.network.headers import retry_after_s
from detent.handlers.network.settings import Allowed, NetworkSettings
from detent.model import limits

if TYPE_CHECKING:
    from detent.handlers.artifacts import Artifacts
    from detent.handlers.network.client import GuardedClient, Reply
    from detent.handlers.network.secrets import Secrets

Shape = TypeVar("Shape", bound=Struct)
Deltas = Callable[[str, str, str], None]  # instance, block, text

_BUSY: Final = (429, 503)


def _nobody(instance: str, block: str, text: str) -> None:
    """Nobody listens."""


class Outside:
    """What the network handlers of one engine have in common."""

    def __init__(
        self,
        settings: NetworkSettings,
        *,
        deltas: Deltas | None = None,
        artifacts: Artifacts | None = None,
        environment: Mapping[str, str] | None = None,
        client: Callable[[], GuardedClient] | None = None,
    ) -> None:
        """`deltas` is told text as it comes; `environment` is where API keys are looked up.

        Without `artifacts` no bytes are kept.
        """
        Allowed(settings.allowed_hosts)  # refused when the engine opens, not at the first call
        self.settings = settings
        self.deltas = deltas or _nobody
        self.artifacts = artifacts
        self._environment = environment
        self._make = client

    @cached_property
    def client(self) -> GuardedClient:
        """The one guarded client."""
        if self._make is not None:
            return self._make()
        from detent.handlers.network.client import GuardedClient

        return GuardedClient(self.settings)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the process, unless another was given."""
        if self._environment is not None:
            return self._environment
        import os

        return os.environ


def read_params(params: Mapping[str, Any], shape: type[Shape], handler: str) -> Shape:
    """The params in their shape; what does not fit is a failure that no retry repeats."""
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        raise wrong(f"{handler}: {error}") from None


def wrong(problem: str) -> Failed:
    """The failure of a step whose params cannot be used."""
    return Failed(problem, retryable=False, code="request.invalid")


def checked_timeout_ms(name: str, value: int) -> int:
    """A time limit within what a call may take."""
    if not 0 < value <= limits.CALL_TIMEOUT_MS:
        raise wrong(f"{name} must be 1 to {limits.CALL_TIMEOUT_MS:,}, got {value:,}")
    return value


def check_status(reply: Reply, secrets: Secrets, who: str, *, final: bool | None = None) -> None:
    """Raise the failure that a status means; 5xx, and 429 that says when, may be tried again.

    `final` decides it otherwise for a status of 4xx.
    """
    status = reply.status
    if status < 400:  # noqa: PLR2004 - the number is its own name
        return
    pause = retry_after_s(reply.headers) if status in _BUSY else None
    retryable = status >= 500 or (not final if final is not None else pause is not None)  # noqa: PLR2004
    body = secrets.hide(reply.text())[: limits.FAILURE_BODY_CHARS]
    details = {"status": status, "body": body}
    text = f"{who} answered with status {status}"
    raise Failed(text, retryable=retryable, details=details, retry_after=pause)
