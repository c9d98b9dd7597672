"""`engine.aio`: the blocking verbs as awaitables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.bootstrap.engine import Engine


class AsyncEngine:
    """Each blocking verb of the engine, awaited: `await engine.aio.start(...)`.

    A verb waits in a thread of the loop's default executor, so the loop stays free.
    """

    _VERBS = frozenset(
        {
            "start",
            "start_request",
            "start_many",
            "signal",
            "pause",
            "resume",
            "cancel",
            "retry",
            "resolve",
            "migrate",
            "set_data",
            "set_state",
            "reschedule",
            "resume_from",
            "inject",
            "bulk",
            "command",
            "wait_for",
            "deploy",
            "definition",
            "deprecate",
            "explain",
            "replay",
            "fork",
            "run_until_idle",
            "advance",
            "close",
        }
    )

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name not in self._VERBS:
            raise AttributeError(
                f"engine.aio has no verb {name!r}; it has {', '.join(sorted(self._VERBS))}"
            )
        return _awaited(getattr(self._engine, name))

    @property
    def limits(self) -> AsyncVerbs:
        """`await engine.aio.limits.set(...)` and the other verbs of `engine.limits`."""
        return AsyncVerbs(self._engine.limits)

    @property
    def pools(self) -> AsyncVerbs:
        """`await engine.aio.pools.add(...)` and the other verbs of `engine.pools`."""
        return AsyncVerbs(self._engine.pools)

    @property
    def breakers(self) -> AsyncVerbs:
        """`await engine.aio.breakers.list(...)` and the other verbs of `engine.breakers`."""
        return AsyncVerbs(self._engine.breakers)

    @property
    def plans(self) -> AsyncVerbs:
        """`await engine.aio.plans.execute(...)` and the other verbs of `engine.plans`."""
        return AsyncVerbs(self._engine.plans)

    @property
    def crons(self) -> AsyncVerbs:
        """`await engine.aio.crons.create(...)` and the other verbs of `engine.crons`."""
        return AsyncVerbs(self._engine.crons)

    @property
    def events(self) -> AsyncVerbs:
        """`await engine.aio.events.send(...)` and the other verbs of `engine.events`."""
        return AsyncVerbs(self._engine.events)

    @property
    def webhooks(self) -> AsyncVerbs:
        """`await engine.aio.webhooks.outbox(...)` and the other verbs of `engine.webhooks`."""
        return AsyncVerbs(self._engine.webhooks)

    @property
    def work(self) -> AsyncVerbs:
        """`await engine.aio.work.poll(...)` and the other verbs of `engine.work`."""
        return AsyncVerbs(self._engine.work)

    @property
    def inspect(self) -> AsyncVerbs:
        """`await engine.aio.inspect.show(...)` and the other views of `engine.inspect`."""
        return AsyncVerbs(self._engine.inspect)


class AsyncVerbs:
    """Each verb of a group of verbs, awaited."""

    def __init__(self, verbs: Any) -> None:
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._verbs, name))


def _awaited(verb: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(verb, *args, **kwargs)

    return call
