"""Asking the writer: one request or many at once, each with its own answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from detent.bootstrap.callers import Callers
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.errors import RequestError
from detent.model.link import Submission
from detent.runtime.dispatch_guard import guard_reentrant

Make = Callable[[int], Submission]
Settle = Callable[[Future[Verdict]], Any]


def ask_all(
    callers: Callers,
    submit: Callable[..., None],
    settle: Settle | None,
    makes: Sequence[Make],
) -> list[Verdict]:
    """Submit what is made for fresh acknowledgement numbers, and wait for all the answers.

    In virtual time `settle` takes turns until a caller is answered.
    """
    guard_reentrant("a blocking engine call")
    waiting = [callers.expect() for _ in makes]
    try:
        submit(*(make(ack) for make, (ack, _) in zip(makes, waiting, strict=True)))
        for _, future in waiting if settle is not None else ():
            settle(future)  # type: ignore[misc]
        return [future.result(limits.ASK_TIMEOUT_MS / 1000) for _, future in waiting]
    except FutureTimeout:
        raise RequestError(
            "request.timeout",
            f"no answer within {limits.ASK_TIMEOUT_MS // 1000} s; ask again with the same id",
        ) from None
    finally:
        for ack, _ in waiting:
            callers.forget(ack)
