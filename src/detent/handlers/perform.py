"""One call from order to outcome: bind the request, call the function, read how it ended.

A request that refers to secrets is opened first; the outcome is then told without them. Where one
must be renewed before, nothing is called and there is no outcome yet: the call begins anew, since
whether it may be made was looked at before the renewal.

A performer never raises for what a handler did; only the cancellation that its dispatcher asked for
passes through an async one.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from detent.handlers.answers import Failed
from detent.handlers.manners import Manner, would_do
from detent.handlers.outcomes import text_of
from detent.handlers.secrets import GIVEN, Opener, hide_outcome, refers
from detent.model.errors import DetentError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from detent.handlers.parameters import Parameters
    from detent.model.decision import Order


class AsyncPerformer:
    """Performs orders with an `async def` function, on the dispatcher's loop."""

    __slots__ = ("_arguments", "_dry", "_function", "_manner", "_open", "timed_out")
    is_async = True

    def __init__(
        self, function: Callable[..., Any], takes: Parameters, manner: Manner, opener: Opener | None
    ) -> None:
        self._function = function
        self._arguments = takes.arguments
        self._manner = manner
        self._dry = manner.called_in_dry_runs
        self._open = opener
        self.timed_out = manner.timed_out

    def perform(self, order: Order, dispatch: int) -> Coroutine[Any, Any, bytes | None]:
        """The outcome of one call; None when it was not made and is to begin anew."""
        if self._open is None or order.plain or not refers(order.request):
            return self._perform(order, order, dispatch)
        return self._perform_opened(self._open, order, dispatch)

    async def _perform_opened(self, opener: Opener, order: Order, dispatch: int) -> bytes | None:
        try:
            try:
                opened = await asyncio.to_thread(opener.open, order)
            except DetentError as error:
                renewal = opener.renewal(error)
                if renewal is None:
                    raise
                # whoever is cancelled must not take the new token from the others
                await asyncio.shield(asyncio.wrap_future(renewal))
                return None
        except DetentError as error:
            return _not_opened(self._manner, order, dispatch, error)
        given = GIVEN.set(opened.secrets)
        try:
            outcome = await self._perform(opened.order, order, dispatch)
        finally:
            GIVEN.reset(given)
        return hide_outcome(outcome, opened.secrets)

    async def _perform(self, order: Order, stored: Order, dispatch: int) -> bytes:
        manner = self._manner
        try:
            arguments = self._arguments(order)
        except RequestError as error:
            return manner.refused(order, dispatch, error)
        if order.dry_run and not self._dry:
            return would_do(stored, dispatch)
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

    __slots__ = ("_arguments", "_dry", "_function", "_manner", "_open", "timed_out")
    is_async = False

    def __init__(
        self, function: Callable[..., Any], takes: Parameters, manner: Manner, opener: Opener | None
    ) -> None:
        self._function = function
        self._arguments = takes.arguments
        self._manner = manner
        self._dry = manner.called_in_dry_runs
        self._open = opener
        self.timed_out = manner.timed_out

    def perform(self, order: Order, dispatch: int) -> bytes | None:
        """The outcome of one call; None when it was not made and is to begin anew."""
        opener = self._open
        if opener is None or order.plain or not refers(order.request):
            return self._perform(order, order, dispatch)
        try:
            try:
                opened = opener.open(order)
            except DetentError as error:
                renewal = opener.renewal(error)
                if renewal is None:
                    raise
                renewal.result()
                return None
        except DetentError as error:
            return _not_opened(self._manner, order, dispatch, error)
        return hide_outcome(self._perform(opened.order, order, dispatch), opened.secrets)

    def _perform(self, order: Order, stored: Order, dispatch: int) -> bytes:
        manner = self._manner
        try:
            arguments = self._arguments(order)
        except RequestError as error:
            return manner.refused(order, dispatch, error)
        if order.dry_run and not self._dry:
            return would_do(stored, dispatch)
        try:
            value = self._function(**arguments)
        except BaseException as error:  # noqa: BLE001 - nothing a handler raises may end its thread
            return manner.raised(order, dispatch, error)
        return manner.returned(order, dispatch, value)


Performer = AsyncPerformer | PlainPerformer


def _not_opened(manner: Manner, order: Order, dispatch: int, error: DetentError) -> bytes:
    """Nothing was called: no secret to be had is final, a store or provider in trouble is not."""
    if isinstance(error, RequestError) and not error.details.get("again"):
        return manner.refused(order, dispatch, error)
    if order.dispatch:
        return manner.raised(order, dispatch, error)  # an earlier call may have been made
    return manner.raised(order, dispatch, Failed(text_of(error), code=error.code))


def performer_of(
    function: Callable[..., Any],
    takes: Parameters,
    manner: Manner,
    opener: Opener | None = None,
) -> Performer:
    """The performer for a function, by whether it is async."""
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        name = getattr(function, "__name__", "?")
        problem = "a handler must return its result, got a generator; return instead of yield"
        raise RequestError("handler.signature", f"handler {name!r}: {problem}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return AsyncPerformer(function, takes, manner, opener)
    return PlainPerformer(function, takes, manner, opener)
