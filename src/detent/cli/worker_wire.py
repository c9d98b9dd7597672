"""The calls that a worker makes of a server: each is tried until it is answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import httpx2
import msgspec
from msgspec import Raw, Struct

from detent.model import limits
from detent.model.errors import CODES, RequestError

_WAIT_S = 20  # of one poll; anything between may give up on a silent connection
_PATIENCE_S = 30
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_LEASE = "x-detent-lease-ms"
_AGAIN = (408, 429, 500, 502, 503, 504)

log = logging.getLogger("detent.worker")


class TaskContext(Struct, frozen=True, kw_only=True):
    """What a task shows of its instance; what its step hides is null."""

    data: Raw = Raw(b"null")
    config: Raw = Raw(b"null")
    runtime: dict[str, Any] | None = None


class ClaimedTask(Struct, frozen=True, kw_only=True):
    """A task as a poll gives it."""

    id: str
    instance_id: str
    block_id: str
    handler_name: str
    claim_epoch: int
    attempt: int = 0
    checkpoint_seq: int = 0
    timeout_ms: int | None = None
    params: Raw = Raw(b"null")
    context: TaskContext = TaskContext()
    resume_checkpoint: Any = None


class Answer(NamedTuple):
    """What the server said; `again` when an earlier try may have been carried out."""

    status: int
    body: bytes
    code: str = ""
    lease_ms: int = limits.WORK_STALE_MS
    again: bool = False

    @property
    def sentence(self) -> str:
        """The words of a refusal."""
        try:
            told = msgspec.json.decode(self.body, type=dict[str, Any])
            return str(told.get("error", ""))
        except msgspec.MsgspecError:
            return self.body.decode("utf-8", "replace")[:200] or f"status {self.status}"


class Wire:
    """One server, as one worker speaks to it."""

    def __init__(
        self, http: httpx2.AsyncClient, worker: str, queue: str | None, chance: Callable[[], float]
    ) -> None:
        """`chance` gives a number between 0 and 1."""
        self._http = http
        self._worker = worker
        self._queue = queue
        self._chance = chance
        self._away = False

    async def poll(self, handler: str, limit: int) -> tuple[list[ClaimedTask], int]:
        """Wait for tasks of a handler; those that were claimed, and for how long without a beat."""
        body: dict[str, Any] = {
            "handler_name": handler,
            "worker_id": self._worker,
            "limit": limit,
            "wait_secs": _WAIT_S,
        }
        path = "/workers/tasks/poll"
        if self._queue is not None:
            body["queue_name"] = self._queue
            path += "/queue"
        answer = await self._post(path, body)
        if answer.status != HTTPStatus.OK:
            raise _refused(path, answer)
        return msgspec.json.decode(answer.body, type=list[ClaimedTask]), answer.lease_ms

    async def tell(self, task: ClaimedTask, what: str, **fields: Any) -> Answer:
        """Complete, fail or heartbeat a task."""
        body = {"worker_id": self._worker, "claim_epoch": task.claim_epoch, **fields}
        return await self._post(f"/workers/tasks/{task.id}/{what}", body)

    async def _post(self, path: str, body: Any) -> Answer:
        """The answer of the server, however long it is away."""
        pause, again = _PAUSE_S, False
        content = msgspec.json.encode(body)
        while True:
            try:
                given = await self._http.post(path, content=content)
            except httpx2.TransportError as error:
                why = f"{type(error).__name__}: {error}"
                again = again or not isinstance(error, httpx2.ConnectError)
            else:
                if given.status_code not in _AGAIN:
                    self._back()
                    return _answer(given, again=again)
                why = f"status {given.status_code}"
                again = True
            self._gone(why)
            await asyncio.sleep(pause * (0.5 + self._chance() / 2))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _gone(self, why: str) -> None:
        if not self._away:
            log.warning("the server does not answer (%s); trying again until it does", why)
        self._away = True

    def _back(self) -> None:
        if self._away:
            log.warning("the server answers again")
        self._away = False


def client(url: str, headers: dict[str, str], connections: int) -> httpx2.AsyncClient:
    """A client for so many calls at once."""
    return httpx2.AsyncClient(
        base_url=url,
        headers={"content-type": "application/json", **headers},
        timeout=httpx2.Timeout(_PATIENCE_S, read=_WAIT_S + _PATIENCE_S),
        limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
    )


def _answer(given: httpx2.Response, *, again: bool) -> Answer:
    lease = given.headers.get(_LEASE, "")
    return Answer(
        given.status_code,
        given.content,
        given.headers.get("x-detent-code", ""),
        int(lease) if lease.isdecimal() else limits.WORK_STALE_MS,
        again,
    )


def _refused(path: str, answer: Answer) -> RequestError:
    """A poll that no further try will change."""
    code = answer.code if answer.code in CODES else "request.invalid"
    hints = {
        "request.unauthorized": "; set DETENT_API_KEY",
        "request.tenant": "; give --tenant",
    }
    return RequestError(
        code,
        f"the server refused POST {path} with {answer.status} {answer.sentence}".rstrip()
        + hints.get(code, ""),
    )
