"""A talk with a server, without any input or output: what is sent, what is heard, when to pause.

A verb is a generator that yields `Sent` and is given `Heard` or `Trouble`, or yields `Pause` and is
given nothing. Whoever drives it does only these two things, so that a blocking and an asynchronous
client are the same program. `ask` is one exchange with all its patience: it tries again what cannot
happen twice, and what it returns is the answer as a value, or the error that the engine raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from detent.client.answers import answer_of, error_in
from detent.model import limits
from detent.model.errors import DetentError, RequestError, StoreError

T = TypeVar("T")

PREFIX = "/api/v1"
_WELL = range(200, 300)
_AGAIN = (429, 503)
_KEY = "idempotency-key"
_NOT_YET = "request.in_progress"  # the first attempt is still being carried out


class Sent(Struct, frozen=True, kw_only=True):
    """One request; `patience_ms` is how long the server may take to answer."""

    method: str
    path: str
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: bytes | None = None
    patience_ms: int


class Heard(Struct, frozen=True, kw_only=True):
    """One answer; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Trouble(Struct, frozen=True, kw_only=True):
    """No answer: the server was never reached, the connection broke, or time was up."""

    kind: str  # unreached | broken | late
    text: str


class Pause(Struct, frozen=True):
    """Wait for a while."""

    seconds: float


Talk = Generator[Sent | Pause, Any, T]


class Ask(Struct, frozen=True, kw_only=True):
    """What a verb wants to know; `gives` is the type of the answer, None for none."""

    method: str
    path: str
    query: dict[str, Any] = {}
    body: Any = None
    tenant: str | None = None
    gives: Any = None
    patience_ms: int = 0  # on top of the client's own
    keyed: bool = True  # whether a POST carries a key, so that it may come twice and act once


class Manners(Struct, frozen=True, kw_only=True):
    """How a client asks: for whom, how long, how often; `chance` gives bytes nobody can guess."""

    url: str
    chance: Callable[[int], bytes]
    tenant: str | None = None
    timeout_ms: int = limits.CLIENT_TIMEOUT_MS
    attempts: int = limits.CLIENT_ATTEMPTS


def ask(manners: Manners, what: Ask) -> Talk[Any]:
    """Ask once, or as often as is safe and worth it; the answer as a value."""
    sent = _request(manners, what)
    end = time.monotonic() + sent.patience_ms / 1000
    attempt = 1
    while True:
        heard = yield sent
        if isinstance(heard, Heard) and heard.status in _WELL:
            return answer_of(heard.body, what.gives, manners.url)
        error = _error(heard, manners)
        pause = _pause(manners, heard, attempt)
        over = attempt >= manners.attempts or time.monotonic() + pause > end
        if over or not _again(sent, heard, error):
            raise error
        yield Pause(pause)
        attempt += 1


def _request(manners: Manners, what: Ask) -> Sent:
    headers = {"accept": "application/json"}
    tenant = manners.tenant if what.tenant is None else what.tenant
    if tenant is not None:
        headers["x-tenant-id"] = tenant
    body = None
    if what.body is not None:
        body = msgspec.json.encode(what.body)
        headers["content-type"] = "application/json"
    if what.method == "POST" and what.keyed:
        headers[_KEY] = manners.chance(16).hex()
    return Sent(
        method=what.method,
        path=PREFIX + what.path,
        query={name: value for name, value in what.query.items() if value is not None},
        headers=headers,
        body=body,
        patience_ms=manners.timeout_ms + what.patience_ms,
    )


def _again(sent: Sent, heard: Heard | Trouble, error: DetentError) -> bool:
    """Whether another attempt does no harm and may help."""
    if isinstance(heard, Trouble):
        # of a DELETE nobody knows whether it happened, and a second one would say that it had not
        once = sent.method == "DELETE" or (sent.method == "POST" and _KEY not in sent.headers)
        return heard.kind == "unreached" or (heard.kind == "broken" and not once)
    return heard.status in _AGAIN or error.code == _NOT_YET


def _pause(manners: Manners, heard: Heard | Trouble, attempt: int) -> float:
    """Seconds until the next attempt: more each time, spread by chance, or as the server says."""
    most = limits.CLIENT_BACKOFF_MOST_MS
    told = heard.headers.get("retry-after", "") if isinstance(heard, Heard) else ""
    if told.isascii() and told.isdecimal() and len(told) < 10:  # noqa: PLR2004 - fits a number
        return float(told)
    ms: int = min(limits.CLIENT_BACKOFF_MS << (attempt - 1), most)
    part = int.from_bytes(manners.chance(2), "big") / 65_536
    return ms * (0.5 + part / 2) / 1000


def _error(heard: Heard | Trouble, manners: Manners) -> DetentError:
    if isinstance(heard, Heard):
        return error_in(heard.status, heard.headers, heard.body, manners.url)
    if heard.kind == "late":
        return RequestError(
            "request.timeout",
            f"{manners.url} has not answered in time ({heard.text}); it may have done what was "
            "asked: look, or ask again with a key of your own",
        )
    reached = "cannot be reached" if heard.kind == "unreached" else "closed the connection"
    return StoreError(
        "server.unreachable",
        f"{manners.url} {reached}: {heard.text}; is the server running, and is the URL right?",
    )
