"""`engine.aio`: the blocking verbs as awaitables."""

from __future__ import annotations

import asyncio
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
            "start_many",
            "signal",
            "pause",
            "resume",
            "cancel",
            "retry",
            "resolve",
            "migrate",
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
        verb = getattr(self._engine, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(verb, *args, **kwargs)

        return call
