"""Recorded calls: handlers for tests that answer as told and keep what they were called with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from detent.handlers import HandlerContext, NotApplied, handler
from detent.handlers.declare import Doubt


class Call(NamedTuple):
    """One call of a recorded handler."""

    handler: str
    params: dict[str, Any]
    key: str
    attempt: int
    instance: str
    node: str


class Calls:
    """A recorder that makes handlers; calls are kept in the order in which they came.

    calls = Calls()
    charge = calls.handler("charge", Failed("busy"), {"paid": True}, on_doubt="keyed")
    engine.register(charge)
    …
    assert [call.attempt for call in calls.of("charge")] == [1, 2]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Call] = []

    def handler(
        self,
        name: str,
        *answers: Any,
        on_doubt: Doubt = "repeatable",
        reconcile: Callable[..., Any] | None = None,
        timeout_ms: int | None = None,
        withdrawable: bool = True,
    ) -> Callable[..., Any]:
        """A handler that gives its answers one after another, the last one for ever.

        An answer that is an exception is raised; one that is a function is called with the params.
        Without answers the result is null. A `queryable` one finds nothing unless told how to.
        """
        given = iter(answers)
        last: Any = None

        def recorded(ctx: HandlerContext, **params: Any) -> Any:
            nonlocal last
            call = Call(name, params, ctx.key, ctx.attempt, ctx.instance_id, ctx.node)
            with self._lock:
                self._made.append(call)
                last = next(given, last)
                answer = last
            if isinstance(answer, BaseException):
                raise answer
            return answer(params) if callable(answer) else answer

        recorded.__name__ = name
        asked = reconcile
        if on_doubt == "queryable" and reconcile is None:
            asked = _nothing_found
        declared = handler(
            name,
            on_doubt=on_doubt,
            reconcile=asked,
            timeout_ms=timeout_ms,
            withdrawable=withdrawable,
        )
        return declared(recorded)

    @property
    def made(self) -> tuple[Call, ...]:
        """All calls so far."""
        with self._lock:
            return tuple(self._made)

    def of(self, handler: str) -> list[Call]:
        """The calls of one handler."""
        return [call for call in self.made if call.handler == handler]

    def count(self, handler: str) -> int:
        """How often a handler was called."""
        return len(self.of(handler))


def _nothing_found(ctx: HandlerContext, **_params: Any) -> NotApplied:
    return NotApplied(f"no record of {ctx.key}")
