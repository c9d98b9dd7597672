"""The handlers of a simulated world: one per class of doubt, each doing what its step tells it.

`act` says how a call goes: ok; fails (definitely, for the first `times` attempts); final; heals (as
final, until the instance's data says healed); lose (takes effect, then the reply is lost); refuse
(nothing happens, and the caller cannot know); unsure (as lose, and a query cannot tell at once);
puzzle (refused, and the person skips it); busy (as fails, and says when to come again). Everything
depends on the effect's key, attempt and data only, so that a run with a crash can end as the run
without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from detent.handlers import (
    Applied,
    Failed,
    HandlerContext,
    NotApplied,
    PolicyAnswer,
    Retry,
    allow,
    defer,
    fail,
    handler,
    pause,
    policy,
    skip,
)
from detent.testing.outside import Books, Deed

BUSY_S = 1_200
CLASSES = {
    "note": "repeatable",
    "post": "keyed",
    "put": "keyed",  # declared not withdrawable, so never marked
    "book": "queryable",
    "pay": "once",
}


def place_of(ctx: HandlerContext) -> str:
    """The place of a call: its instance and node."""
    return f"{ctx.instance_id} {ctx.node}"


class Providers:
    """All handlers of one world, over its record."""

    def __init__(self, outside: Books, now: Callable[[], int] = lambda: 0) -> None:
        """`now` tells the tick of the world's clock."""
        self._outside = outside
        self._now = now

    def handlers(self) -> list[Any]:
        """What an engine registers."""
        options: dict[str, dict[str, Any]] = {
            "put": {"withdrawable": False},
            "book": {"reconcile": self._asked},
        }
        acting = [self._acting(name, options.get(name, {})) for name in CLASSES]
        return [*acting, self._guard()]

    def _acting(self, name: str, options: dict[str, Any]) -> Any:
        doubt: Any = CLASSES[name]

        async def act(
            ctx: HandlerContext, act: str = "ok", times: int = 0, size: int = 0, **_rule: Any
        ) -> dict[str, Any]:
            return self.perform(ctx, name, (act, times, size))

        act.__name__ = name
        return handler(name, on_doubt=doubt, **options)(act)

    def perform(self, ctx: HandlerContext, name: str, told: tuple[str, int, int]) -> dict[str, Any]:
        """One call of a provider, told how it goes as (act, times, size)."""
        act, times, size = told
        outside, doubt, key = self._outside, CLASSES[name], ctx.key
        before = outside.count("call", key)
        called = Deed("call", key, place_of(ctx), name, doubt, None, self._now(), ctx.resource)
        outside.add(called)
        if act == "busy" and ctx.attempt <= times:
            raise Failed("too many", retry_after=BUSY_S * times)
        if act == "fails" and ctx.attempt <= times:
            raise Failed(f"attempt {ctx.attempt} is refused")
        if act == "final" or (act == "heals" and not (ctx.data or {}).get("healed")):
            raise Failed("never", retryable=False)
        first = before == 0 if doubt == "keyed" else ctx.attempt <= times
        if act == "puzzle" or (act == "refuse" and first):
            outside.add(Deed("refused", key, place_of(ctx), name, doubt))
            raise RuntimeError("no answer")
        block = ctx.node.rpartition("/")[2]
        result = {block: {"node": ctx.node, "body": "x" * size} if size else ctx.node}
        kept = outside.apply(Deed("applied", key, place_of(ctx), name, doubt, result))
        if act in ("lose", "unsure") and (doubt == "once" or first):
            raise RuntimeError("the reply is lost")
        return dict(kept)

    def find_out(self, ctx: HandlerContext, act: str, times: int) -> Applied | NotApplied | Retry:
        """What the books of a provider that can be asked say."""
        asked = self._outside.count("query", ctx.key)
        self._outside.add(Deed("query", ctx.key, place_of(ctx), "book", "queryable"))
        if act == "unsure" and asked < times:
            return Retry("the books are being closed")
        if self._outside.happened(ctx.key):
            return Applied(self._outside.result(ctx.key))
        return NotApplied("it is not in the books")

    async def _asked(
        self, ctx: HandlerContext, act: str = "ok", times: int = 0, **_rest: Any
    ) -> Applied | NotApplied | Retry:
        return self.find_out(ctx, act, times)

    def _guard(self) -> Any:
        @policy("guard")
        async def guard(step: str, now_ms: int, params: Any = None) -> PolicyAnswer:
            told = params if isinstance(params, dict) else {}
            early = now_ms < told.get("until_ms", 0)
            match told.get("rule"):
                case "fail":
                    return fail(f"{step} is not allowed")
                case "skip":
                    return skip(f"{step} is not needed")
                case "defer" if early:
                    return defer("too early", for_ms=3_600_000)
                case "pause" if early:
                    return pause("not yet")
            return allow()

        return guard
