"""One call from order to outcome: bind the request, call the function, read how it ended.

A performer never raises for what a handler did; only the cancellation that its dispatcher asked for
passes through an async one.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from detent.handlers.manners import Manner, would_do
from detent.model.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.handlers.parameters import Parameters
    from detent.model.decision import Order


class AsyncPerformer:
    """Performs orders with an `async def` function, on the dispatcher's loop."""

    __slots__ = ("_arguments", "_dry", "_function", "_manner", "timed_out")
    is_async = True

    def __init__(self, function: Callable[..., Any], takes: Parameters, manner: Manner) -> None:
        self._function = function
        self._arguments = takes.arguments
        self._manner = manner
        self._dry = manner.called_in_dry_runs
        self.timed_out = manner.timed_out

    async def perform(self, order: Order, dispatch: int) -> bytes:
        """The outcome of one call."""
        manner = self._manner
        try:
            arguments = self._arguments(order)
        except RequestError as error:
            return manner.refused(order, dispatch, error)
        if order.dry_run and not self._dry:
            return would_do(order, dispatch)
        try:
            value = await self._function(**arguments)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return manner.raised(order, dispatch, error)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler's SystemExit must not end the loop
            return manner.raised(order, dispatch, error)
        return manner.returned(order, dispatch, value)


class PlainPerformer:
    """Performs orders with a plain function, on a thread of the pool."""

    __slots__ = ("_arguments", "_dry", "_function", "_manner", "timed_out")
    is_async = False

    def __init__(self, function: Callable[..., Any], takes: Parameters, manner: Manner) -> None:
        self._function = function
        self._arguments = takes.arguments
        self._manner = manner
        self._dry = manner.called_in_dry_runs
        self.timed_out = manner.timed_out

    def perform(self, order: Order, dispatch: int) -> bytes:
        """The outcome of one call."""
        manner = self._manner
        try:
            arguments = self._arguments(order)
        except RequestError as error:
            return manner.refused(order, dispatch, error)
        if order.dry_run and not self._dry:
            return would_do(order, dispatch)
        try:
            value = self._function(**arguments)
        except BaseException as error:  # noqa: BLE001 - nothing a handler raises may end its thread
            return manner.raised(order, dispatch, error)
        return manner.returned(order, dispatch, value)


Performer = AsyncPerformer | PlainPerformer


def performer_of(function: Callable[..., Any], takes: Parameters, manner: Manner) -> Performer:
    """The performer for a function, by whether it is async."""
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        name = getattr(function, "__name__", "?")
        problem = "a handler must return its result, got a generator; return instead of yield"
        raise RequestError("handler.signature", f"handler {name!r}: {problem}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return AsyncPerformer(function, takes, manner)
    return PlainPerformer(function, takes, manner)
